//! What is adjacent to a point: the one definition that every search uses.

use crate::listing::Listing;
use rand::{Rng, RngCore};
use tilewright_core::space::{BoundSpace, Param, Point};

/// A set of legal points that can be asked for a point: by the rules of a space, or on a held list.
pub trait Members {
    /// How the set names its points.
    type Member;

    /// The parameters, in index order.
    fn params(&self) -> &[Param];

    /// The point with these indices, which are of the parameters' values; none where it is not legal.
    fn member(&self, indices: &[u16]) -> Option<Self::Member>;
}

impl Members for BoundSpace {
    type Member = Point;

    fn params(&self) -> &[Param] {
        self.params()
    }

    fn member(&self, indices: &[u16]) -> Option<Point> {
        self.is_legal(indices).then(|| Point::from(indices))
    }
}

/// Points by number.
impl Members for Listing {
    type Member = u32;

    fn params(&self) -> &[Param] {
        self.params()
    }

    fn member(&self, indices: &[u16]) -> Option<u32> {
        self.find(indices)
    }
}

/// How far a neighbour may be, from near to far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// One parameter, to the value before or after.
    Adjacent,
    /// One parameter, to any value.
    Single,
    /// One parameter, to a value that is illegal alone, and another, to the nearest value that makes it legal: rules
    /// such as `t_m * t_n == threads` leave single changes no way through.
    Repaired,
}

impl Reach {
    /// From near to far.
    pub const ALL: [Self; 3] = [Self::Adjacent, Self::Single, Self::Repaired];
}

/// The neighbours of points in a set.
#[derive(Debug)]
pub struct Neighbourhood<'a, M: ?Sized>(&'a M);

impl<'a, M: Members + ?Sized> Neighbourhood<'a, M> {
    /// The neighbourhood of the points of a set.
    pub fn of(members: &'a M) -> Self {
        Self(members)
    }

    /// The neighbours of a point at one reach, appended to `out`, by parameter and then by value. `point` itself need not be legal.
    pub fn add(&self, point: &[u16], reach: Reach, out: &mut Vec<M::Member>) {
        let mut changed = point.to_vec();
        for (param, info) in self.0.params().iter().enumerate() {
            let here = point[param];
            let last = (info.values.len() - 1) as u16;
            let (low, high) = match reach {
                Reach::Adjacent => (here.saturating_sub(1), here.saturating_add(1).min(last)),
                Reach::Single | Reach::Repaired => (0, last),
            };
            for value in (low..=high).filter(|value| *value != here) {
                changed[param] = value;
                match (reach, self.0.member(&changed)) {
                    (Reach::Adjacent | Reach::Single, found) => out.extend(found),
                    (Reach::Repaired, None) => self.repair(&changed, param, out),
                    (Reach::Repaired, Some(_)) => {}
                }
            }
            changed[param] = here;
        }
    }

    /// The neighbours of a point at one reach.
    pub fn within(&self, point: &[u16], reach: Reach) -> Vec<M::Member> {
        let mut out = Vec::new();
        self.add(point, reach, &mut out);
        out
    }

    /// Every way to make a point legal by the least change of one parameter other than `fixed`.
    fn repair(&self, broken: &[u16], fixed: usize, out: &mut Vec<M::Member>) {
        let mut changed = broken.to_vec();
        for (param, info) in self.0.params().iter().enumerate().filter(|(p, _)| *p != fixed) {
            let here = broken[param];
            let mut values: Vec<u16> = (0..info.values.len() as u16).filter(|v| *v != here).collect();
            values.sort_by_key(|v| (v.abs_diff(here), *v));
            out.extend(values.into_iter().find_map(|value| {
                changed[param] = value;
                self.0.member(&changed)
            }));
            changed[param] = here;
        }
    }

