//! Stores a tile whose vectors lie along contiguous C, and whose sums are rounded to bfloat16 on their way: of a reduction that is one block,
//! so that no sum is rounded twice. A denormal result is zero, as the processor's
//! instruction has it.

use iced_x86::{Code, Instruction, Register};

use super::abi::at;
use super::emitter::{Emitter, mem};
use super::tile::{ARGS, C, Tile};
use super::vector::Width;
use tilewright_ops::gemm::ScalarClass;

/// Bits by which a bfloat16 number is moved to be a binary32 one.
pub(super) const SHIFT: i32 = 16;

pub(super) fn emit_store(tile: &Tile, e: &mut Emitter, s_stride: i32) {
    debug_assert_eq!(tile.vector.width, Width::Z);
    tile.emit_finished(e, [tile.free(0), tile.free(1)]);
    if tile.beta != ScalarClass::Zero {
        emit_old(tile, e, s_stride);
    }
    for (j, i) in places(tile) {
        let (sums, to) = (tile.out(j, i), mem(C, disp(s_stride, j, i)));
        let half = Register::YMM0 + sums.number() as u32;
        e.push(Instruction::with2(Code::EVEX_Vcvtneps2bf16_ymm_k1z_zmmm512b32, half, sums));
        if tile.is_tail(i) {
            e.op2_store_masked(Code::EVEX_Vmovdqu16_ymmm256_k1z_ymm, to, half);
        } else if tile.stream {
            e.op2_store(Code::EVEX_Vmovntps_m256_ymm, to, half);
        } else {
            e.op2_store(Code::EVEX_Vmovups_ymmm256_k1z_ymm, to, half);
        }
    }
}

/// Adds what C held to all of the tile before any of it is written, as where nothing is rounded.
fn emit_old(tile: &Tile, e: &mut Emitter, s_stride: i32) {
    let (factor, old) = (tile.free(0), tile.free(1));
    if tile.beta == ScalarClass::Other {
        e.broadcast(factor, mem(ARGS, at::BETA));
    }
    for (j, i) in places(tile) {
        let (sums, from) = (tile.out(j, i), mem(C, disp(s_stride, j, i)));
        let widen = Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256;
        if tile.is_tail(i) {
            e.op2_load_masked(widen, old, from);
        } else {
            e.op2_load(widen, old, from);
        }
        e.push(Instruction::with3(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, old, old, SHIFT));
        if tile.beta == ScalarClass::One {
            e.op3(tile.vector.add(), sums, sums, old);
        } else {
            e.fma(sums, factor, old);
        }
    }
}

/// Columns of the tile, and vectors of each.
fn places(tile: &Tile) -> impl Iterator<Item = (usize, usize)> + use<> {
    let vecs = tile.vecs;
    (0..tile.outs()).flat_map(move |j| (0..vecs).map(move |i| (j, i)))
}

/// Where vector `i` of column `j` lies, from the tile's first.
fn disp(s_stride: i32, j: usize, i: usize) -> i64 {
    j as i64 * i64::from(s_stride) + (i * Width::Y.bytes()) as i64
}
