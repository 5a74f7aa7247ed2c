//! The streaming walk over the legal set.
//!
//! Values of a parameter are bits of a word. A rule, given the values of the parameters that it mentions before the one
//! that decides it, leaves some of that one's values: a word again. Words are remembered by the combination of those
//! earlier values, so that a walk evaluates a rule once per combination and not once per point. The intersection of the
//! words of all rules is what the walk descends into.

use super::BoundSpace;
use super::bound::Check;
use crate::expr::Val;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Values of a parameter that one word tells apart.
const LANES: usize = 63;
/// The bit that marks a word as computed.
const KNOWN: u64 = 1 << LANES;
/// Rules over more combinations than this are evaluated anew each time: 1 MiB of words a rule at most.
const MAX_CELLS: usize = 1 << 17;

/// What walks remember of the rules of one bound space; shared by parallel walks.
#[derive(Debug)]
pub(super) struct Memory {
    levels: Vec<Level>,
}

/// The rules that one parameter decides.
#[derive(Debug)]
struct Level {
    values: usize,
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
            Level { values, rules: space.checks_at(depth + 1).iter().map(remember).collect() }
        };
        Self { levels: (0..space.params().len()).map(level).collect() }
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

    fn cell(&self, chunk: usize, indices: &[u16]) -> Option<&AtomicU64> {
        let at = self.strides.iter().map(|&(param, stride)| usize::from(indices[param]) * stride).sum::<usize>();
        self.cells.get(at + chunk)
    }
}

/// A walk over the legal points of a space, or of a part of it; see [`BoundSpace::walk`].
#[derive(Debug)]
pub struct Walk<'a> {
    space: &'a BoundSpace,
    memory: &'a Memory,
    indices: Vec<u16>,
    values: Vec<Val<'a>>,
    /// By depth: the values of the present chunk that are still to be visited.
    remaining: Vec<u64>,
    chunks: Vec<usize>,
    depth: usize,
    /// Parameters that are fixed.
    fixed: usize,
    /// A space whose parameters are all fixed has one point or none.
    single: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(space: &'a BoundSpace, prefix: &[u16]) -> Self {
        let (params, fixed) = (space.params(), prefix.len());
        let mut walk = Self {
            space,
            memory: space.memory(),
            indices: prefix.to_vec(),
            values: params.iter().zip(prefix).map(|(p, &i)| p.values[usize::from(i)].as_val()).collect(),
            remaining: vec![0; params.len()],
            chunks: vec![0; params.len()],
            depth: fixed,
            fixed,
            single: false,
        };
        walk.indices.resize(params.len(), 0);
        walk.values.resize(params.len(), Val::Int(0));
        let possible = space.prefix_holds(prefix);
        match params.get(fixed) {
            None => walk.single = possible,
            Some(_) if possible => walk.remaining[fixed] = walk.allowed(fixed, 0),
            Some(param) => walk.chunks[fixed] = param.values.len(),
        }
        walk
    }

    /// The next legal point.
    #[inline]
    pub fn next_point(&mut self) -> Option<&[u16]> {
        if self.advance() { Some(&self.indices) } else { None }
    }

    #[inline]
    fn advance(&mut self) -> bool {
        let last = self.indices.len();
        if self.fixed == last {
            return std::mem::take(&mut self.single);
        }
        loop {
            let depth = self.depth;
            let remaining = self.remaining[depth];
            if remaining != 0 {
                self.remaining[depth] = remaining & (remaining - 1);
                self.indices[depth] = (self.chunks[depth] * LANES) as u16 + remaining.trailing_zeros() as u16;
                if depth + 1 == last {
                    return true;
                }
                self.descend();
            } else if !self.next_chunk() {
                if depth == self.fixed {
                    return false;
                }
                self.depth -= 1;
            }
        }
    }

    /// Fixes the value of this depth and opens the next.
    fn descend(&mut self) {
        let depth = self.depth;
        self.values[depth] = self.space.params()[depth].values[usize::from(self.indices[depth])].as_val();
        self.depth = depth + 1;
        self.chunks[depth + 1] = 0;
        self.remaining[depth + 1] = self.allowed(depth + 1, 0);
    }

    /// Goes on to the next values of this depth's parameter, if it has more than one word tells apart.
    fn next_chunk(&mut self) -> bool {
        let (depth, chunk) = (self.depth, self.chunks[self.depth] + 1);
        if chunk * LANES >= self.memory.levels[depth].values {
            return false;
        }
        self.chunks[depth] = chunk;
        self.remaining[depth] = self.allowed(depth, chunk);
        true
    }

    /// The values of a chunk for which every rule holds that is decided at this depth.
    fn allowed(&mut self, depth: usize, chunk: usize) -> u64 {
        let (space, level) = (self.space, &self.memory.levels[depth]);
        let mut left = level.all(chunk);
        for (remembered, check) in level.rules.iter().zip(space.checks_at(depth + 1)) {
            left &= self.left_by(remembered, check, depth, chunk, left);
            if left == 0 {
                break;
            }
        }
        left
    }

    /// The values of a chunk for which one rule holds; correct for those in `among`, at least.
    fn left_by(&mut self, remembered: &Remembered, check: &Check, depth: usize, chunk: usize, among: u64) -> u64 {
        let Some(cell) = remembered.cell(chunk, &self.indices) else {
            return self.evaluate(check, depth, chunk, among);
        };
        let known = cell.load(Ordering::Relaxed);
        if known & KNOWN != 0 {
            return known;
        }
        let word = self.evaluate(check, depth, chunk, self.memory.levels[depth].all(chunk));
        cell.store(word | KNOWN, Ordering::Relaxed);
        word
    }

    fn evaluate(&mut self, check: &Check, depth: usize, chunk: usize, among: u64) -> u64 {
        let values = &self.space.params()[depth].values[chunk * LANES..];
        let (mut rest, mut word) = (among, 0);
        while rest != 0 {
            let bit = rest.trailing_zeros();
            rest &= rest - 1;
            self.values[depth] = values[bit as usize].as_val();
            word |= u64::from(check.holds(&self.values)) << bit;
        }
        word
    }
}

