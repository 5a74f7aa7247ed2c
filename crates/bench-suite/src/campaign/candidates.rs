//! Configurations to time: drawn, near good ones, or expected to be good by a model.
//!
//! The space of a large input has too many legal points to look at all of them between two measurements; here a few ten
//! thousand are drawn, scored, and climbed from.

use rand::Rng;
use rand::seq::IndexedRandom;
use std::collections::HashMap;
use tilewright_core::predictor::Scorer;
use tilewright_core::problem::Problem;
use tilewright_core::space::{BoundSpace, Point};

/// Dead ends of a draw before the space counts as empty.
const DEAD_ENDS: usize = 64;

/// One in so many scored points is climbed from, the best ones.
const PER_CLIMB: usize = 1000;

/// Most that are climbed from.
const MOST_CLIMBS: usize = 24;

/// Steps of a climb at most.
const STEPS: usize = 30;

/// A legal point: each parameter uniform among the values that the rules leave it.
pub(super) fn draw(space: &BoundSpace, rng: &mut impl Rng) -> Option<Point> {
    let mut allowed = Vec::new();
    (0..DEAD_ENDS).find_map(|_| {
        let mut point = Vec::new();
        for _ in space.params() {
            allowed.clear();
            space.next_values(&point, &mut allowed);
            point.push(*allowed.choose(rng)?);
        }
        Some(Point(point)).filter(|p| space.is_legal(p))
    })
}

/// A legal point that differs in one parameter, or in two.
pub(super) fn neighbour(space: &BoundSpace, of: &Point, rng: &mut impl Rng) -> Option<Point> {
    (0..DEAD_ENDS).find_map(|_| {
        let mut point = of.clone();
        for _ in 0..rng.random_range(1..=2) {
            let at = rng.random_range(0..point.0.len());
            point.0[at] = rng.random_range(0..space.params()[at].values.len()) as u16;
        }
        Some(point).filter(|p| p != of && space.is_legal(p))
    })
}

/// Up to `count` points that the model expects most of, best first with what it expects, from `scored` drawn ones and from
/// `known` ones.
pub(super) fn promising(
    problem: &dyn Problem,
    scorer: &dyn Scorer,
    (scored, count): (usize, usize),
    known: &[Point],
    rng: &mut impl Rng,
) -> Vec<(Point, f64)> {
    let space = problem.space();
    let mut seen = Seen { problem, scorer, scores: HashMap::new() };
    let mut starts: Vec<Point> = known.iter().filter(|p| space.is_legal(p)).cloned().collect();
    starts.extend((0..scored).map_while(|_| draw(space, rng)));
    seen.score(&starts);
    for start in seen.best((scored / PER_CLIMB).clamp(1, MOST_CLIMBS)) {
        seen.climb(start.0);
    }
    seen.best(count).into_iter().map(|(point, score)| (point, f64::from(score).exp())).collect()
}

struct Seen<'a> {
    problem: &'a dyn Problem,
    scorer: &'a dyn Scorer,
    scores: HashMap<Point, f32>,
}

impl Seen<'_> {
    fn score(&mut self, points: &[Point]) {
        let mut fresh: Vec<&Point> = points.iter().filter(|p| !self.scores.contains_key(*p)).collect();
        fresh.sort();
        fresh.dedup();
        let scores = self.scorer.score_each(fresh.iter().copied());
        self.scores.extend(fresh.into_iter().cloned().zip(scores));
    }

    /// Goes to the best point that differs in one parameter, as long as that is better.
    fn climb(&mut self, mut at: Point) {
        let space = self.problem.space();
        for _ in 0..STEPS {
            let mut around = Vec::new();
            for (i, param) in space.params().iter().enumerate() {
                for value in 0..param.values.len() as u16 {
                    let mut point = at.clone();
                    point.0[i] = value;
                    if point != at && space.is_legal(&point) {
                        around.push(point);
                    }
                }
            }
            self.score(&around);
            let here = self.scores.get(&at).copied().unwrap_or(f32::INFINITY);
            let best = around.into_iter().min_by(|a, b| self.scores[a].total_cmp(&self.scores[b]));
            match best.filter(|p| self.scores[p] < here) {
                Some(better) => at = better,
                None => return,
            }
        }
    }

    /// Equal scores in the order of the points, so that the same seed gives the same list.
    fn best(&self, count: usize) -> Vec<(Point, f32)> {
        let mut all: Vec<(&Point, f32)> = self.scores.iter().map(|(p, s)| (p, *s)).collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(b.0)));
        all.into_iter().take(count).map(|(p, s)| (p.clone(), s)).collect()
    }
}
