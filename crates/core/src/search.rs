//! Searching a space by asking and telling.

use crate::measurement::Outcome;
use crate::space::Point;

/// Points with their cost, best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranked {
    /// Best first; equal costs in order of the points, so that the same run gives the same winner.
    pub points: Vec<(Point, f64)>,
    /// How many points were looked at.
    pub considered: u64,
}

/// A search strategy: proposes points, learns outcomes.
pub trait Search: Send {
    /// Up to `n` legal points to evaluate next, none asked before. Fewer mean that the strategy needs outcomes first;
    /// none, with nothing outstanding, that it has finished.
    fn ask(&mut self, n: usize) -> Vec<Point>;

    /// Outcomes of points, asked for or not (a warm start).
    fn tell(&mut self, seen: &[(Point, Outcome)]);

    /// The best points told so far.
    fn best(&self) -> Ranked;

    /// Up to `n` points, told or not, that the strategy expects to be the best after all, for a closer look; none where it expects
    /// nothing beyond what it was told.
    fn promising(&mut self, n: usize) -> Vec<Point> {
        let _ = n;
        Vec::new()
    }

    /// The probability, as far as the strategy can tell, that the best point told is not within its tolerance of the
    /// optimum; none where it makes no promise.
    fn bound(&self) -> Option<f64> {
        None
    }
}