/// Legal and illegal points of a whole space; see [`BoundSpace::census`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Points for which every rule holds.
    pub legal: u128,
    /// By name of the first rule that they break in the order of checking, the other points.
    pub rejected_by: BTreeMap<String, u128>,
}

impl Census {
    pub(super) fn new(space: &BoundSpace) -> Self {
        let mut rejected = vec![0; space.rules().len()];
        let mut census = Self::default();
        match space.checks_at(0).iter().find(|c| !c.holds(&[])) {
            Some(check) => rejected[check.rule] = space.cartesian(),
            None => census.legal = count(&mut Walk::new(space, &[]), 0, space.cartesian(), &mut rejected),
        }
        for (rule, count) in space.rules().iter().zip(rejected).filter(|(_, count)| *count > 0) {
            *census.rejected_by.entry(rule.name.clone()).or_default() += count;
        }
        census
    }
}

/// Legal points below the present node, which has `points` below it; the others are added to their rule.
fn count(walk: &mut Walk<'_>, depth: usize, points: u128, rejected: &mut [u128]) -> u128 {
    let (space, memory) = (walk.space, walk.memory);
    let Some(level) = memory.levels.get(depth) else { return points };
    let below = points / level.values as u128;
    let mut legal = 0;
    for chunk in 0..level.values.div_ceil(LANES) {
        let mut left = level.all(chunk);
        for (remembered, check) in level.rules.iter().zip(space.checks_at(depth + 1)) {
            let kept = left & walk.left_by(remembered, check, depth, chunk, left);
            rejected[check.rule] += u128::from((left ^ kept).count_ones()) * below;
            left = kept;
        }
        if depth + 1 == memory.levels.len() {
            legal += u128::from(left.count_ones());
            continue;
        }
        while left != 0 {
            let index = chunk * LANES + left.trailing_zeros() as usize;
            left &= left - 1;
            walk.indices[depth] = index as u16;
            walk.values[depth] = space.params()[depth].values[index].as_val();
            legal += count(walk, depth + 1, below, rejected);
        }
    }
    legal
}

#[cfg(test)]
mod tests {
    use super::super::{BoundSpace, Param, ParamSpace, Point, RuleGroup, Shard, Symbols};
    use super::*;

    fn space(params: &[(&str, i64)], rules: &[&str]) -> BoundSpace {
        let mut builder = ParamSpace::builder();
        for &(name, values) in params {
            builder = builder.param(Param::ints(name, 1..=values));
        }
        for rule in rules {
            builder = builder.rule(rule, RuleGroup::User, rule, "");
        }
        builder.build().unwrap().bind(&Symbols::new().with("limit", 40)).unwrap()
    }

    fn all_points(space: &BoundSpace) -> Vec<Point> {
        space.params().iter().fold(vec![Point(Vec::new())], |points, param| {
            let extend = |p: &Point| {
                let p = p.clone();
                (0..param.values.len() as u16).map(move |i| Point([&p[..], &[i]].concat()))
            };
            points.iter().flat_map(extend).collect()
        })
    }

    fn walked(space: &BoundSpace, shard: &Shard) -> Vec<Point> {
        let mut out = Vec::new();
        assert!(space.for_each_legal_in(shard, &mut |p| {
            out.push(Point::from(p));
            true
        }));
        out
    }

