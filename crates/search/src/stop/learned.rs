//! The tail beyond the best of a sample, by a relation learned from other spaces.

use super::sample::Sample;
use serde::{Deserialize, Serialize};

/// Number of features of a sample.
pub(super) const FEATURES: usize = 6;

/// How the chance of a miss follows from a sample.
///
/// If the number of points below a log cost falls off towards the optimum at a rate `s`, a uniform sample of the share
/// `f` has missed a point `w` below its best with the odds `(1 - f) / f * exp(-s w)`: the least of the sample is, in counts
/// of points below it, exponentially distributed. The odds of not having looked are known; the rate is read from how the
/// sample thins out towards its best, through one weight for each of the counts within 1, 2, 4 and 8 tolerances. The
/// weights are learned by logistic regression from random searches of other spaces, with the formula above as the prior.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// Weights: constant, log odds of not having looked, logs of the counts within 1, 2, 4 and 8 tolerances.
    pub weights: [f64; FEATURES],
}

impl Default for Tail {
    /// Fitted by [`super::fit_tail`] on the twelve exhaustively measured spaces that the crate's README names.
    fn default() -> Self {
        Self { weights: [-0.357, 0.758, -0.012, -0.024, -0.087, -0.200] }
    }
}

/// What the weights apply to.
pub(super) fn features(sample: &Sample) -> [f64; FEATURES] {
    let share = sample.share();
    let count = |widths: f64| (sample.within(widths) as f64).ln();
    [1.0, ((1.0 - share) / share).ln(), count(1.0), count(2.0), count(4.0), count(8.0)]
}

impl Tail {
    /// The probability that a point that was not seen is faster than the best seen by more than the tolerance.
    pub fn miss(&self, sample: &Sample) -> f64 {
        let odds: f64 = self.weights.iter().zip(features(sample)).map(|(w, x)| w * x).sum();
        1.0 / (1.0 + (-odds).exp())
    }
}
