//! What the measurements of one input say that the model did not know.
//!
//! A model of all inputs is wrong about a single one in ways that its parameters explain: here prefetching further helps,
//! there packing costs more than elsewhere. Log of measured over predicted time is fitted by a Bayesian linear regression
//! with one weight for each value of each parameter; weights are drawn from the posterior (Thompson sampling), so that what
//! is uncertain gets tried.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tilewright_core::space::{BoundSpace, Point};

/// Standard deviation of a weight before anything is measured, in logarithms of time.
const PRIOR: f64 = 0.15;

/// The same of the level that all configurations share.
const LEVEL_PRIOR: f64 = 1.0;

/// Standard deviation of what the weights cannot explain, among good configurations.
const NOISE: f64 = 0.08;

/// The regression.
pub(super) struct Residual {
    /// Where the weights of each parameter begin.
    starts: Vec<usize>,
    /// Row-major lower triangle (the rest is unused) of the precision matrix.
    precision: Vec<f64>,
    weighted: Vec<f64>,
    size: usize,
}

/// Weights of the regression.
pub(super) struct Weights {
    starts: Vec<usize>,
    values: Vec<f64>,
}

impl Residual {
    pub(super) fn new(space: &BoundSpace) -> Self {
        let mut size = 1;
        let start = |param: &tilewright_core::space::Param| {
            size += param.values.len();
            size - param.values.len()
        };
        let starts: Vec<usize> = space.params().iter().map(start).collect();
        let mut precision = vec![0.0; size * size];
        for i in 0..size {
            let deviation = if i == 0 { LEVEL_PRIOR } else { PRIOR };
            precision[i * size + i] = 1.0 / (deviation * deviation);
        }
        Self { starts, precision, weighted: vec![0.0; size], size }
    }

    fn weights_of<'p>(&'p self, point: &'p Point) -> impl Iterator<Item = usize> + Clone + 'p {
        let own = self.starts.iter().zip(&point.0).map(|(start, value)| start + usize::from(*value));
        std::iter::once(0).chain(own)
    }

    /// Learns the log of measured over predicted time of a point that takes `behind` (log) longer than the best: what is far
    /// from the best is worth less.
    pub(super) fn learn(&mut self, point: &Point, residual: f64, behind: f64) {
        let noise = NOISE + behind.max(0.0);
        let certainty = 1.0 / (noise * noise);
        let own: Vec<usize> = self.weights_of(point).collect();
        for &i in &own {
            for &j in own.iter().filter(|&&j| j <= i) {
                self.precision[i * self.size + j] += certainty;
            }
            self.weighted[i] += certainty * residual;
        }
    }

    /// Weights drawn from the posterior.
    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> Weights {
        self.solve(|| normal(rng))
    }

    /// The mean of the posterior.
    pub(super) fn mean(&self) -> Weights {
        self.solve(|| 0.0)
    }

    fn solve(&self, mut deviation: impl FnMut() -> f64) -> Weights {
        let n = self.size;
        let mut l = self.precision.clone();
        cholesky(&mut l, n);
        // L y = b, then L' w = y + z: the mean plus a draw of the posterior's covariance.
        let mut w = self.weighted.clone();
        for i in 0..n {
            let known: f64 = (0..i).map(|j| l[i * n + j] * w[j]).sum();
            w[i] = (w[i] - known) / l[i * n + i];
        }
        w.iter_mut().for_each(|y| *y += deviation());
        for i in (0..n).rev() {
            w[i] /= l[i * n + i];
            let value = w[i];
            (0..i).for_each(|j| w[j] -= l[i * n + j] * value);
        }
        Weights { starts: self.starts.clone(), values: w }
    }
}

impl Weights {
    /// The expected log of measured over predicted time.
    pub(super) fn expect(&self, point: &Point) -> f64 {
        let own = self.starts.iter().zip(&point.0).map(|(start, value)| self.values[start + usize::from(*value)]);
        self.values[0] + own.sum::<f64>()
    }
}

/// The lower factor of a positive definite matrix, in place.
fn cholesky(a: &mut [f64], n: usize) {
    for i in 0..n {
        for j in 0..=i {
            let (before_j, from_j) = (&a[j * n..j * n + j], &a[i * n..i * n + j]);
            let sum: f64 = before_j.iter().zip(from_j).map(|(x, y)| x * y).sum();
            let rest = a[i * n + j] - sum;
            // The prior keeps the diagonal away from zero.
            a[i * n + j] = if i == j { rest.max(f64::MIN_POSITIVE).sqrt() } else { rest / a[j * n + j] };
        }
    }
}

/// A standard normal number (Box and Muller).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use tilewright_core::space::{Param, ParamSpace, Symbols};

    #[test]
    fn what_the_model_does_not_know_is_learnt() {
        let space = ParamSpace::builder()
            .param(Param::ints("a", [1, 2, 3]))
            .param(Param::ints("b", [1, 2]))
            .param(Param::ints("c", [1, 2, 3, 4]))
            .build()
            .unwrap()
            .bind(&Symbols::default())
            .unwrap();
        let truth = |p: &[u16]| 0.5 + [0.0, -0.2, 0.3][usize::from(p[0])] + [0.1, 0.0][usize::from(p[1])];
        let mut residual = Residual::new(&space);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for i in 0..200u16 {
            let point = Point(vec![i % 3, i / 3 % 2, i % 4]);
            residual.learn(&point, truth(&point.0) + 0.01 * normal(&mut rng), 0.0);
        }
        let mut errors = Vec::new();
        for _ in 0..50 {
            let weights = residual.draw(&mut rng);
            for p in [[0, 0, 0], [1, 1, 3], [2, 0, 2]] {
                errors.push((weights.expect(&Point(p.to_vec())) - truth(&p)).abs());
            }
        }
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        assert!(mean < 0.03, "{mean}");
        let unseen = Residual::new(&space);
        let draws: Vec<f64> = (0..300).map(|_| unseen.draw(&mut rng).expect(&Point(vec![0, 0, 0]))).collect();
        let spread = (draws.iter().map(|d| d * d).sum::<f64>() / draws.len() as f64).sqrt();
        let prior = (LEVEL_PRIOR * LEVEL_PRIOR + 3.0 * PRIOR * PRIOR).sqrt();
        assert!((spread / prior - 1.0).abs() < 0.15, "{spread} {prior}");
    }
}
