//! Instructions that look at other lanes of the warp.

use super::Worker;
use super::atomic::apply;
use super::shadow::warps;
use super::warp::Warp;
use crate::finding::Fault;
use crate::kernel::{Exchange, ExchangeKind as Kind};
use crate::lanes::{FULL, WARP, store};

impl Worker<'_> {
    pub(super) fn exchange(&mut self, w: usize, warp: &mut Warp, mask: u32, e: &Exchange) {
        let first = mask.trailing_zeros() as usize;
        if let Some(members) = e.members {
            let members = warp.registers.words[usize::from(members)].0;
            // Every lane must be in the mask that it names, and all lanes named must be here.
            let absent =
                warps(mask).find(|lane| members[*lane] >> lane & 1 == 0 || members[*lane] & warp.born & !mask != 0);
            if let Some(lane) = absent {
                self.fault(w, warp.pc, lane, None, Fault::InactiveLane);
            }
        }
        match e.kind {
            Kind::ShuffleUp | Kind::ShuffleDown | Kind::ShuffleXor | Kind::ShuffleIndex => {
                if let Some(lane) = shuffle(warp, mask, e) {
                    self.fault(w, warp.pc, lane, None, Fault::InactiveLane);
                }
            }
            Kind::VoteAll | Kind::VoteAny | Kind::VoteUniform | Kind::VoteBallot => vote(warp, mask, e),
            Kind::ActiveMask => store(&mut warp.registers, e.to, [mask; WARP], mask),
            Kind::MatchAny | Kind::MatchAll => find_equal(warp, mask, e),
            Kind::SyncWarp => {}
            Kind::Elect => {
                store(&mut warp.registers, e.to, [first as u32; WARP], mask);
                set_flag(warp, e.flag, 1 << first, mask);
            }
            Kind::Reduce(op, ty) => {
                let values = warp.registers.values(e.from, false);
                let join = |a, b| apply(op, ty, a, b, 0);
                let total = warps(mask).map(|lane| values[lane]).reduce(join).unwrap_or(0);
                store(&mut warp.registers, e.to, [total as u32; WARP], mask);
            }
        }
    }
}

fn set_flag(warp: &mut Warp, flag: Option<u16>, bits: u32, mask: u32) {
    if let Some(flag) = flag {
        warp.registers.set_predicate(flag, bits, mask);
    }
}

/// Moves values between lanes; the first lane that read from one that takes no part.
fn shuffle(warp: &mut Warp, mask: u32, e: &Exchange) -> Option<usize> {
    let lanes = |slot: u16| warp.registers.words[usize::from(slot)].0;
    let (from, by, clamp) = (lanes(e.from), lanes(e.lane), lanes(e.clamp));
    let (mut out, mut within, mut bad) = ([0; WARP], 0u32, None);
    for lane in 0..WARP {
        let (by, clamp) = (by[lane] & 31, clamp[lane]);
        let (last, segment) = (clamp & 31, clamp >> 8 & 31);
        let highest = lane as u32 & segment | last & !segment;
        let lowest = lane as u32 & segment;
        let (source, inside) = match e.kind {
            Kind::ShuffleUp => {
                let source = (lane as u32).wrapping_sub(by);
                (source, source as i32 >= highest as i32)
            }
            Kind::ShuffleDown => (lane as u32 + by, lane as u32 + by <= highest),
            Kind::ShuffleXor => (lane as u32 ^ by, lane as u32 ^ by <= highest),
            _ => (lowest | by & !segment, lowest | by & !segment <= highest),
        };
        let source = if inside { source as usize & 31 } else { lane };
        out[lane] = from[source];
        within |= u32::from(inside) << lane;
        if mask >> lane & 1 != 0 && mask >> source & 1 == 0 {
            bad = bad.or(Some(lane));
        }
    }
    store(&mut warp.registers, e.to, out, mask);
    set_flag(warp, e.flag, within, mask);
    bad
}

fn vote(warp: &mut Warp, mask: u32, e: &Exchange) {
    let holds = warp.registers.predicate((e.from, e.negate)) & mask;
    let result = match e.kind {
        Kind::VoteBallot => return store(&mut warp.registers, e.to, [holds; WARP], mask),
        Kind::VoteAll => holds == mask,
        Kind::VoteAny => holds != 0,
        _ => holds == 0 || holds == mask,
    };
    set_flag(warp, Some(e.to), if result { FULL } else { 0 }, mask);
}

fn find_equal(warp: &mut Warp, mask: u32, e: &Exchange) {
    let values = warp.registers.values(e.from, e.wide);
    let equal = |lane: usize| warps(mask).filter(|other| values[*other] == values[lane]).fold(0u32, |m, o| m | 1 << o);
    let groups: [u32; WARP] = std::array::from_fn(equal);
    if e.kind == Kind::MatchAny {
        return store(&mut warp.registers, e.to, groups, mask);
    }
    let all = groups[mask.trailing_zeros() as usize & 31] == mask;
    store(&mut warp.registers, e.to, [if all { mask } else { 0 }; WARP], mask);
    set_flag(warp, e.flag, if all { FULL } else { 0 }, mask);
}
