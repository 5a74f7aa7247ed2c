//! `atom` and `red`: lane after lane, in the order of the lanes.

use super::Worker;
use super::access::{Checked, Place, addresses};
use super::shadow::{Touch, warps};
use super::warp::Warp;
use super::words::{Global, Own, Words, read, write};
use crate::kernel::{Atomic, AtomicOp, AtomicType};
use crate::lanes::WARP;
use crate::rounding::{BFLOAT, HALF, Round, add_odd, bfloat, half, narrow};
use std::sync::atomic::Ordering;

impl<'a> Worker<'a> {
    pub(super) fn atomic(&mut self, w: usize, warp: &mut Warp, mask: u32, atomic: &Atomic) {
        let bytes = u64::from(atomic.bytes);
        let checked = Checked { pc: warp.pc, warp: w, space: atomic.space, bytes, align: bytes, touch: Touch::Atomic };
        let at = addresses(&warp.registers, atomic.address, mask);
        let shape = self.shape(warp.pc, atomic.space, &at, mask, bytes);
        let value = |slot: u16, lane: usize| match atomic.wide {
            true => warp.registers.doubles[usize::from(slot)].0[lane],
            false => u64::from(warp.registers.words[usize::from(slot)].0[lane]),
        };
        let operands: [(u64, u64); WARP] =
            std::array::from_fn(|lane| (value(atomic.operand, lane), value(atomic.swap, lane)));
        let mut old = [0u64; WARP];
        self.groups(checked, at, mask, shape, |worker, group, good| {
            for lane in warps(good) {
                let (offset, (operand, swap)) = (group.at[lane], operands[lane]);
                let change = |old: u64| apply(atomic, old, operand, swap);
                old[lane] = match group.place {
                    Place::Global(region) => global(worker, &region.words, offset, atomic.bytes, change),
                    Place::Shared(_) => own(&mut Own(&mut worker.shared), offset, atomic.bytes, change),
                    Place::Local(bytes) => {
                        let offset = (w * WARP + lane) as u64 * bytes + offset;
                        own(&mut Own(&mut worker.local), offset, atomic.bytes, change)
                    }
                    Place::Param(_) | Place::Nowhere => 0,
                };
            }
        });
        if let Some(to) = atomic.to {
            let bytes = if atomic.wide { 8 } else { 4 };
            super::access::put(&mut warp.registers, crate::kernel::Data { slot: to, bytes }, old, mask);
        }
    }
}

/// One operation on memory that blocks share.
fn global(
    worker: &Worker<'_>,
    words: &[std::sync::atomic::AtomicU32],
    offset: u64,
    bytes: u8,
    change: impl Fn(u64) -> u64,
) -> u64 {
    if bytes == 8 {
        // Two words: one at a time. Plain accesses of 64 bits by other blocks are races of the kernel.
        let _turn = worker.setting.memory.take_turn();
        return own(&mut Global(words), offset, bytes, change);
    }
    let Some(word) = words.get((offset >> 2) as usize) else { return 0 };
    let shift = 8 * (offset & 3) as u32;
    let part = if bytes == 4 { u32::MAX } else { 0xffff << shift };
    let new = |old: u32| {
        let changed = change(u64::from((old & part) >> shift));
        old & !part | (changed as u32) << shift & part
    };
    let before = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(new(old)));
    before.map_or(0, |old| u64::from((old & part) >> shift))
}

fn own(words: &mut impl Words, offset: u64, bytes: u8, change: impl Fn(u64) -> u64) -> u64 {
    let old = read(words, offset, bytes);
    write(words, offset, bytes, change(old));
    old
}

/// The new value.
fn apply(atomic: &Atomic, old: u64, operand: u64, swap: u64) -> u64 {
    match atomic.op {
        AtomicOp::Exchange => operand,
        AtomicOp::CompareAndSwap => {
            if old == operand {
                swap
            } else {
                old
            }
        }
        AtomicOp::And => old & operand,
        AtomicOp::Or => old | operand,
        AtomicOp::Xor => old ^ operand,
        AtomicOp::Increment => {
            if old >= operand {
                0
            } else {
                old + 1
            }
        }
        AtomicOp::Decrement => {
            if old == 0 || old > operand {
                operand
            } else {
                old - 1
            }
        }
        AtomicOp::Add => add(atomic.ty, old, operand),
        AtomicOp::Min => {
            if less(atomic.ty, operand, old) {
                operand
            } else {
                old
            }
        }
        AtomicOp::Max => {
            if less(atomic.ty, old, operand) {
                operand
            } else {
                old
            }
        }
    }
}

fn add(ty: AtomicType, a: u64, b: u64) -> u64 {
    let pair = |f: fn(u16, u16) -> u16| {
        let one = |shift: u32| u64::from(f((a >> shift) as u16, (b >> shift) as u16)) << shift;
        one(0) | one(16)
    };
    match ty {
        AtomicType::F32 => u64::from((f32::from_bits(a as u32) + f32::from_bits(b as u32)).to_bits()),
        AtomicType::F64 => (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
        AtomicType::F16 => u64::from(add_half(a as u16, b as u16)),
        AtomicType::Bf16 => u64::from(add_bfloat(a as u16, b as u16)),
        AtomicType::F16x2 => pair(add_half),
        AtomicType::Bf16x2 => pair(add_bfloat),
        AtomicType::U32 | AtomicType::S32 => u64::from((a as u32).wrapping_add(b as u32)),
        AtomicType::U64 | AtomicType::S64 => a.wrapping_add(b),
    }
}

fn add_half(a: u16, b: u16) -> u16 {
    narrow(add_odd(half(a), half(b)), HALF, Round::Nearest) as u16
}

fn add_bfloat(a: u16, b: u16) -> u16 {
    narrow(add_odd(bfloat(a), bfloat(b)), BFLOAT, Round::Nearest) as u16
}

fn less(ty: AtomicType, a: u64, b: u64) -> bool {
    match ty {
        AtomicType::S32 => (a as i32) < b as i32,
        AtomicType::S64 => (a as i64) < b as i64,
        AtomicType::F32 => f32::from_bits(a as u32) < f32::from_bits(b as u32),
        AtomicType::F64 => f64::from_bits(a) < f64::from_bits(b),
        _ => a < b,
    }
}
