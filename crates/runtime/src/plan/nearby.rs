//! Where to look next around what was measured: the model's word, corrected by the measurements of this very input.
//!
//! A model's error is mostly common to configurations that are much alike: it knows better which change of a good one helps
//! than which of two unlike ones is better. So neighbours of the best measured ones, and the best of its ranking, are scored
//! by what it expects and by what [`Residual`] has learnt meanwhile.

use super::pool::Pool;
use super::residual::{Residual, Weights};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tilewright_core::objective::Objective;
use tilewright_core::predictor::Scorer;
use tilewright_core::problem::Problem;
use tilewright_core::space::{Param, Point};

/// Measured points whose neighbours are looked at, the better ones more often.
const PARENTS: usize = 6;

/// The share of proposals around the best that has one value of one parameter: what is best with the other axis, say, is many
/// changes away from the best of all, and may overtake it once its other parameters fit.
const NICHES: f64 = 0.3;

/// Neighbours with two changes that are scored beside all those with one.
const PAIRS: usize = 160;

/// Proposals between two draws of the weights.
const DRAW_EVERY: u32 = 4;

/// Proposes points to measure.
pub(super) struct Nearby<'a> {
    problem: &'a dyn Problem,
    /// Without one, what is measured first stands for all.
    scorer: Option<Box<dyn Scorer + 'a>>,
    level: f32,
    /// What was not measured yet of the model's ranking, with the logs that it predicts.
    ranked: Vec<(f32, Point)>,
    residual: Residual,
    /// Candidates of the pool that were learnt from.
    learnt: usize,
    weights: Option<Weights>,
    proposals: u32,
}

impl<'a> Nearby<'a> {
    /// `ranked` are the best of the model's search.
    pub(super) fn new(problem: &'a dyn Problem, scorer: Option<Box<dyn Scorer + 'a>>, ranked: Vec<Point>) -> Self {
        let residual = Residual::new(problem.space());
        let mut new =
            Self { problem, scorer, level: 0.0, ranked: Vec::new(), residual, learnt: 0, weights: None, proposals: 0 };
        new.ranked = new.scored(ranked);
        new
    }

    /// A legal point that was not measured yet, expected to be the best of those looked at; None if there is none.
    pub(super) fn propose(&mut self, pool: &Pool, objective: &Objective, rng: &mut ChaCha8Rng) -> Option<Point> {
        let mut parents = pool.by_cost(objective);
        parents.retain(|&at| pool.get(at).measurement().is_some());
        let best = pool.get(*parents.first()?).cost(objective);
        self.learn(pool, objective, best);
        if self.proposals.is_multiple_of(DRAW_EVERY) {
            self.weights = Some(self.residual.draw(rng));
        }
        self.proposals += 1;
        let weights = self.weights.as_ref()?;
        let parent = parent(pool, parents, self.problem.space().params(), rng);
        let mut around = self.around(parent, rng);
        around.retain(|point| !pool.contains(point));
        let around = self.scored(around);
        let expected = |(log, point): &(f32, Point)| f64::from(*log) + weights.expect(point);
        let all = around.iter().chain(&self.ranked).map(|known| (expected(known), &known.1));
        all.min_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1))).map(|found| found.1.clone())
    }

    /// The `count` points that are expected to be the best after all, measured or not: what single noisy times say of many
    /// configurations says more of each than its own.
    pub(super) fn favourites(
        &mut self,
        pool: &Pool,
        objective: &Objective,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Vec<Point> {
        let order = pool.by_cost(objective);
        let measured: Vec<Point> = order
            .into_iter()
            .filter(|&at| pool.get(at).measurement().is_some())
            .map(|at| pool.get(at).point.clone())
            .collect();
        let Some(best) = measured.first() else { return Vec::new() };
        let cost = pool.iter().map(|c| c.cost(objective)).fold(f64::INFINITY, f64::min);
        self.learn(pool, objective, cost);
        let weights = self.residual.mean();
        let mut all = self.around(best, rng);
        all.extend(measured);
        all.sort();
        all.dedup();
        let mut all: Vec<(f64, Point)> =
            self.scored(all).into_iter().map(|(log, point)| (f64::from(log) + weights.expect(&point), point)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        all.into_iter().take(count).map(|(_, point)| point).collect()
    }

    /// Learns from what was measured since the last time.
    fn learn(&mut self, pool: &Pool, objective: &Objective, best: f64) {
        if self.learnt == 0 {
            self.level = best.ln() as f32;
        }
        let new: Vec<_> = pool.iter().skip(self.learnt).collect();
        self.ranked.retain(|(_, point)| new.iter().all(|c| c.point != *point));
        self.learnt = pool.len();
        for (log, point) in self.scored(new.iter().map(|c| c.point.clone()).collect()) {
            let cost = new.iter().find(|c| c.point == point).map_or(f64::INFINITY, |c| c.cost(objective));
            if cost.is_finite() && cost > 0.0 {
                self.residual.learn(&point, cost.ln() - f64::from(log), (cost / best).ln());
            }
        }
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

    /// What the model expects of a point, in seconds (the objective's cost, if that is not the time).
    pub(super) fn predicted(&self, point: &Point) -> Option<f64> {
        self.scorer.as_ref()?;
        self.scored(vec![point.clone()]).first().map(|(log, _)| f64::from(*log).exp())
    }

    /// The points with the logs that the model predicts.
    fn scored(&self, points: Vec<Point>) -> Vec<(f32, Point)> {
        let scores = self.scorer.as_ref().map_or_else(|| vec![self.level; points.len()], |s| s.score_each(&points));
        scores.into_iter().zip(points).collect()
    }
}

/// The point to look around: one of the best few, or the best with some value; `best_first` is not empty.
fn parent<'p>(pool: &'p Pool, best_first: Vec<usize>, params: &[Param], rng: &mut ChaCha8Rng) -> &'p Point {
    if rng.random::<f64>() < NICHES && !params.is_empty() {
        let at = rng.random_range(0..params.len());
        let value = rng.random_range(0..params[at].values.len()) as u16;
        let point = |&at: &usize| &pool.get(at).point;
        if let Some(found) = best_first.iter().map(point).find(|point| point.0[at] == value) {
            return found;
        }
    }
    // The product of two uniform numbers leans to the front.
    let lean = rng.random::<f64>() * rng.random::<f64>();
    &pool.get(best_first[(lean * best_first.len().min(PARENTS) as f64) as usize]).point
}
