//! Which configurations of an input to measure next.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::collections::{HashSet, VecDeque};
use tilewright_core::problem::Problem;
use tilewright_core::space::{BoundSpace, Point};
use tilewright_sampler::{DrawError, Sampler};

/// Winners of earlier inputs that are remembered.
const CARRIED_KEPT: usize = 24;

/// Measured configurations of an input before its best ones are varied.
const BEFORE_NEIGHBOURS: usize = 4;

/// Tries to find a point that was not measured yet.
const TRIES: u32 = 40;

/// Points that were the best for earlier inputs, newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct Carried(Vec<Point>);

impl Carried {
    pub(super) fn points(&self) -> &[Point] {
        &self.0
    }

    pub(super) fn add(&mut self, point: Point) {
        self.0.retain(|p| *p != point);
        if self.0.len() >= CARRIED_KEPT {
            self.0.remove(0);
        }
        self.0.push(point);
    }
}

/// The configurations measured for one input.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    points: HashSet<Point>,
    /// Best first, at most three.
    best: Vec<(f64, Point)>,
}

impl Seen {
    /// Records a point with its cost, infinite if it has none.
    pub(super) fn add(&mut self, point: &Point, cost: f64) {
        self.points.insert(point.clone());
        if cost.is_finite() {
            self.best.push((cost, point.clone()));
            self.best.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
            self.best.truncate(3);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    pub(super) fn contains(&self, point: &Point) -> bool {
        self.points.contains(point)
    }

    pub(super) fn best(&self) -> Option<&(f64, Point)> {
        self.best.first()
    }
}

/// What is proposed, from which sources.
pub(super) struct Mixture {
    pub(super) neighbours: f64,
    pub(super) carried: f64,
}

impl Mixture {
    /// A legal point not measured yet: the default first, then what a model suggests, then by the shares of the mixture.
    /// None if none was found: the space is small and seen.
    pub(super) fn propose(
        &self,
        problem: &dyn Problem,
        seen: &Seen,
        suggested: &mut VecDeque<Point>,
        carried: &Carried,
        sampler: &mut dyn Sampler,
        rng: &mut ChaCha8Rng,
    ) -> Result<Option<Point>, DrawError> {
        let space = problem.space();
        if seen.len() == 0
            && let Some(point) = problem.default_point().filter(|p| space.is_legal(p))
        {
            return Ok(Some(point));
        }
        while let Some(point) = suggested.pop_front() {
            if !seen.contains(&point) {
                return Ok(Some(point));
            }
        }
        for _ in 0..TRIES {
            let source: f64 = rng.random();
            let candidate = if source < self.neighbours && seen.len() >= BEFORE_NEIGHBOURS {
                neighbour(space, seen, rng)
            } else if source >= 1.0 - self.carried && !carried.0.is_empty() {
                let point = carried.0[rng.random_range(0..carried.0.len())].clone();
                space.is_legal(&point).then_some(point)
            } else {
                Some(sampler.draw(space, rng)?.point)
            };
            if let Some(point) = candidate.filter(|p| !seen.contains(p)) {
                return Ok(Some(point));
            }
        }
        Ok(None)
    }
}

/// One of the best points with one, two or three parameters changed; None if that is not legal.
fn neighbour(space: &BoundSpace, seen: &Seen, rng: &mut ChaCha8Rng) -> Option<Point> {
    if seen.best.is_empty() {
        return None;
    }
    let mut point = seen.best[rng.random_range(0..seen.best.len())].1.clone();
    let changes = 1 + usize::from(rng.random::<f64>() < 0.4) + usize::from(rng.random::<f64>() < 0.15);
    for _ in 0..changes {
        let at = rng.random_range(0..point.0.len());
        let values = space.params()[at].values.len() as u16;
        // Half of the steps go to an adjacent value: most parameters are sizes in order.
        point.0[at] = match rng.random_range(0..4) {
            0 => point.0[at].saturating_sub(1),
            1 => (point.0[at] + 1).min(values - 1),
            _ => rng.random_range(0..values),
        };
    }
    space.is_legal(&point).then_some(point)
}