    /// What is legal of `count` random pairs of changes; both may fall on one parameter.
    pub fn pairs(&self, point: &[u16], count: usize, rng: &mut dyn RngCore) -> Vec<M::Member> {
        let values = |(at, param): (usize, &Param)| (0..param.values.len() as u16).map(move |value| (at, value));
        let changes: Vec<(usize, u16)> = self.0.params().iter().enumerate().flat_map(values).collect();
        let changes: Vec<(usize, u16)> = changes.into_iter().filter(|&(at, value)| value != point[at]).collect();
        if changes.len() < 2 {
            return Vec::new();
        }
        let pair = |_| {
            let mut changed = point.to_vec();
            for _ in 0..2 {
                let (at, value) = changes[rng.random_range(0..changes.len())];
                changed[at] = value;
            }
            changed
        };
        let pairs: Vec<Vec<u16>> = (0..count).map(pair).collect();
        pairs.into_iter().filter_map(|changed| self.0.member(&changed)).collect()
    }

    /// The point with one, two or three parameters changed at random; none where that is not legal.
    pub fn varied(&self, point: &[u16], rng: &mut dyn RngCore) -> Option<M::Member> {
        let params = self.0.params();
        if params.is_empty() {
            return None;
        }
        let mut changed = point.to_vec();
        let changes = 1 + usize::from(rng.random::<f64>() < 0.4) + usize::from(rng.random::<f64>() < 0.15);
        for _ in 0..changes {
            let at = rng.random_range(0..changed.len());
            let values = params[at].values.len() as u16;
            // Half of the steps go to an adjacent value: most parameters are sizes in order.
            changed[at] = match rng.random_range(0..4) {
                0 => changed[at].saturating_sub(1),
                1 => (changed[at] + 1).min(values - 1),
                _ => rng.random_range(0..values),
            };
        }
        self.0.member(&changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use tilewright_core::space::{ParamSpace, RuleGroup, Symbols};

    fn space(rule: &str) -> BoundSpace {
        let space = ParamSpace::builder()
            .param(Param::ints("a", [1, 2, 4, 8]))
            .param(Param::ints("b", [1, 2, 4, 8]))
            .param(Param::ints("c", [1, 2, 3]))
            .rule("r", RuleGroup::User, rule, "");
        space.build().unwrap().bind(&Symbols::new()).unwrap()
    }

    #[test]
    fn a_space_and_its_list_agree_at_every_reach() {
        let space = space("a * b == 8 or a == c");
        let listing = Listing::new(&space).unwrap();
        for number in 0..listing.len() as u32 {
            let point = listing.point(number);
            for reach in Reach::ALL {
                let by_rules = Neighbourhood::of(&space).within(&point, reach);
                let by_number = Neighbourhood::of(&listing).within(&point, reach);
                let by_number: Vec<Point> = by_number.into_iter().map(|n| listing.point(n)).collect();
                assert_eq!(by_rules, by_number, "{point:?} {reach:?}");
                assert!(by_rules.iter().all(|p| space.is_legal(p) && *p != point));
            }
        }
    }

    #[test]
    fn reaches_hold_what_they_say() {
        let space = space("a * b == 8");
        let around = Neighbourhood::of(&space);
        let point = Point(vec![0, 3, 1]);
        assert_eq!(around.within(&point, Reach::Adjacent), [Point(vec![0, 3, 0]), Point(vec![0, 3, 2])]);
        assert_eq!(around.within(&point, Reach::Single).len(), 2);
        let repaired = around.within(&point, Reach::Repaired);
        assert!(repaired.contains(&Point(vec![1, 2, 1])), "a product is kept by two changes: {repaired:?}");
    }

    #[test]
    fn random_changes_are_legal_and_few() {
        let space = space("a + b + c != 5");
        let around = Neighbourhood::of(&space);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let point = Point(vec![0, 0, 0]);
        for _ in 0..200 {
            let found = around.pairs(&point, 3, &mut rng).into_iter().chain(around.varied(&point, &mut rng));
            assert!(found.into_iter().all(|p| space.is_legal(&p)));
        }
        let fixed = ParamSpace::builder().build().unwrap().bind(&Symbols::new()).unwrap();
        assert_eq!(Neighbourhood::of(&fixed).varied(&[], &mut rng), None);
        assert!(Neighbourhood::of(&fixed).pairs(&[], 3, &mut rng).is_empty());
    }
}
