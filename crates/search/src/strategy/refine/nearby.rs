//! Where to look next around what was measured: the model's word, corrected by the measurements of this very input.
//!
//! A model's error is mostly common to configurations that are much alike: it knows better which change of a good one helps
//! than which of two unlike ones is better. So neighbours of the best measured ones, and the best of its ranking, are scored
//! by what it expects and by what [`Residual`] has learnt meanwhile.

use super::residual::{Residual, Weights};
use super::sequence::Sequence;
use crate::model::Model;
use crate::neighbourhood::{Neighbourhood, Reach};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tilewright_core::space::{BoundSpace, Param, Point};

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
    space: &'a BoundSpace,
    /// Without one, what is measured first stands for all.
    model: Option<Model<'a>>,
    level: f32,
    /// What was not measured yet of the model's ranking, with the logs that it predicts.
    ranked: Vec<(f32, Point)>,
    residual: Residual,
    /// Outcomes that were learnt from.
    learnt: usize,
    weights: Option<Weights>,
    proposals: u32,
}

impl<'a> Nearby<'a> {
    /// `ranked` are the best of the model's search.
    pub(super) fn new(space: &'a BoundSpace, model: Option<Model<'a>>, ranked: Vec<Point>) -> Self {
        let residual = Residual::new(space);
        let mut new =
            Self { space, model, level: 0.0, ranked: Vec::new(), residual, learnt: 0, weights: None, proposals: 0 };
        new.ranked = new.scored(ranked);
        new
    }

    /// A legal point that nobody asked for yet, expected to be the best of those looked at; None if there is none.
    pub(super) fn propose(&mut self, history: &Sequence, rng: &mut ChaCha8Rng) -> Option<Point> {
        let best_first = history.by_cost();
        let best = best_first.first()?.1;
        self.learn(history, best);
        if self.proposals.is_multiple_of(DRAW_EVERY) {
            self.weights = Some(self.residual.draw(rng));
        }
        self.proposals += 1;
        let weights = self.weights.as_ref()?;
        let parent = parent(&best_first, self.space.params(), rng);
        let mut around = self.around(parent, rng);
        around.retain(|point| !history.knows(point));
        let around = self.scored(around);
        let expected = |(log, point): &(f32, Point)| f64::from(*log) + weights.expect(point);
        let ranked = self.ranked.iter().filter(|(_, point)| !history.knows(point));
        let all = around.iter().chain(ranked).map(|known| (expected(known), &known.1));
        all.min_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1))).map(|found| found.1.clone())
    }

    /// The `count` points that are expected to be the best after all, measured or not: what single noisy times say of many
    /// configurations says more of each than its own.
    pub(super) fn favourites(&mut self, history: &Sequence, count: usize, rng: &mut ChaCha8Rng) -> Vec<Point> {
        let measured = history.by_cost();
        let Some(&(best, cost)) = measured.first() else { return Vec::new() };
        self.learn(history, cost);
        let weights = self.residual.mean();
        let mut all = self.around(best, rng);
        all.extend(measured.into_iter().map(|(point, _)| point.clone()));
        all.sort();
        all.dedup();
        let mut all: Vec<(f64, Point)> =
            self.scored(all).into_iter().map(|(log, point)| (f64::from(log) + weights.expect(&point), point)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        all.into_iter().take(count).map(|(_, point)| point).collect()
    }

    /// Learns from what was measured since the last time.
    fn learn(&mut self, history: &Sequence, best: f64) {
        if self.learnt == 0 {
            self.level = best.ln() as f32;
        }
        let new = &history.told()[self.learnt..];
        self.learnt += new.len();
        self.ranked.retain(|(_, point)| new.iter().all(|(told, _)| told != point));
        let took: Vec<&(Point, f64)> = new.iter().filter(|(_, cost)| cost.is_finite() && *cost > 0.0).collect();
        let logs = self.scored(took.iter().map(|(point, _)| point.clone()).collect());
        for ((log, point), (_, cost)) in logs.iter().zip(took) {
            self.residual.learn(point, cost.ln() - f64::from(*log), (cost / best).ln());
        }
    }

    /// All legal points with one change, and some with two.
    fn around(&self, parent: &Point, rng: &mut ChaCha8Rng) -> Vec<Point> {
        let around = Neighbourhood::of(self.space);
        let mut out = around.within(parent, Reach::Single);
        out.extend(around.pairs(parent, PAIRS, rng));
        out.sort();
        out.dedup();
        out
    }

    /// The points with the logs that the model predicts.
    fn scored(&self, points: Vec<Point>) -> Vec<(f32, Point)> {
        let scores = match &self.model {
            Some(model) => model.log_costs(&points),
            None => vec![self.level; points.len()],
        };
        scores.into_iter().zip(points).collect()
    }
}

/// The point to look around: one of the best few, or the best with some value; `best_first` is not empty.
fn parent<'h>(best_first: &[(&'h Point, f64)], params: &[Param], rng: &mut ChaCha8Rng) -> &'h Point {
    if rng.random::<f64>() < NICHES && !params.is_empty() {
        let at = rng.random_range(0..params.len());
        let value = rng.random_range(0..params[at].values.len()) as u16;
        if let Some((found, _)) = best_first.iter().find(|(point, _)| point.0[at] == value) {
            return found;
        }
    }
    // The product of two uniform numbers leans to the front.
    let lean = rng.random::<f64>() * rng.random::<f64>();
    best_first[(lean * best_first.len().min(PARENTS) as f64) as usize].0
}
