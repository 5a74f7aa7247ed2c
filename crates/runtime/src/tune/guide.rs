//! Suggestions of a model that was fitted while the campaign runs.

use crate::error::RuntimeError;
use rand_chacha::ChaCha8Rng;
use std::collections::{HashMap, VecDeque};
use tilewright_core::predictor::{Predictor, Scorer};
use tilewright_core::problem::Problem;
use tilewright_core::space::Point;
use tilewright_sampler::Sampler;

/// Drawn points that suggestions begin from.
const DRAWN: usize = 32;

/// The best of them that are followed uphill.
const CLIMBS: usize = 8;

/// Steps of a climb at most.
const STEPS: u32 = 40;

/// A fitted model that says where to look.
pub(super) struct Guide {
    predictor: Box<dyn Predictor>,
}

impl Guide {
    pub(super) fn new(predictor: Box<dyn Predictor>) -> Self {
        Self { predictor }
    }

    /// Up to `count` points that the model expects to be the best: the ends of climbs over single-parameter changes, from
    /// the best of drawn points and of earlier winners, then the best of all that were looked at on the way.
    ///
    /// # Errors
    /// The model is of another schema.
    pub(super) fn suggest(
        &self,
        problem: &dyn Problem,
        count: usize,
        carried: &[Point],
        sampler: &mut dyn Sampler,
        rng: &mut ChaCha8Rng,
    ) -> Result<VecDeque<Point>, RuntimeError> {
        let space = problem.space();
        let mut starts: Vec<Point> = carried.iter().filter(|p| space.is_legal(p)).cloned().collect();
        // A space without legal points is told from this by whoever measures.
        starts.extend((0..DRAWN).map_while(|_| sampler.draw(space, rng).ok()).map(|d| d.point));
        starts.sort();
        starts.dedup();
        let scorer = self.predictor.bind(problem)?;
        let mut scored = Scored { problem, scorer: &*scorer, seen: HashMap::new() };
        let starts = scored.best_of(starts).into_iter().take(CLIMBS).collect::<Vec<_>>();
        let ends = starts.into_iter().map(|start| scored.climb(start)).collect();
        let rest = scored.seen.into_iter().map(|(point, score)| (score, point)).collect();
        Ok(distinct(ends, rest, count))
    }
}

/// The ends by score, then the rest by score, without repetition.
fn distinct(mut ends: Vec<(f32, Point)>, mut rest: Vec<(f32, Point)>, count: usize) -> VecDeque<Point> {
    let order = |a: &(f32, Point), b: &(f32, Point)| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1));
    ends.sort_by(order);
    rest.sort_by(order);
    let mut out: VecDeque<Point> = VecDeque::new();
    for (_, point) in ends.into_iter().chain(rest) {
        if out.len() == count {
            break;
        }
        if !out.contains(&point) {
            out.push_back(point);
        }
    }
    out
}

/// Scores that are asked for once.
struct Scored<'a> {
    problem: &'a dyn Problem,
    scorer: &'a dyn Scorer,
    seen: HashMap<Point, f32>,
}

impl Scored<'_> {
    /// The points, legal ones that were looked at before included, best first, with their scores.
    fn best_of(&mut self, points: Vec<Point>) -> Vec<(f32, Point)> {
        let fresh: Vec<&Point> = points.iter().filter(|p| !self.seen.contains_key(*p)).collect();
        let scores = self.scorer.score_each(fresh.iter().copied());
        let fresh: Vec<(Point, f32)> = fresh.into_iter().cloned().zip(scores).collect();
        self.seen.extend(fresh);
        let mut out: Vec<(f32, Point)> = points.into_iter().map(|p| (self.seen[&p], p)).collect();
        out.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        out
    }

    /// Goes to the best single change as long as there is a better one.
    fn climb(&mut self, start: (f32, Point)) -> (f32, Point) {
        let mut here = start;
        for _ in 0..STEPS {
            let around = self.around(&here.1);
            match self.best_of(around).into_iter().next() {
                Some(best) if best.0 < here.0 => here = best,
                _ => break,
            }
        }
        here
    }

    /// All legal points that differ in one parameter.
    fn around(&self, point: &Point) -> Vec<Point> {
        let space = self.problem.space();
        let mut out = Vec::new();
        for (at, param) in space.params().iter().enumerate() {
            for value in (0..param.values.len() as u16).filter(|v| *v != point.0[at]) {
                let mut changed = point.clone();
                changed.0[at] = value;
                if space.is_legal(&changed) {
                    out.push(changed);
                }
            }
        }
        out
    }
}
