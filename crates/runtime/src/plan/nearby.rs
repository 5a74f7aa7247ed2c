//! Where to look next around what was measured, by the model's word on differences.
//!
//! A model's error is mostly common to configurations that are much alike: it knows better which change of a good one helps
//! than which of two unlike ones is better. So neighbours of the best measured ones are ranked by what the model expects
//! the change to bring.

use super::pool::Pool;
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use tilewright_core::objective::Objective;
use tilewright_core::predictor::Scorer;
use tilewright_core::problem::Problem;
use tilewright_core::space::Point;

/// Measured points whose neighbours are looked at, the better ones more often.
const PARENTS: usize = 6;

/// Neighbours with two changes that are scored beside all those with one.
const PAIRS: usize = 96;

/// One in this many proposals is not the model's first choice, but one of its better ones.
const STRAY: u32 = 3;

/// Of the ranked neighbours, the part that counts as better ones.
const BETTER: usize = 5;

/// Proposes neighbours of measured points.
pub(super) struct Nearby<'a> {
    problem: &'a dyn Problem,
    scorer: Box<dyn Scorer + 'a>,
}

impl<'a> Nearby<'a> {
    pub(super) fn new(problem: &'a dyn Problem, scorer: Box<dyn Scorer + 'a>) -> Self {
        Self { problem, scorer }
    }

    /// A legal point that was not measured yet, beside one of the best that were; None if there is none.
    pub(super) fn propose(&self, pool: &Pool, objective: &Objective, rng: &mut ChaCha8Rng) -> Option<Point> {
        let mut parents = pool.by_cost(objective);
        parents.retain(|&at| pool.get(at).measurement().is_some());
        parents.truncate(PARENTS);
        if parents.is_empty() {
            return None;
        }
        // The product of two uniform numbers leans to the front.
        let lean = rng.random::<f64>() * rng.random::<f64>();
        let parent = &pool.get(parents[(lean * parents.len() as f64) as usize]).point;
        let mut around = self.around(parent, rng);
        around.retain(|point| !pool.contains(point));
        let mut scored = self.scored(around);
        scored.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        if rng.random_range(0..STRAY) == 0 {
            scored.truncate(scored.len().div_ceil(BETTER));
            return scored.choose(rng).map(|s| s.1.clone());
        }
        scored.into_iter().next().map(|s| s.1)
    }

    /// All legal points with one change, and some with two.
    fn around(&self, parent: &Point, rng: &mut ChaCha8Rng) -> Vec<Point> {
        let space = self.problem.space();
        let changes: Vec<(usize, u16)> = space
            .params()
            .iter()
            .enumerate()
            .flat_map(|(at, param)| (0..param.values.len() as u16).map(move |value| (at, value)))
            .filter(|&(at, value)| value != parent.0[at])
            .collect();
        let with = |changes: &[(usize, u16)]| {
            let mut point = parent.clone();
            changes.iter().for_each(|&(at, value)| point.0[at] = value);
            point
        };
        let mut out: Vec<Point> = changes.iter().map(|&change| with(&[change])).collect();
        if changes.len() > 1 {
            let mut change = || changes[rng.random_range(0..changes.len())];
            out.extend((0..PAIRS).map(|_| with(&[change(), change()])));
        }
        out.retain(|point| space.is_legal(point));
        out.sort();
        out.dedup();
        out
    }

    fn scored(&self, points: Vec<Point>) -> Vec<(f32, Point)> {
        let mut rows = Vec::new();
        for point in &points {
            self.problem.config_features(point, &mut rows);
        }
        let mut scores = vec![0.0; points.len()];
        self.scorer.score(&rows, &mut scores);
        scores.into_iter().zip(points).collect()
    }
}
