//! Every legal point, scored by a model.

mod screened;
mod sweep;
mod top;

use std::time::Instant;
use sweep::{Block, Sweep};
use tilewright_core::predictor::Scorer;
use tilewright_core::problem::Problem;
use tilewright_core::search::Ranked;
use top::Top;

/// How to search.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// How many of the best points to keep.
    pub k: usize,
    /// Whether a scorer's [`Scorer::screen`] is used where it has one.
    pub screen: bool,
    /// Called by any thread, after every block.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    /// Points that screening may hold for the full model. Beyond it the space is screened a second time instead, so
    /// that memory stays bounded; the result is the same.
    pub max_held: usize,
}

impl Options<'_> {
    /// The best `k`, screened where the model can, without progress, holding at most a million points.
    pub fn top(k: usize) -> Self {
        Self { k, screen: true, progress: None, max_held: 1 << 20 }
    }
}

/// What a search is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Looking at every legal point, with the cheap model or, without one, with the full one.
    Walk,
    /// Looking with the full model at what screening left.
    Survivors,
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What it is doing.
    pub stage: Stage,
    /// Points looked at in this stage.
    pub points: u64,
    /// Share of this stage that is done, 0 to 1.
    pub fraction: f64,
}

/// What a search looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Legal points of the space.
    pub legal: u64,
    /// Points scored by the cheap model; 0 without one.
    pub screened: u64,
    /// Points scored by the full model.
    pub dense: u64,
    /// Seconds until the cheap model was through; 0 without one.
    pub screening_s: f64,
    /// Seconds in all.
    pub seconds: f64,
}

/// The outcome of an exhaustive search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The best points with their predicted cost (seconds, or the cost of the model's objective), best first.
    pub ranked: Ranked,
    /// What was looked at.
    pub statistics: Statistics,
}

/// Scores every legal point of a problem and keeps the best.
///
/// Runs on the threads of the current rayon pool. The result does not depend on their number: points of equal score
/// are ranked in the order of the points. A score that is not a number counts as the worst.
///
/// With a [`Scorer::screen`] the cheap model looks at everything, and the full model only at points whose cheap score is
/// within the margin of the best cheap score, and at the k points of best cheap score.
pub fn exhaustive(problem: &dyn Problem, scorer: &dyn Scorer, options: &Options<'_>) -> Found {
    let start = Instant::now();
    let worth_it = options.screen && !problem.space().params().is_empty();
    let screen = if worth_it { scorer.screen() } else { None };
    let (top, mut statistics) = match screen {
        Some(screen) => screened::search(problem, scorer, &screen, options, start),
        None => dense(problem, scorer, options),
    };
    statistics.seconds = start.elapsed().as_secs_f64();
    Found { ranked: Ranked { points: top.into_points(), considered: statistics.legal }, statistics }
}

fn dense(problem: &dyn Problem, scorer: &dyn Scorer, options: &Options<'_>) -> (Top, Statistics) {
    let sweep = Sweep { problem, scorer, progress: options.progress };
    let keep = |top: &mut Top, block: Block<'_>| block.iter().for_each(|(point, score)| top.offer(point, score));
    let (tops, legal) = sweep.run(|| Top::new(options.k), keep);
    (Top::merge(options.k, tops), Statistics { legal, dense: legal, ..Statistics::default() })
}
