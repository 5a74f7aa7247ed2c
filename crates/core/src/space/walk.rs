//! The streaming walk over the legal set.
//!
//! At every depth the words of all rules (see the memory of the space) are intersected; what is left is what the walk
//! descends into.

use super::BoundSpace;
use super::bound::Check;
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
                census.legal = judge(space, &mut indices, 0, &mut |check, points| rejected[check.rule] += points);
            }
        }
        for (rule, count) in space.rules().iter().zip(rejected).filter(|(_, count)| *count > 0) {
            *census.rejected_by.entry(rule.name.clone()).or_default() += count;
        }
        census
    }
}

/// Legal points below a node whose first parameters are fixed and hold; `rejects` is called with rules and the illegal points
/// that each is the first to reject.
pub(super) fn judge(
    space: &BoundSpace,
    indices: &mut [u16],
    depth: usize,
    rejects: &mut impl FnMut(&Check, u128),
) -> u128 {
    let memory = space.memory();
    let Some(level) = memory.levels().get(depth) else { return 1 };
    let mut legal = 0;
    for chunk in 0..level.values.div_ceil(LANES) {
        let mut left = memory.take_away(space, (depth, chunk), indices, |check, taken| {
            rejects(check, u128::from(taken.count_ones()).saturating_mul(level.below));
        });
        if depth + 1 == indices.len() {
            legal += u128::from(left.count_ones());
            continue;
        }
        while left != 0 {
            indices[depth] = (chunk * LANES) as u16 + left.trailing_zeros() as u16;
            left &= left - 1;
            legal += judge(space, indices, depth + 1, rejects);
        }
    }
    legal
}

#[cfg(test)]
mod tests {
    use super::super::memory::MAX_CELLS;
    use super::super::{BoundSpace, Param, ParamSpace, RuleGroup, Symbols};

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
