//! A model of one problem, as searches ask it.

use tilewright_core::predictor::Scorer;
use tilewright_core::space::Point;

/// A predictor that is bound to a problem.
#[derive(Clone, Copy)]
pub struct Model<'a> {
    /// The predictor, bound to it.
    pub scorer: &'a dyn Scorer,
    /// Whether it takes too long to be asked for hundreds of neighbours before each measurement.
    pub is_costly: bool,
}

impl Model<'_> {
    /// The logs of the costs that are expected of legal points.
    pub fn log_costs(&self, points: &[Point]) -> Vec<f32> {
        self.scorer.score_each(points)
    }

    /// The cost that is expected of a legal point: seconds, or what the model's objective counts.
    pub fn cost(&self, point: &Point) -> f64 {
        self.log_costs(std::slice::from_ref(point)).first().map_or(f64::NAN, |log| f64::from(*log).exp())
    }
}
