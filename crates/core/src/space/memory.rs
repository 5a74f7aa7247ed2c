//! What is remembered of the rules of a bound space.
//!
//! Values of a parameter are bits of a word. A rule, given the values of the parameters that it mentions before the one
//! that decides it, leaves some of that one's values: a word again. Words are remembered by the combination of those
//! earlier values, so that a rule is evaluated once per combination and not once per point.

use super::BoundSpace;
use super::bound::Check;
use std::sync::atomic::{AtomicU64, Ordering};

/// Values of a parameter that one word tells apart.
pub(super) const LANES: usize = 63;
/// The bit that marks a word as computed.
const KNOWN: u64 = 1 << LANES;
/// Rules over more combinations than this are evaluated anew each time: 1 MiB of words a rule at most.
pub(super) const MAX_CELLS: usize = 1 << 17;
/// Up to as many combinations, checking one point computes the whole word: others will ask for it.
const FEW_CELLS: usize = 1 << 12;

/// What the rules of one bound space leave; shared by threads.
#[derive(Debug)]
pub(super) struct Memory {
    levels: Vec<Level>,
}

/// The rules that one parameter decides.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) values: usize,
    /// Points below each of them, legal or not.
    pub(super) below: u128,
    rules: Vec<Remembered>,
}

/// Which values a rule leaves, by the combination of the earlier values that it mentions.
#[derive(Debug)]
struct Remembered {
    /// Position and stride of the earlier parameters.
    strides: Vec<(usize, usize)>,
    /// Empty for a rule over too many combinations. Words hold `KNOWN` once computed; threads that compute the same word
    /// at the same time store the same value, so relaxed order is enough.
    cells: Box<[AtomicU64]>,
}

impl Memory {
    pub(super) fn new(space: &BoundSpace) -> Self {
        let level = |depth: usize| {
            let values = space.params()[depth].values.len();
            let remember = |check: &Check| Remembered::new(check, space, values.div_ceil(LANES));
            let after = space.params()[depth + 1..].iter();
            let below = after.fold(1, |points: u128, p| points.saturating_mul(p.values.len() as u128));
            Level { values, below, rules: space.checks_at(depth + 1).iter().map(remember).collect() }
        };
        Self { levels: (0..space.params().len()).map(level).collect() }
    }

    pub(super) fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The values of a chunk for which every rule holds that is decided at this depth.
    #[inline]
    pub(super) fn allowed(&self, space: &BoundSpace, depth: usize, chunk: usize, indices: &[u16]) -> u64 {
        self.take_away(space, (depth, chunk), indices, |_, _| {})
    }

    /// Calls `each` with the rules decided at this depth and the values of a chunk that each takes from what the rules
    /// before it left, until nothing is. Returns what is left.
    #[inline]
    pub(super) fn take_away<'a>(
        &self,
        space: &'a BoundSpace,
        (depth, chunk): (usize, usize),
        indices: &[u16],
        mut each: impl FnMut(&'a Check, u64),
    ) -> u64 {
        let level = &self.levels[depth];
        let mut left = level.all(chunk);
        for (remembered, check) in level.rules.iter().zip(space.checks_at(depth + 1)) {
            let kept = left & remembered.left(space, check, (depth, chunk), indices, left, level.all(chunk));
            each(check, left ^ kept);
            left = kept;
            if left == 0 {
                break;
            }
        }
        left
    }

    /// The first rule that a point breaks of those decided by a parameter.
    pub(super) fn first_broken<'a>(&self, space: &'a BoundSpace, point: &[u16]) -> Option<&'a Check> {
        let mut levels = self.levels.iter().enumerate().zip(point);
        levels.find_map(|((depth, level), &index)| {
            let (chunk, bit) = (usize::from(index) / LANES, 1 << (usize::from(index) % LANES));
            let mut rules = level.rules.iter().zip(space.checks_at(depth + 1));
            let holds = |(remembered, check): &(&Remembered, &Check)| {
                let fill = if remembered.cells.len() <= FEW_CELLS { level.all(chunk) } else { 0 };
                remembered.left(space, check, (depth, chunk), point, bit, fill) & bit != 0
            };
            rules.find(|rule| !holds(rule)).map(|(_, check)| check)
        })
    }
}

impl Level {
    /// The values of a chunk, all of them.
    fn all(&self, chunk: usize) -> u64 {
        let count = (self.values - chunk * LANES).min(LANES);
        (1 << count) - 1
    }
}

impl Remembered {
    fn new(check: &Check, space: &BoundSpace, chunks: usize) -> Self {
        let count = check.combinations.saturating_mul(chunks);
        if count > MAX_CELLS {
            return Self { strides: Vec::new(), cells: Box::default() };
        }
        let mut stride = chunks;
        let mut next = |&param: &usize| {
            let this = (param, stride);
            stride *= space.params()[param].values.len();
            this
        };
        // The last of the earlier parameters changes fastest in a walk and gets the smallest stride.
        let strides = check.earlier.iter().rev().map(&mut next).collect();
        Self { strides, cells: (0..count).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The values of a chunk for which the rule holds; right for those in `among`, at least. A word that is not known
    /// yet is computed for the values in `fill` and remembered, unless `fill` is empty.
    #[inline]
    fn left(
        &self,
        space: &BoundSpace,
        check: &Check,
        (depth, chunk): (usize, usize),
        indices: &[u16],
        among: u64,
        fill: u64,
    ) -> u64 {
        let at = self.strides.iter().map(|&(param, stride)| usize::from(indices[param]) * stride).sum::<usize>();
        let Some(cell) = self.cells.get(at + chunk) else {
            return evaluate(space, check, (depth, chunk), indices, among);
        };
        let known = cell.load(Ordering::Relaxed);
        if known & KNOWN != 0 {
            return known;
        }
        if fill == 0 {
            return evaluate(space, check, (depth, chunk), indices, among);
        }
        let word = evaluate(space, check, (depth, chunk), indices, fill);
        cell.store(word | KNOWN, Ordering::Relaxed);
        word
    }
}

#[cold]
fn evaluate(space: &BoundSpace, check: &Check, (depth, chunk): (usize, usize), indices: &[u16], among: u64) -> u64 {
    let own = &space.params()[depth].values[chunk * LANES..];
    space.with_slots(&indices[..depth], |values| {
        let (mut rest, mut word) = (among, 0);
        while rest != 0 {
            let bit = rest.trailing_zeros();
            rest &= rest - 1;
            values[depth] = own[bit as usize].as_val();
            word |= u64::from(check.holds(values)) << bit;
        }
        word
    })
}
