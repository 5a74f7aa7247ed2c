//! Points to try an implementation on.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use tilewright_core::space::{BoundSpace, Point};

/// Fruitless draws in a row before the walk is asked instead.
const PATIENCE: usize = 20_000;

/// `count` points of the space, legal or not, uniformly; all of them where there are no more than that.
pub(crate) fn any_points(space: &BoundSpace, count: usize, seed: u64) -> Vec<Point> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    if space.cartesian() <= count as u128 {
        let mut all = vec![Vec::new()];
        for p in space.params() {
            let longer = |s: &Vec<u16>| {
                let s = s.clone();
                (0..p.values.len() as u16).map(move |i| [s.as_slice(), &[i]].concat())
            };
            all = all.iter().flat_map(longer).collect();
        }
        return all.into_iter().map(Point).collect();
    }
    (0..count).map(|_| draw(space, &mut rng)).collect()
}

fn draw(space: &BoundSpace, rng: &mut ChaCha8Rng) -> Point {
    Point(space.params().iter().map(|p| rng.random_range(0..p.values.len()) as u16).collect())
}

/// Up to `count` distinct legal points, drawn uniformly; from the start of the walk where legal points are too rare to
/// be drawn. Empty only if nothing is legal.
pub fn legal_points(space: &BoundSpace, count: usize, seed: u64) -> Vec<Point> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut found = BTreeSet::new();
    let mut order = Vec::new();
    let mut fruitless = 0;
    while fruitless < PATIENCE && order.len() < count {
        let point = draw(space, &mut rng);
        fruitless += 1;
        if space.is_legal(&point) && found.insert(point.clone()) {
            order.push(point);
            fruitless = 0;
        }
    }
    if order.len() == count {
        return order;
    }
    space.for_each_legal(|p| {
        if found.insert(Point::from(p)) {
            order.push(Point::from(p));
        }
        order.len() < count
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy;
    use tilewright_core::problem::Problem;

    #[test]
    fn drawn_points_are_legal_distinct_and_repeatable() {
        let problem = toy::problem(1000);
        let points = legal_points(problem.space(), 50, 7);
        assert_eq!(points.len(), 50);
        assert!(points.iter().all(|p| problem.space().is_legal(p)));
        assert_eq!(points.iter().collect::<BTreeSet<_>>().len(), 50);
        assert_eq!(points, legal_points(problem.space(), 50, 7));
        assert_ne!(points, legal_points(problem.space(), 50, 8));
    }

    #[test]
    fn rare_points_are_found_by_walking() {
        assert_eq!(legal_points(toy::tiny_problem(3).space(), 10, 0).len(), 3);
        assert_eq!(legal_points(toy::tiny_problem(0).space(), 10, 0), Vec::new());
    }

    #[test]
    fn small_spaces_are_enumerated() {
        let problem = toy::problem(10);
        assert_eq!(any_points(problem.space(), 3200, 0).len(), 3200);
        assert_eq!(any_points(problem.space(), 100, 0).len(), 100);
    }
}
