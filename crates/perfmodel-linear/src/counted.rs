//! The linear model as a predictor of tunable kernels: operation counts of a configuration times the weights of its device.

use crate::model::LinearModel;
use crate::table::Part;
use tilewright_core::device::DeviceSpec;
use tilewright_core::operations::{Amounts, Operations};
use tilewright_core::predictor::{BindError, Predictor, Scorer};
use tilewright_core::problem::Problem;
use tilewright_core::space::Points;

/// How properties end whose data are found in the last cache.
pub const IN_CACHE: &str = " in cache";

/// The part of a last cache that data may take to be found there.
const CACHED: f64 = 0.5;

/// No prediction is below this: weights of either sign can add up to nothing.
const LEAST_SECONDS: f64 = 1e-9;

/// Whether data of so many bytes are found in the last cache of a device.
pub fn is_cached(device: &DeviceSpec, bytes: f64) -> bool {
    bytes <= CACHED * device.fact("l2_bytes").unwrap_or(0) as f64
}

impl LinearModel {
    /// Seconds of operations, those of one phase after those of another; what is not among the weights costs nothing. `cached`
    /// says whether the data are found in the last cache, for models with weights of their own for that.
    ///
    /// The last wave of groups counts as if it were full, whatever the model says of others: what a group takes of a
    /// multiprocessor is not among the counts.
    pub fn seconds(&self, operations: &Operations, cached: bool) -> f64 {
        let knows_caches = self.weights.iter().any(|w| w.property.name.ends_with(IN_CACHE));
        let seconds = |phase: &Amounts| {
            let count = |name: &str| phase.get(name).copied().unwrap_or(0.0);
            let counts: Vec<f64> = self
                .weights
                .iter()
                .map(|w| match w.property.name.strip_suffix(IN_CACHE) {
                    Some(name) if cached => count(name),
                    Some(_) => 0.0,
                    None if knows_caches && cached && w.property.part == Part::Memory => 0.0,
                    None => count(&w.property.name),
                })
                .collect();
            self.predict(&counts, 1.0).seconds
        };
        operations.phases.iter().map(seconds).sum::<f64>().max(LEAST_SECONDS)
    }
}

impl Predictor for LinearModel {
    fn kind(&self) -> &str {
        "linear"
    }

    /// Counting takes a plan of every point.
    fn is_costly(&self) -> bool {
        true
    }

    /// Any kernel that counts its operations, which is tried on one of its points.
    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        let space = problem.space();
        let point = problem.default_point().or_else(|| space.first_legal());
        let legal = point.as_ref().and_then(|point| space.check(point).ok());
        if legal.is_some_and(|at| problem.operations(&at).is_none()) {
            return Err(BindError::Uncounted { kernel: problem.kernel(), device: problem.device().name.clone() });
        }
        Ok(Box::new(Counted { model: self, problem, cached: is_cached(problem.device(), problem.work().bytes) }))
    }
}

struct Counted<'a> {
    model: &'a LinearModel,
    problem: &'a dyn Problem,
    cached: bool,
}

impl Scorer for Counted<'_> {
    /// Endless for what is not legal, or has no counts.
    fn score(&self, points: Points<'_>, out: &mut [f32]) {
        for (point, out) in points.iter().zip(out) {
            let legal = self.problem.space().check(point).ok();
            let operations = legal.and_then(|at| self.problem.operations(&at));
            *out = operations.map_or(f32::INFINITY, |found| self.model.seconds(&found, self.cached).ln() as f32);
        }
    }
}
