//! A few inputs timed on the target: how it differs from what the sources foretell.
//!
//! The log cost of every variant on the target, relative to the others, is what the experts expect plus a Gaussian process: a shift of
//! every variant, weights of the single experts, and a part that is smooth in the features of the input. All are normal, so that what
//! K timed inputs say of another follows exactly, and where nothing was timed the experts' word stands.

mod covariance;
mod curve;
mod pick;

use crate::confidence::Confidence;
use crate::error::MtlError;
use crate::experts::{Expected, Experts, order};
pub use covariance::likeness;
use covariance::{Covariance, Point};
pub use curve::ShotScores;
pub(crate) use curve::curve;
use nalgebra::{Cholesky, DMatrix, DVector, Dyn};
pub use pick::{MOST, Pool, Worth};
use tilewright_core::choice::{Case, ChoiceSet};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// Most candidates of one shot that are kept, the fastest: a fit takes the cube of all.
const KEPT: usize = 24;

/// With fewer shots than these nobody is overruled: on the sets that were tried, one shot made choices worse by up to a hundredth.
const FEWEST: usize = 3;

/// How much devices differ, in log cost: standard deviations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Differences {
    /// Of a variant's shift.
    pub shift: f64,
    /// Of the part that is smooth in the input.
    pub local: f64,
    /// The distance over which it is, in standard deviations of every feature.
    pub reach: f64,
    /// Of an expert's weight.
    pub weight: f64,
    /// Of a measurement, and of what nothing explains.
    pub noise: f64,
}

/// What shows between the GPUs of one set of sparse matrices' products and one of convolution solvers.
impl Default for Differences {
    fn default() -> Self {
        Self { shift: 0.1, local: 0.3, reach: 1.0, weight: 0.3, noise: 0.15 }
    }
}

/// Experts who have seen a few inputs of the target.
pub struct Adapted {
    experts: Experts,
    covariance: Covariance,
    seen: Vec<Point>,
    /// The residuals, solved by the covariance.
    weights: Vec<f64>,
    shots: usize,
    confidence: Option<Confidence>,
}

impl Adapted {
    /// Nothing is timed yet: what the experts say holds. Features are scaled as they vary over `like`, and count by their weights, one a
    /// feature, in how alike two inputs are; by 1 where there are fewer.
    pub fn new(experts: Experts, differences: Differences, (like, weights): (&ChoiceSet, &[f64])) -> Self {
        let covariance = Covariance::new(differences, (like, weights), experts.len());
        Self { experts, covariance, seen: Vec::new(), weights: Vec::new(), shots: 0, confidence: None }
    }

    /// Says what a choice may lose by what rehearsals without shots lost, which is more than it will be.
    #[must_use]
    pub fn with_confidence(self, confidence: Option<Confidence>) -> Self {
        Self { confidence, ..self }
    }

    /// Learns from inputs of the target with the times of their variants; all that were seen before are forgotten. Fewer than three
    /// tell what to time next, but the experts' order stands.
    ///
    /// # Errors
    /// Costs that are not finite where a covariance is made of them.
    pub fn learn(&mut self, shots: &[Case]) -> Result<(), MtlError> {
        self.seen.clear();
        let mut residuals = Vec::new();
        for (at, case) in shots.iter().enumerate() {
            self.observe(at, case, &mut residuals);
        }
        self.shots = shots.len();
        self.weights = match self.seen.is_empty() {
            true => Vec::new(),
            false => self.factor()?.solve(&DVector::from_vec(residuals)).as_slice().to_vec(),
        };
        Ok(())
    }

    fn observe(&mut self, shot: usize, case: &Case, residuals: &mut Vec<f64>) {
        let Some(best) = case.best() else { return };
        let candidates: Vec<Candidate> = case.trials.iter().map(|t| t.candidate.clone()).collect();
        let expected = self.experts.expect(&case.features, &candidates);
        let costs: Vec<f64> = case.trials.iter().map(|t| t.relative_cost(best)).collect();
        let mean = costs.iter().sum::<f64>() / costs.len() as f64;
        let mut kept = VariantOrder::new();
        order(&costs, &mut kept);
        for &i in kept.iter().take(KEPT) {
            let point = self.covariance.point(&case.features, &candidates[i], (&expected, i), Some(shot));
            self.seen.push(point);
            residuals.push(costs[i] - mean - expected.mean[i]);
        }
    }

    fn factor(&self) -> Result<Cholesky<f64, Dyn>, MtlError> {
        let n = self.seen.len();
        let all = DMatrix::from_fn(n, n, |i, j| {
            self.covariance.between(&self.seen[i], &self.seen[j]) + if i == j { self.covariance.noise() } else { 0.0 }
        });
        Cholesky::new(all).ok_or_else(|| MtlError::Numeric("the covariance of what was timed is not positive".into()))
    }

    /// How many inputs were learned from.
    pub fn shots(&self) -> usize {
        self.shots
    }

    /// Relative log costs on the target.
    fn expect(&self, input: &[f32], candidates: &[Candidate]) -> Vec<f64> {
        self.adapted(input, candidates, &self.experts.expect(input, candidates))
    }

    /// The same, where what the experts expect is known.
    fn adapted(&self, input: &[f32], candidates: &[Candidate], expected: &Expected) -> Vec<f64> {
        let mut costs = expected.mean.clone();
        if self.seen.is_empty() {
            return costs;
        }
        for (i, (cost, candidate)) in costs.iter_mut().zip(candidates).enumerate() {
            let point = self.covariance.point(input, candidate, (expected, i), None);
            *cost +=
                self.seen.iter().zip(&self.weights).map(|(s, w)| w * self.covariance.between(&point, s)).sum::<f64>();
        }
        costs
    }
}

impl Selector for Adapted {
    fn rank(&self, input: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        match self.experts.models().next() {
            Some(leader) if self.shots < FEWEST => leader.rank(input, candidates, out),
            _ => order(&self.expect(input, candidates), out),
        }
    }

    fn relative_costs(&self, input: &[f32], candidates: &[Candidate], out: &mut Vec<f32>) -> bool {
        out.clear();
        out.extend(self.expect(input, candidates).into_iter().map(|c| c as f32));
        true
    }

    fn expected_loss(&self, input: &[f32], candidates: &[Candidate]) -> Option<f64> {
        Some(self.confidence.as_ref()?.of(self, input, candidates))
    }
}
