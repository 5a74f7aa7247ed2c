//! Loads vectors of 16-bit numbers where the caller has them: woven of two steps, or as binary32, of bfloat16 the bits of each above as many zeros, of binary16 by the
//! instruction for it.

use iced_x86::{Code, Instruction, Register};

use super::emitter::{Emitter, mem};
use super::rounded::SHIFT;
use super::tile::{Loaded, Tile, V};
use super::vector::Width;

/// Bytes of a number in memory.
const NUMBER: usize = 2;

/// Loads vector `i` of a step of a turn of the loop; of the last vector no more than its elements.
pub(super) fn emit_load(tile: &Tile, e: &mut Emitter, to: Register, (step, i): (usize, usize)) {
    let at = step as i64 * i64::from(tile.v_k) + (i * tile.vector.lanes() * NUMBER) as i64;
    let (widen, shift) = codes(tile.loaded_v, tile.vector.width);
    match tile.vector.width {
        Width::Z if tile.is_tail(i) => e.op2_load_masked(widen, to, mem(V, at)),
        Width::X | Width::Y if tile.is_tail(i) => {
            let low = Register::XMM0 + to.number() as u32;
            emit_first(tile.tail, e, low, at);
            e.push(Instruction::with2(widen, to, low));
        }
        _ => e.op2_load(widen, to, mem(V, at)),
    }
    if let Some(shift) = shift {
        e.push(Instruction::with3(shift, to, to, SHIFT));
    }
}

/// Loads vector `i` of two steps of a turn of the loop, each half as long, number by number of one and the other.
pub(super) fn emit_woven(tile: &Tile, e: &mut Emitter, to: Register, (turn, i): (usize, usize)) {
    let (order, second) = (tile.reserve(0), tile.reserve(1));
    for (half, register) in [to, second].into_iter().enumerate() {
        let step = (2 * turn + half) as i64 * i64::from(tile.v_k / 2);
        let from = mem(V, step + (i * Width::Y.bytes()) as i64);
        let (code, register) = (Code::EVEX_Vmovdqu16_ymm_k1z_ymmm256, Register::YMM0 + register.number() as u32);
        if tile.is_tail(i) {
            e.op2_load_masked(code, register, from);
        } else {
            e.op2_load(code, register, from);
        }
    }
    e.op3(Code::EVEX_Vpermt2w_zmm_k1z_zmm_zmmm512, to, order, second);
}

/// Loads so many numbers, fewer than eight, and nothing behind them: AVX2 has no masks for numbers of 16 bits.
fn emit_first(count: usize, e: &mut Emitter, to: Register, at: i64) {
    let whole = match count {
        4.. => {
            e.op2_load(Code::VEX_Vmovq_xmm_xmmm64, to, mem(V, at));
            4
        }
        2.. => {
            e.op2_load(Code::VEX_Vmovd_xmm_rm32, to, mem(V, at));
            2
        }
        _ => {
            e.op3(Code::VEX_Vxorps_xmm_xmm_xmmm128, to, to, to);
            0
        }
    };
    for number in whole..count {
        let from = mem(V, at + (number * NUMBER) as i64);
        e.push(Instruction::with4(Code::VEX_Vpinsrw_xmm_xmm_r32m16_imm8, to, to, from, number as i32));
    }
}

/// What makes 32 bits of numbers of 16, and what moves them up where that puts zeros above them.
fn codes(loaded: Loaded, width: Width) -> (Code, Option<Code>) {
    match (loaded, width) {
        (Loaded::Converted, Width::X) => (Code::VEX_Vcvtph2ps_xmm_xmmm64, None),
        (Loaded::Converted, Width::Y) => (Code::VEX_Vcvtph2ps_ymm_xmmm128, None),
        (Loaded::Converted, Width::Z) => (Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae, None),
        (_, Width::X) => (Code::VEX_Vpmovzxwd_xmm_xmmm64, Some(Code::VEX_Vpslld_xmm_xmm_imm8)),
        (_, Width::Y) => (Code::VEX_Vpmovzxwd_ymm_xmmm128, Some(Code::VEX_Vpslld_ymm_ymm_imm8)),
        (_, Width::Z) => (Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256, Some(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8)),
    }
}
