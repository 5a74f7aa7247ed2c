//! How far each feature reaches: the hyperparameters of the process, by its likelihood.

use super::Samples;
use crate::linear::{dot, factor, inverse};

/// Standard deviation of the prior of the log of a length.
const SPREAD: f64 = 1.0;
/// Bounds of the logs: of a length about where it begins, of the variance, of the noise.
const REACH: (f64, f64) = (-2.5, 3.5);
const VARIANCE: (f64, f64) = (-3.0, 3.0);
const NOISE: (f64, f64) = (-6.0, 1.0);
/// Steps of Rprop: the first, the least and the largest, and what a step is multiplied by where the slope keeps its sign or not.
const STEP: (f64, f64, f64) = (0.3, 0.01, 1.0);
const FASTER: f64 = 1.2;
const SLOWER: f64 = 0.5;

/// Logarithms of a length for each feature, of the variance and of the noise, relative to the scale of the costs.
#[derive(Clone, Debug)]
pub(super) struct Lengths {
    logs: Vec<f64>,
    width: usize,
}

impl Lengths {
    /// Where the logs of lengths begin: about a third more than the distance of two cases that differ by a deviation in every
    /// feature.
    fn first(width: usize) -> f64 {
        0.3 + 0.5 * (width as f64).ln()
    }

    fn new(width: usize) -> Self {
        let mut logs = vec![Self::first(width); width];
        logs.extend([0.0, -2.0]);
        Self { logs, width }
    }

    /// Climbs the posterior.
    pub(super) fn learn(samples: &Samples, steps: usize) -> Self {
        let mut found = Self::new(samples.width);
        let costs = standardised(samples);
        // One case, or costs that do not vary, tell nothing about lengths.
        if samples.count() < 2 || costs.is_empty() {
            return found;
        }
        let bounds = |i: usize| match i.checked_sub(samples.width) {
            None => (Self::first(samples.width) + REACH.0, Self::first(samples.width) + REACH.1),
            Some(0) => VARIANCE,
            Some(_) => NOISE,
        };
        let mut climb = Rprop { sizes: vec![STEP.0; found.logs.len()], last: vec![0.0; found.logs.len()] };
        for _ in 0..steps {
            let Some(slopes) = found.slopes(samples, &costs) else { break };
            for (i, (log, step)) in found.logs.iter_mut().zip(climb.steps(&slopes)).enumerate() {
                let (least, most) = bounds(i);
                *log = (*log + step).clamp(least, most);
            }
        }
        found
    }

    pub(super) fn variance(&self) -> f64 {
        self.logs[self.width].exp()
    }

    fn noise(&self) -> f64 {
        self.logs[self.width + 1].exp()
    }

    /// What each feature is multiplied by.
    pub(super) fn rates(&self) -> impl Iterator<Item = f64> {
        self.logs[..self.width].iter().map(|l| (-l).exp())
    }

    /// The same relative to what it is before anything is learned.
    pub(super) fn weights(&self) -> impl Iterator<Item = f64> {
        let first = Self::first(self.width).exp();
        self.rates().map(move |rate| rate * first)
    }

    /// Rows in units of the lengths.
    pub(super) fn scaled(&self, rows: &[f32]) -> Vec<f64> {
        let rates: Vec<f64> = self.rates().collect();
        rows.iter().enumerate().map(|(i, &x)| f64::from(x) * rates[i % self.width]).collect()
    }

    /// The lower triangle of the covariance of the costs at places, the noise on its diagonal.
    pub(super) fn covariance(&self, places: &[f64]) -> Vec<f64> {
        let n = places.len() / self.width;
        let mut out = vec![0.0; n * n];
        for (i, a) in places.chunks_exact(self.width).enumerate() {
            for (j, b) in places.chunks_exact(self.width).take(i).enumerate() {
                out[i * n + j] = self.variance() * (-distance(a, b)).exp();
            }
            out[i * n + i] = self.variance() + self.noise();
        }
        out
    }

