//! Stores a tile whose vectors lie across C: groups of accumulators are transposed in registers, so
//! that each store writes neighbours of C.
//!
//! A group of 4 (elements of 4 bytes) or 2 (of 8) accumulators gives runs of 16 bytes per 128-bit lane, the rest of `s`
//! goes in groups of 2 and 1. Elements of 16 bytes are such runs.

use iced_x86::{Code, Instruction, Register};

use super::abi::at;
use super::emitter::{Emitter, mem};
use super::tile::{ARGS, C, Tile};
use super::vector::{Vector, Width};
use tilewright_ops::gemm::ScalarClass;

/// A run of C of 16, 8 or 4 bytes held in a 128-bit lane of a register.
#[derive(Clone, Copy)]
struct Run {
    from: Register,
    lane: usize,
    /// Element of the lane (f32 singles) or half (8 bytes); 0 for whole lanes.
    part: usize,
    bytes: usize,
}

/// Scratch registers while runs are stored.
#[derive(Clone, Copy)]
struct Scratch {
    run: usize,
    old: usize,
    beta: usize,
}

pub(super) fn emit_store(tile: &Tile, e: &mut Emitter, v_stride: i32) {
    tile.emit_finished(e, [tile.free(0), tile.free(1)]);
    for i in 0..tile.vecs {
        let mut j = 0;
        while j < tile.outs() {
            let group = group_size(tile.element(), tile.outs() - j);
            emit_group(tile, e, i, j, group, v_stride);
            j += group;
        }
    }
}

fn group_size(element: usize, left: usize) -> usize {
    match (element, left) {
        (4, 4..) => 4,
        (4 | 8, 2..) => 2,
        _ => 1,
    }
}

fn emit_group(tile: &Tile, e: &mut Emitter, i: usize, j: usize, group: usize, v_stride: i32) {
    let r: Vec<Register> = (j..j + group).map(|j| tile.out(j, i)).collect();
    let t: Vec<Register> = (0..4).map(|n| tile.free(n)).collect();
    let (vector, element) = (tile.vector, tile.element());
    let (sources, parts, scratch): (Vec<Register>, usize, [Register; 3]) = match group {
        4 => {
            e.op3(vector.unpack(4, false), t[0], r[0], r[1]);
            e.op3(vector.unpack(4, true), t[1], r[0], r[1]);
            e.op3(vector.unpack(4, false), t[2], r[2], r[3]);
            e.op3(vector.unpack(4, true), t[3], r[2], r[3]);
            e.op3(vector.unpack(8, false), r[0], t[0], t[2]);
            e.op3(vector.unpack(8, true), r[1], t[0], t[2]);
            e.op3(vector.unpack(8, false), r[2], t[1], t[3]);
            e.op3(vector.unpack(8, true), r[3], t[1], t[3]);
            (r, 1, [t[0], t[1], t[2]])
        }
        2 => {
            e.op3(vector.unpack(element, true), t[1], r[0], r[1]);
            e.op3(vector.unpack(element, false), r[0], r[0], r[1]);
            (vec![r[0], t[1]], 8 / element, [t[0], t[2], t[3]])
        }
        _ => (r, 16 / element, [t[0], t[1], t[2]]),
    };
    let [run, old, beta] = scratch.map(Register::number);
    let scratch = Scratch { run, old, beta };
    if tile.beta == ScalarClass::Other {
        let low = Vector { width: Width::X, float: vector.float };
        e.op2_load(low.broadcast(), Register::XMM0 + scratch.beta as u32, mem(ARGS, at::BETA));
    }
    let (per_lane, elements) = (16 / element, vector.width.bytes() / element);
    let valid = if tile.is_tail(i) { tile.tail / tile.numbers.parts() } else { elements };
    for lane in 0..vector.width.bytes() / 16 {
        for (o, &from) in sources.iter().enumerate() {
            for part in 0..parts {
                let v = lane * per_lane + o * parts + part;
                if v < valid {
                    let disp = (i * elements + v) as i64 * i64::from(v_stride) + (j * element) as i64;
                    let run = Run { from, lane, part, bytes: 16 / parts };
                    emit_run(tile, e, run, disp, scratch);
                }
            }
        }
    }
}

fn emit_run(tile: &Tile, e: &mut Emitter, run: Run, disp: i64, scratch: Scratch) {
    let xmm = |n: usize| Register::XMM0 + n as u32;
    let low = Vector { width: Width::X, float: tile.vector.float };
    let mut now = emit_extract(tile.vector.width, e, run, xmm(scratch.run));
    if tile.beta != ScalarClass::Zero {
        let (load, _) = move_codes(run.bytes);
        let old = xmm(scratch.old);
        e.op2_load(load, old, mem(C, disp));
        if tile.beta == ScalarClass::Other {
            e.op3(low.mul(), old, old, xmm(scratch.beta));
        }
        e.op3(tile.add(low), xmm(scratch.run), now, old);
        now = xmm(scratch.run);
    }
    let (_, store) = move_codes(run.bytes);
    e.op2_store(store, mem(C, disp), now);
}

/// Brings the run to the low end of an XMM register: `to`, or the source itself when it is there.
fn emit_extract(width: Width, e: &mut Emitter, run: Run, to: Register) -> Register {
    let lane = run.lane as i32;
    let whole = match width {
        Width::Z => {
            e.push(Instruction::with3(Code::EVEX_Vextractf32x4_xmmm128_k1z_zmm_imm8, to, run.from, lane));
            to
        }
        Width::Y if lane > 0 => {
            e.push(Instruction::with3(Code::VEX_Vextractf128_xmmm128_ymm_imm8, to, run.from, lane));
            to
        }
        Width::X | Width::Y => Register::XMM0 + run.from.number() as u32,
    };
    if run.part == 0 {
        return whole;
    }
    if run.bytes == 8 {
        e.op3(Code::VEX_Vunpckhpd_xmm_xmm_xmmm128, to, whole, whole);
    } else {
        e.push(Instruction::with3(Code::VEX_Vpermilps_xmm_xmmm128_imm8, to, whole, run.part as i32));
    }
    to
}

/// Load and store of the low `bytes` of an XMM register.
pub(crate) fn move_codes(bytes: usize) -> (Code, Code) {
    match bytes {
        16 => (Code::VEX_Vmovups_xmm_xmmm128, Code::VEX_Vmovups_xmmm128_xmm),
        8 => (Code::VEX_Vmovsd_xmm_m64, Code::VEX_Vmovsd_m64_xmm),
        _ => (Code::VEX_Vmovss_xmm_m32, Code::VEX_Vmovss_m32_xmm),
    }
}