    fn agrees_with_brute_force(space: &BoundSpace) {
        let legal: Vec<Point> = all_points(space).into_iter().filter(|p| space.check(p).is_ok()).collect();
        // Twice: the second walk reads what the first one remembered.
        assert_eq!(walked(space, &Shard(Vec::new())), legal);
        assert_eq!(walked(&space.clone(), &Shard(Vec::new())), legal);
        for at_least in [1, 2, 7, 50, 1_000_000] {
            let parts: Vec<Point> = space.shards(at_least).iter().flat_map(|s| walked(space, s)).collect();
            assert_eq!(parts, legal, "{at_least} parts");
        }
        assert_eq!(space.first_legal().as_ref(), legal.first());
        let census = space.census();
        assert_eq!(census.legal, legal.len() as u128);
        let mut rejected_by = BTreeMap::new();
        for rule in all_points(space).iter().filter_map(|p| space.first_broken(p)) {
            *rejected_by.entry(rule.name.clone()).or_default() += 1;
        }
        assert_eq!(census.rejected_by, rejected_by);
    }

    #[test]
    fn rules_of_any_reach_agree_with_brute_force() {
        agrees_with_brute_force(&space(
            &[("a", 5), ("b", 6), ("c", 4), ("d", 3)],
            &["a * b <= limit", "b % a == 0", "c != 2", "a + b + c * d <= 16", "(a * d) % c == 0"],
        ));
    }

    #[test]
    fn more_values_than_a_word_has_bits() {
        agrees_with_brute_force(&space(&[("a", 130), ("b", 64), ("c", 2)], &["a % b == 0", "a * c <= 100", "c < b"]));
        agrees_with_brute_force(&space(&[("a", 63)], &["a % 7 == 0"]));
        agrees_with_brute_force(&space(&[("a", 126)], &["a > 120"]));
    }

    #[test]
    fn rules_that_divide_by_zero_reject() {
        agrees_with_brute_force(&space(&[("a", 3), ("b", 3)], &["6 % (a - 2) == 0", "a // (b - a) >= 0"]));
    }

    #[test]
    fn empty_spaces_and_spaces_without_parameters() {
        agrees_with_brute_force(&space(&[("a", 3), ("b", 3)], &["limit < 40"]));
        agrees_with_brute_force(&space(&[("a", 3), ("b", 3)], &["a > 3"]));
        agrees_with_brute_force(&space(&[("a", 3), ("b", 3)], &["a + b > 6"]));
        agrees_with_brute_force(&space(&[], &[]));
        agrees_with_brute_force(&space(&[], &["limit < 40"]));
    }

    #[test]
    fn rules_over_more_combinations_than_are_remembered() {
        let (params, rules) = (&[("a", 70), ("b", 70), ("c", 70), ("d", 2)], &["a * b * c * d == 70 * 69"]);
        let space = space(params, rules);
        let reach = space.checks_at(4)[0].combinations;
        assert!(reach > MAX_CELLS, "{reach} are remembered");
        let mut legal = 0;
        space.for_each_legal(|p| {
            legal += 1;
            assert!(space.is_legal(p));
            true
        });
        let is_legal = |abc: &i64| [1, 2].iter().filter(|d| *abc * **d == 70 * 69).count();
        let expected: usize = (1..=70i64)
            .flat_map(|a| (1..=70).map(move |b| a * b))
            .flat_map(|ab| (1..=70).map(move |c| ab * c))
            .map(|abc| is_legal(&abc))
            .sum();
        assert_eq!(legal, expected);
    }

    #[test]
    fn a_walk_can_be_left_and_goes_on() {
        let space = space(&[("a", 3), ("b", 3)], &["a != b"]);
        let mut walk = space.walk();
        assert_eq!(walk.next_point(), Some(&[0, 1][..]));
        assert_eq!(walk.next_point(), Some(&[0, 2][..]));
        assert_eq!(std::iter::from_fn(|| walk.next_point().map(|p| p.to_vec())).count(), 4);
        assert_eq!(walk.next_point(), None);
        assert!(!space.for_each_legal(|p| p != [1, 0]));
    }

    #[test]
    fn next_values_are_those_with_a_rule_that_holds() {
        let space = space(&[("a", 3), ("b", 4)], &["a != 2", "a + b > 4"]);
        let mut out = Vec::new();
        assert_eq!(space.next_values(&[], &mut out).map(|r| &r.name), None);
        assert_eq!(out, [0, 2]);
        assert_eq!(space.next_values(&[0], &mut out).map(|r| &r.name), None);
        assert_eq!(out, [3]);
        let blocked = self::space(&[("a", 3), ("b", 4)], &["a + b > 40"]);
        assert_eq!(blocked.next_values(&[0], &mut out).map(|r| &*r.name), Some("a + b > 40"));
        assert!(out.is_empty());
        assert_eq!(blocked.next_values(&[0, 0], &mut out), None);
        let empty = self::space(&[("a", 3)], &["limit < 40"]);
        assert!(empty.next_values(&[], &mut out).is_some());
    }
}