    /// Slopes of the negative log posterior by the logs; none where the covariance is not positive.
    fn slopes(&self, samples: &Samples, costs: &[Vec<f64>]) -> Option<Vec<f64>> {
        let places = self.scaled(&samples.rows);
        let n = samples.count();
        let mut covariance = self.covariance(&places);
        factor(&mut covariance, n)?;
        let inverse = inverse(&covariance, n);
        let weights: Vec<Vec<f64>> =
            costs.iter().map(|y| inverse.chunks_exact(n).map(|row| dot(row, y)).collect()).collect();
        // Half of (classes C^-1 - sum of w w'), by which the slope of the covariance is multiplied and summed.
        let by = |i: usize, j: usize| {
            let products: f64 = weights.iter().map(|w| w[i] * w[j]).sum();
            0.5 * (costs.len() as f64 * inverse[i * n + j] - products)
        };
        let prior = |l: &f64| (l - Self::first(self.width)) / (SPREAD * SPREAD);
        let mut slopes: Vec<f64> = self.logs[..self.width].iter().map(prior).collect();
        slopes.extend([0.0, 0.0]);
        for (i, a) in places.chunks_exact(self.width).enumerate() {
            for (j, b) in places.chunks_exact(self.width).take(i).enumerate() {
                let far = distance(a, b);
                // Both triangles.
                let whole = 2.0 * by(i, j) * self.variance() * (-far).exp();
                slopes[self.width] += whole;
                let part = whole / far.max(1e-9);
                slopes.iter_mut().zip(a.iter().zip(b)).for_each(|(s, (a, b))| *s += part * (a - b) * (a - b));
            }
            let own = by(i, i);
            slopes[self.width] += own * self.variance();
            slopes[self.width + 1] += own * self.noise();
        }
        slopes.iter().all(|s| s.is_finite()).then_some(slopes)
    }
}

/// Steps of which only the direction follows the slope; their sizes follow how often that changes.
struct Rprop {
    sizes: Vec<f64>,
    last: Vec<f64>,
}

impl Rprop {
    /// The next step downhill.
    fn steps(&mut self, slopes: &[f64]) -> Vec<f64> {
        let step = |((size, last), &slope): ((&mut f64, &mut f64), &f64)| {
            let same = slope * *last;
            if same > 0.0 {
                *size = (*size * FASTER).min(STEP.2);
            } else if same < 0.0 {
                *size = (*size * SLOWER).max(STEP.1);
            }
            // Beyond a valley, one step of rest.
            *last = if same < 0.0 { 0.0 } else { slope };
            if *last == 0.0 { 0.0 } else { -last.signum() * *size }
        };
        self.sizes.iter_mut().zip(&mut self.last).zip(slopes).map(step).collect()
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// Costs of the classes that vary, one row each, on one scale.
fn standardised(samples: &Samples) -> Vec<Vec<f64>> {
    let n = samples.means.len();
    let of = |class: usize| samples.costs.iter().skip(class).step_by(n).copied().collect::<Vec<f64>>();
    let mut all: Vec<Vec<f64>> = (0..n).map(of).filter(|c| c.iter().any(|x| x.abs() > 1e-6)).collect();
    let cells = all.iter().map(Vec::len).sum::<usize>() as f64;
    let scale = (all.iter().flatten().map(|x| x * x).sum::<f64>() / cells).sqrt();
    all.iter_mut().flatten().for_each(|x| *x /= scale);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Costs that follow the first of two features.
    fn samples() -> Samples {
        let at = |i: usize| (0.37 * i as f32).sin();
        let rows = (0..60).flat_map(|i| [at(i), at(7 * i + 3)]).collect();
        let cost = |i: usize| 0.3 * f64::from(at(i)).tanh();
        let costs = (0..60).flat_map(|i| [cost(i), -cost(i)]).collect();
        Samples { rows, width: 2, costs, means: vec![0.5, 0.5] }
    }

    fn posterior(lengths: &Lengths, samples: &Samples, costs: &[Vec<f64>]) -> f64 {
        let n = samples.count();
        let mut c = lengths.covariance(&lengths.scaled(&samples.rows));
        factor(&mut c, n).unwrap();
        let logs: f64 = (0..n).map(|i| c[i * n + i].ln()).sum();
        let fit = |y: &Vec<f64>| {
            let mut x = y.clone();
            crate::linear::solve(&c, &mut x);
            0.5 * dot(&x, y)
        };
        let far = lengths.logs[..2].iter().map(|l| (l - Lengths::first(2)).powi(2)).sum::<f64>();
        costs.len() as f64 * logs + costs.iter().map(fit).sum::<f64>() + 0.5 * far / (SPREAD * SPREAD)
    }

    #[test]
    fn slopes_are_those_of_the_posterior() {
        let samples = samples();
        let costs = standardised(&samples);
        let mut lengths = Lengths::new(2);
        lengths.logs = vec![0.4, 1.1, 0.2, -1.5];
        let slopes = lengths.slopes(&samples, &costs).unwrap();
        for (i, slope) in slopes.iter().enumerate() {
            let at = |d: f64| {
                let mut moved = lengths.clone();
                moved.logs[i] += d;
                posterior(&moved, &samples, &costs)
            };
            let numeric = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!((numeric - slope).abs() < 1e-4 * (1.0 + numeric.abs()), "{i}: {numeric} {slope}");
        }
    }

    #[test]
    fn a_feature_without_influence_reaches_far() {
        let found = Lengths::learn(&samples(), 25);
        assert!(found.logs[1] > found.logs[0] + 1.0, "{:?}", found.logs);
    }
}
