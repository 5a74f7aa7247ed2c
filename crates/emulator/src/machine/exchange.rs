//! Instructions that look at other lanes of the warp.

use super::Worker;
use super::atomic::apply;
use super::shadow::warps;
use super::warp::Warp;
use crate::finding::Fault;
use crate::kernel::{AtomicOp, Exchange};
use crate::lanes::{FULL, Registers, WARP, store};
use crate::types::Ty;
use std::fmt;

type Run = dyn Fn(&mut Registers, u32) -> Option<usize> + Send + Sync;

/// An instruction over the lanes of a mask; the first lane that reads from one that takes no part.
pub(crate) struct ExchangeFn(pub(super) Box<Run>);

impl fmt::Debug for ExchangeFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExchangeFn")
    }
}

impl ExchangeFn {
    pub(crate) fn new(run: impl Fn(&mut Registers, u32) -> Option<usize> + Send + Sync + 'static) -> Self {
        Self(Box::new(run))
    }
}

impl Worker<'_> {
    pub(super) fn exchange(&mut self, w: usize, warp: &mut Warp, mask: u32, e: &Exchange) {
        if let Some(members) = e.members {
            let members = warp.registers.words[usize::from(members)].0;
            // Every lane must be in the mask that it names, and all lanes named must be here that have not exited.
            let gone = if mask == warp.born { 0 } else { warp.gone(&self.setting.kernel.code) };
            let missing = warp.born & !mask & !gone;
            let absent = warps(mask).find(|lane| members[*lane] >> lane & 1 == 0 || members[*lane] & missing != 0);
            if let Some(lane) = absent {
                self.fault(w, warp.pc, lane, None, Fault::InactiveLane);
            }
        }
        if e.is_barrier {
            self.shadow.clocks.join_lanes(w);
        }
        if let Some(lane) = (e.run.0)(&mut warp.registers, mask) {
            self.fault(w, warp.pc, lane, None, Fault::InactiveLane);
        }
    }
}

fn set_flag(r: &mut Registers, flag: Option<u16>, bits: u32, mask: u32) {
    if let Some(flag) = flag {
        r.set_predicate(flag, bits, mask);
    }
}

/// The lane that another one reads: of its number, its operand, and the bits that segments share.
pub(crate) type Source = fn(u32, u32, u32) -> u32;

/// Moves values between lanes. `from` holds the values, the sources' operands, and the clamps with their segment masks.
pub(crate) fn shuffle(
    (to, flag): (u16, Option<u16>),
    from: [u16; 3],
    (is_up, source_of): (bool, Source),
) -> ExchangeFn {
    ExchangeFn::new(move |r, mask| {
        let [values, by, clamp] = from.map(|slot| r.words[usize::from(slot)].0);
        let (mut out, mut within, mut bad) = ([0; WARP], 0u32, None);
        for lane in 0..WARP {
            let (last, segment) = (clamp[lane] & 31, clamp[lane] >> 8 & 31);
            let end = lane as u32 & segment | last & !segment;
            let source = source_of(lane as u32, by[lane] & 31, segment);
            let inside = if is_up { source as i32 >= end as i32 } else { source <= end };
            let source = if inside { source as usize & 31 } else { lane };
            out[lane] = values[source];
            within |= u32::from(inside) << lane;
            if mask >> lane & 1 != 0 && mask >> source & 1 == 0 {
                bad = bad.or(Some(lane));
            }
        }
        store(r, to, out, mask);
        set_flag(r, flag, within, mask);
        bad
    })
}

/// What is asked of the lanes in which a predicate holds and of all that take part.
pub(crate) type Question = fn(u32, u32) -> bool;

/// Writes something of the lanes in which a predicate holds and of all that take part: to a predicate, or `None` for the
/// lanes themselves to a register.
pub(crate) fn vote(to: u16, from: (u16, bool), of: Option<Question>) -> ExchangeFn {
    ExchangeFn::new(move |r, mask| {
        let holds = r.predicate(from) & mask;
        match of {
            Some(of) => r.set_predicate(to, if of(holds, mask) { FULL } else { 0 }, mask),
            None => store(r, to, [holds; WARP], mask),
        }
        None
    })
}

/// The lanes with the same value, or all if `all` have it.
pub(crate) fn find_equal((to, flag): (u16, Option<u16>), (from, wide): (u16, bool), all: bool) -> ExchangeFn {
    ExchangeFn::new(move |r, mask| {
        let values = r.values(from, wide);
        let equal =
            |lane: usize| warps(mask).filter(|other| values[*other] == values[lane]).fold(0u32, |m, o| m | 1 << o);
        let groups: [u32; WARP] = std::array::from_fn(equal);
        let is_one = groups[mask.trailing_zeros() as usize & 31] == mask;
        let found = if is_one { mask } else { 0 };
        store(r, to, if all { [found; WARP] } else { groups }, mask);
        set_flag(r, flag, if is_one { FULL } else { 0 }, mask);
        None
    })
}

pub(crate) fn reduce(to: u16, from: u16, op: AtomicOp, ty: Ty) -> ExchangeFn {
    ExchangeFn::new(move |r, mask| {
        let values = r.values(from, false);
        let total = warps(mask).map(|lane| values[lane]).reduce(|a, b| apply(op, ty, a, b, 0)).unwrap_or(0);
        store(r, to, [total as u32; WARP], mask);
        None
    })
}

/// The lanes that take part.
pub(crate) fn active(to: u16) -> ExchangeFn {
    ExchangeFn::new(move |r, mask| {
        store(r, to, [mask; WARP], mask);
        None
    })
}

/// The first lane that takes part, and whether a lane is it.
pub(crate) fn elect(to: u16, flag: u16) -> ExchangeFn {
    ExchangeFn::new(move |r, mask| {
        let first = mask.trailing_zeros();
        store(r, to, [first; WARP], mask);
        r.set_predicate(flag, 1 << first, mask);
        None
    })
}
