//! The data utilisation ratio (section 2.1 of the paper): which share of an array is used by accesses that leave gaps.
//!
//! It is that of the inside of an array: bytes that all instructions of a direction touch together within one step of the
//! stride, over the step. The emulator finds it over whole arrays, whose ends change it a little; in halves, thirds and
//! quarters both are the same for all but small arrays.

use super::lanes::Lanes;
use crate::ir::{Atom, Index, Sym};
use std::collections::{BTreeMap, BTreeSet};

/// Loads, or stores, of an array.
pub(super) type Side = (String, bool);

/// Multiples of so many bytes, and how many of them there are where that is a number.
type Shift = (i64, Option<i64>);

/// Where an instruction touches an array.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Touch {
    /// Bytes from the first thread's address.
    pub(super) values: usize,
    /// The first thread's address, as far as it is a number.
    pub(super) origin: i64,
    pub(super) bytes: u32,
    /// What blocks and iterations add.
    pub(super) shifts: Vec<Shift>,
}

impl Touch {
    /// The shifts of the shared part of an address.
    pub(super) fn shifts(shared: &Index, count: &dyn Fn(&Sym) -> Option<i64>) -> Vec<Shift> {
        let single = |factors: &[Atom]| match factors {
            [Atom::Sym(sym @ (Sym::Iteration(_) | Sym::Ctaid(_) | Sym::Digit(..)))] => Some(count(sym)),
            _ => None,
        };
        shared.terms().filter_map(|(factors, c)| Some((c, single(factors)?))).collect()
    }
}

/// All touches of arrays.
#[derive(Debug, Default)]
pub(super) struct Arrays(BTreeMap<Side, BTreeSet<Touch>>);

impl Arrays {
    pub(super) fn add(&mut self, side: Side, touch: Touch) {
        self.0.entry(side).or_default().insert(touch);
    }

    /// How many bytes of a step are used.
    pub(super) fn used(&self, lanes: &Lanes, side: &Side, step: i64) -> i64 {
        let step = step.abs();
        let mut parts: BTreeSet<(i64, i64)> = BTreeSet::new();
        for touch in self.0.get(side).into_iter().flatten() {
            let mut at: BTreeSet<i64> =
                lanes.values(touch.values).iter().map(|v| (v + touch.origin).rem_euclid(step)).collect();
            for (by, count) in &touch.shifts {
                at = shifted(&at, by.rem_euclid(step), *count, step);
            }
            for from in at {
                let to = from + i64::from(touch.bytes);
                parts.insert((from, to.min(step)));
                if to > step {
                    parts.insert((0, (to - step).min(step)));
                }
            }
        }
        let (mut used, mut end) = (0, 0);
        for (from, to) in parts {
            used += (to - from.max(end)).max(0);
            end = end.max(to);
        }
        used
    }
}

/// Remainders with multiples of a number added.
fn shifted(at: &BTreeSet<i64>, by: i64, count: Option<i64>, step: i64) -> BTreeSet<i64> {
    let (mut out, mut latest) = (at.clone(), at.clone());
    // Every remainder is new at most once.
    for _ in 1..count.unwrap_or(step).min(step) {
        latest = latest.iter().map(|x| (x + by).rem_euclid(step)).filter(|x| !out.contains(x)).collect();
        if latest.is_empty() {
            break;
        }
        out.extend(&latest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(sites: &[(i64, &[Shift])], each: i64, step: i64) -> i64 {
        let mut lanes = Lanes::new(32);
        let values = lanes.intern((0..32).map(|t| t * each).collect());
        let (mut arrays, side) = (Arrays::default(), ("x".to_owned(), false));
        for (origin, shifts) in sites {
            arrays.add(side.clone(), Touch { values, origin: *origin, bytes: 4, shifts: shifts.to_vec() });
        }
        arrays.used(&lanes, &side, step)
    }

    #[test]
    fn instructions_fill_each_others_gaps() {
        assert_eq!(used(&[(0, &[])], 8, 8), 4);
        assert_eq!(used(&[(0, &[]), (4, &[])], 8, -8), 8);
        assert_eq!(used(&[(0, &[]), (8, &[])], 12, 12), 8);
        // A loop goes through each thread's row of 16 elements, or through the first three.
        assert_eq!(used(&[(0, &[(4, None)])], 64, 64), 64);
        assert_eq!(used(&[(0, &[(4, Some(3))])], 64, 64), 12);
        // Further blocks lie at multiples of the step.
        assert_eq!(used(&[(0, &[(256, None)])], 8, 8), 4);
        assert_eq!(used(&[(10, &[])], 12, 12), 4);
    }
}
