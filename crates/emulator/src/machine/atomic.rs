//! `atom` and `red`: lane after lane, in the order of the lanes.

use super::Worker;
use super::access::{Checked, Place, addresses};
use super::shadow::{Touch, warps};
use super::warp::Warp;
use super::words::{Global, Own, Words, read, write};
use crate::kernel::{Atomic, AtomicOp};
use crate::lanes::{Bf16, F16, Lane, Raw, WARP};
use crate::rounding::{Directed, Round};
use crate::types::Ty;
use std::sync::atomic::Ordering;

impl<'a> Worker<'a> {
    pub(super) fn atomic(&mut self, w: usize, warp: &mut Warp, mask: u32, atomic: &Atomic) {
        let (bytes, wide) = (atomic.ty.bytes(), atomic.ty.bytes() == 8);
        let new = Checked::new(warp.pc, w, atomic.space, bytes, Touch::Atomic);
        let checked = Checked { scope: atomic.scope, ..new };
        if atomic.is_release {
            self.shadow.clocks.fence(w, atomic.scope);
        }
        let at = addresses(&warp.registers, atomic.address, mask);
        let shape = self.shape(warp.pc, atomic.space, &at, mask, bytes);
        let [operands, swaps] = [atomic.operand, atomic.swap].map(|slot| warp.registers.values(slot, wide));
        let mut old = [0u64; WARP];
        self.groups(checked, at, mask, shape, |worker, group, good| {
            for lane in warps(good) {
                let (offset, each) = (group.at[lane], bytes as u8);
                let change = |old: u64| apply(atomic.op, atomic.ty, old, operands[lane], swaps[lane]);
                old[lane] = match group.place {
                    Place::Global(region) => global(worker, &region.words, offset, each, change),
                    Place::Shared(_) => own(&mut Own(&mut worker.shared), offset, each, change),
                    Place::Local(bytes) => {
                        let offset = (w * WARP + lane) as u64 * bytes + offset;
                        own(&mut Own(&mut worker.local), offset, each, change)
                    }
                    Place::Param(_) | Place::Nowhere => 0,
                };
            }
        });
        // Who gets no value learns nothing.
        if atomic.to.is_none() {
            self.lessons.read.clear();
        }
        self.acquire(w, atomic.scope);
        if let Some(to) = atomic.to {
            let bytes = if wide { 8 } else { 4 };
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
pub(super) fn apply(op: AtomicOp, ty: Ty, old: u64, operand: u64, swap: u64) -> u64 {
    let choose = |holds: bool, then: u64| if holds { then } else { old };
    match op {
        AtomicOp::Exchange => operand,
        AtomicOp::CompareAndSwap => choose(old == operand, swap),
        AtomicOp::And => old & operand,
        AtomicOp::Or => old | operand,
        AtomicOp::Xor => old ^ operand,
        AtomicOp::Increment if old >= operand => 0,
        AtomicOp::Increment => old + 1,
        AtomicOp::Decrement if old == 0 || old > operand => operand,
        AtomicOp::Decrement => old - 1,
        AtomicOp::Add => add(ty, old, operand),
        AtomicOp::Min => choose(less(ty, operand, old), operand),
        AtomicOp::Max => choose(less(ty, old, operand), operand),
    }
}

fn add(ty: Ty, a: u64, b: u64) -> u64 {
    fn sum<T: Lane + Directed>(a: u64, b: u64) -> u64 {
        let [a, b] = [a, b].map(|x| T::of(T::Raw::of_bits(x)));
        a.add_in(b, Round::Nearest).raw().bits()
    }
    match ty {
        Ty::F32 => sum::<f32>(a, b),
        Ty::F64 => sum::<f64>(a, b),
        Ty::F16 => sum::<F16>(a, b),
        Ty::Bf16 => sum::<Bf16>(a, b),
        Ty::F16x2 => sum::<[F16; 2]>(a, b),
        Ty::Bf16x2 => sum::<[Bf16; 2]>(a, b),
        // What is beyond the type is cut off where it is written.
        _ => a.wrapping_add(b),
    }
}

fn less(ty: Ty, a: u64, b: u64) -> bool {
    match ty {
        Ty::S32 => (a as i32) < b as i32,
        Ty::S64 => (a as i64) < b as i64,
        Ty::F32 => f32::from_bits(a as u32) < f32::from_bits(b as u32),
        Ty::F64 => f64::from_bits(a) < f64::from_bits(b),
        _ => a < b,
    }
}
