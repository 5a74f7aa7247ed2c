//! Legality by list, for recorded spaces whose rules are not known.

use super::{Param, Point};
use crate::expr::{Val, Value};

/// A sorted list of points over values.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    values: Vec<Vec<Value>>,
    /// Sorted, without doubles.
    points: Vec<Point>,
}

impl Listed {
    pub(super) fn new(params: &[Param], points: &[Point]) -> Self {
        let mut points = points.to_vec();
        points.sort_unstable();
        points.dedup();
        Self { values: params.iter().map(|p| p.values.clone()).collect(), points }
    }

    pub(super) fn points(&self) -> &[Point] {
        &self.points
    }

    /// Whether a listed point begins with these values. The values are those of the parameters; of two equal values of
    /// one parameter, the first is meant.
    pub(super) fn begins(&self, prefix: &[Val<'_>]) -> bool {
        let mut range = self.points.as_slice();
        for (depth, (values, wanted)) in self.values.iter().zip(prefix).enumerate() {
            let Some(index) = values.iter().position(|v| v.as_val() == *wanted) else { return false };
            let start = range.partition_point(|p| usize::from(p[depth]) < index);
            let len = range[start..].partition_point(|p| usize::from(p[depth]) == index);
            range = &range[start..start + len];
        }
        !range.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BoundSpace, SpaceError};
    use super::*;

    fn params() -> Vec<Param> {
        vec![Param::ints("a", [1, 2, 4]), Param::words("w", ["x", "y"]), Param::ints("b", [3])]
    }

    fn points(indices: &[[u16; 3]]) -> Vec<Point> {
        indices.iter().map(|i| Point(i.to_vec())).collect()
    }

    #[test]
    fn exactly_the_listed_points_are_legal() {
        let listed = points(&[[2, 1, 0], [0, 0, 0], [0, 1, 0]]);
        let space = BoundSpace::listed(params(), &listed, "recorded").unwrap();
        let mut walked = Vec::new();
        space.for_each_legal(|p| {
            walked.push(Point::from(p));
            true
        });
        assert_eq!(walked, points(&[[0, 0, 0], [0, 1, 0], [2, 1, 0]]));
        assert_eq!((space.cartesian(), space.count_legal()), (6, 3));
        let illegal = space.check(&[1, 0, 0]).unwrap_err();
        assert_eq!((illegal.rule.as_str(), illegal.why.as_str()), ("listed", "recorded"));
        assert_eq!(space.broken(&[2, 0, 0]), ["listed"]);
        assert!(space.is_legal(&[2, 1, 0]) && !space.is_legal(&[2, 0, 0]));
        let shards = space.shards(4);
        let mut parts = Vec::new();
        for shard in &shards {
            space.for_each_legal_in(shard, &mut |p: &[u16]| {
                parts.push(Point::from(p));
                true
            });
        }
        assert_eq!(parts, walked);
        assert_eq!(space.census().rejected_by.values().sum::<u128>(), 3);
        assert_eq!(space.listed_points(), Some(&walked[..]));
    }

    #[test]
    fn lists_may_be_empty_but_not_outside() {
        assert_eq!(BoundSpace::listed(params(), &[], "").unwrap().count_legal(), 0);
        let outside = points(&[[3, 0, 0]]);
        assert_eq!(BoundSpace::listed(params(), &outside, "").unwrap_err(), SpaceError::Outside(outside[0].clone()));
        assert_eq!(BoundSpace::listed(Vec::new(), &[Point(Vec::new())], "").unwrap().count_legal(), 1);
        assert_eq!(BoundSpace::listed(Vec::new(), &[], "").unwrap().count_legal(), 0);
    }
}
