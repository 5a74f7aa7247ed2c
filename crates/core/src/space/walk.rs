//! The streaming walk over the legal set.
//!
//! At every depth the words of all rules (see the memory of the space) are intersected; what is left is what the walk
//! descends into.

use super::BoundSpace;
use super::memory::{LANES, Memory};
use std::collections::BTreeMap;

/// A walk over the legal points of a space, or of a part of it; see [`BoundSpace::walk`].
#[derive(Debug)]
pub struct Walk<'a> {
    space: &'a BoundSpace,
    memory: &'a Memory,
    indices: Vec<u16>,
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
        let (params, fixed, memory) = (space.params(), prefix.len(), space.memory());
        let mut indices = prefix.to_vec();
        indices.resize(params.len(), 0);
        let (remaining, chunks) = (vec![0; params.len()], vec![0; params.len()]);
        let mut walk = Self { space, memory, indices, remaining, chunks, depth: fixed, fixed, single: false };
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
                self.depth = depth + 1;
                self.chunks[depth + 1] = 0;
                self.remaining[depth + 1] = self.allowed(depth + 1, 0);
            } else if !self.next_chunk() {
                if depth == self.fixed {
                    return false;
                }
                self.depth -= 1;
            }
        }
    }

    /// Goes on to the next values of this depth's parameter, if it has more than one word tells apart.
    fn next_chunk(&mut self) -> bool {
        let (depth, chunk) = (self.depth, self.chunks[self.depth] + 1);
        if chunk * LANES >= self.memory.levels()[depth].values {
            return false;
        }
        self.chunks[depth] = chunk;
        self.remaining[depth] = self.allowed(depth, chunk);
        true
    }

    #[inline]
    fn allowed(&self, depth: usize, chunk: usize) -> u64 {
        self.memory.allowed(self.space, depth, chunk, &self.indices)
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
            None => {
                let mut indices = vec![0; space.params().len()];
                census.legal = judge(space, &mut indices, 0, space.cartesian(), &mut rejected);
            }
        }
        for (rule, count) in space.rules().iter().zip(rejected).filter(|(_, count)| *count > 0) {
            *census.rejected_by.entry(rule.name.clone()).or_default() += count;
        }
        census
    }
}

/// Legal points below a node, which has `points` below it; the others are added to their rule.
fn judge(space: &BoundSpace, indices: &mut [u16], depth: usize, points: u128, rejected: &mut [u128]) -> u128 {
    let memory = space.memory();
    let Some(level) = memory.levels().get(depth) else { return points };
    let below = points / level.values as u128;
    let mut legal = 0;
    for chunk in 0..level.values.div_ceil(LANES) {
        let left = memory.take_away(space, (depth, chunk), indices, |check, taken| {
            rejected[check.rule] += u128::from(taken.count_ones()) * below;
        });
        legal += descend(left, chunk, indices, depth, |indices| judge(space, indices, depth + 1, below, rejected));
    }
    legal
}

/// Legal points below a node whose first parameters are fixed and hold.
pub(super) fn count(space: &BoundSpace, indices: &mut [u16], depth: usize) -> u64 {
    let memory = space.memory();
    let Some(level) = memory.levels().get(depth) else { return 1 };
    let mut legal = 0;
    for chunk in 0..level.values.div_ceil(LANES) {
        let left = memory.allowed(space, depth, chunk, indices);
        legal += descend(left, chunk, indices, depth, |indices| count(space, indices, depth + 1));
    }
    legal
}

/// The sum of `below` over the values of a chunk; at the last depth every value is one point.
fn descend<N: std::iter::Sum + From<u32>>(
    mut left: u64,
    chunk: usize,
    indices: &mut [u16],
    depth: usize,
    mut below: impl FnMut(&mut [u16]) -> N,
) -> N {
    if depth + 1 == indices.len() {
        return left.count_ones().into();
    }
    let values = std::iter::from_fn(|| {
        let bit = left.trailing_zeros();
        left &= left.wrapping_sub(1);
        (bit < u64::BITS).then_some(chunk * LANES + bit as usize)
    });
    values
        .map(|index| {
            indices[depth] = index as u16;
            below(indices)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::super::memory::MAX_CELLS;
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
