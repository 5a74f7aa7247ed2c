//! Hyperparameters by the likelihood of what was measured.

use super::axes::Axis;
use super::dot::dot64;
use super::kernel::{Hyper, NOISE, RATE, SHARE, factors};

/// Rounds over all hyperparameters.
const ROUNDS: usize = 2;
/// Step of the first round; halved in each.
const STEP: f32 = 1.0;
/// Standard deviations of the priors of rate, share and noise.
const SPREAD: [f64; 3] = [1.0, 1.5, 2.0];

/// The covariance matrix under way, factor by factor.
struct Fit<'a> {
    axes: &'a [Axis],
    points: &'a [&'a [u16]],
    values: &'a [f64],
    /// The product of all factors, lower triangle row by row.
    product: Vec<f64>,
    work: Vec<f64>,
}

/// Climbs the posterior of the hyperparameters, one at a time, from where they are.
pub(crate) fn improve(hyper: &mut Hyper, axes: &[Axis], points: &[&[u16]], values: &[f64]) {
    let n = points.len();
    let mut fit = Fit { axes, points, values, product: vec![1.0; n * (n + 1) / 2], work: vec![0.0; n * (n + 1) / 2] };
    for (i, axis) in axes.iter().enumerate() {
        let table = factors(axis, hyper.rate[i], hyper.share[i]);
        fit.multiply(axis, &table, None);
    }
    let mut best = fit.posterior(hyper, None);
    for round in 0..ROUNDS {
        let step = STEP / (1 << round) as f32;
        for (i, axis) in axes.iter().enumerate() {
            for which in 0..2 {
                for sign in [step, -step] {
                    let (rate, share) = (hyper.rate[i], hyper.share[i]);
                    let (new_rate, new_share) = if which == 0 { (rate + sign, share) } else { (rate, share + sign) };
                    let old = factors(axis, rate, share);
                    let new = factors(axis, new_rate, new_share);
                    (hyper.rate[i], hyper.share[i]) = (new_rate, new_share);
                    let found = fit.posterior(hyper, Some((i, &old, &new)));
                    if found > best {
                        best = found;
                        fit.multiply(axis, &new, Some(&old));
                        break;
                    }
                    (hyper.rate[i], hyper.share[i]) = (rate, share);
                }
            }
        }
        for sign in [step, -step] {
            hyper.noise += sign;
            let found = fit.posterior(hyper, None);
            if found > best {
                best = found;
                break;
            }
            hyper.noise -= sign;
        }
    }
}

impl Fit<'_> {
    fn multiply(&mut self, axis: &Axis, new: &[f32], old: Option<&[f32]>) {
        let mut at = 0;
        for (i, a) in self.points.iter().enumerate() {
            let row = usize::from(a[axis.param]) * axis.count;
            for b in &self.points[..=i] {
                let cell = row + usize::from(b[axis.param]);
                self.product[at] *= f64::from(new[cell]) / old.map_or(1.0, |o| f64::from(o[cell]));
                at += 1;
            }
        }
    }

    /// Log posterior, up to a constant, with the signal's variance at its most likely; `change` replaces the factors of an
    /// axis.
    fn posterior(&mut self, hyper: &Hyper, change: Option<(usize, &[f32], &[f32])>) -> f64 {
        let n = self.points.len();
        self.work.copy_from_slice(&self.product);
        if let Some((i, old, new)) = change {
            let axis = &self.axes[i];
            let ratio: Vec<f64> = new.iter().zip(old).map(|(n, o)| f64::from(*n) / f64::from(*o)).collect();
            let mut at = 0;
            for (i, a) in self.points.iter().enumerate() {
                let row = usize::from(a[axis.param]) * axis.count;
                for b in &self.points[..=i] {
                    self.work[at] *= ratio[row + usize::from(b[axis.param])];
                    at += 1;
                }
            }
        }
        let noise = f64::from(hyper.noise).exp();
        (0..n).for_each(|i| self.work[i * (i + 3) / 2] += noise);
        let Some((quadratic, log_diagonal)) = factorise(&mut self.work, self.values) else { return f64::NEG_INFINITY };
        let likelihood = -0.5 * n as f64 * (quadratic / n as f64).max(1e-12).ln() - log_diagonal;
        let prior = |x: f32, mean: f32, spread: f64| -0.5 * (f64::from(x - mean) / spread).powi(2);
        let rates: f64 = hyper.rate.iter().map(|r| prior(*r, RATE, SPREAD[0])).sum();
        let shares: f64 = hyper.share.iter().map(|s| prior(*s, SHARE, SPREAD[1])).sum();
        likelihood + rates + shares + prior(hyper.noise, NOISE, SPREAD[2])
    }
}

/// Cholesky's factor of a packed lower triangle in place; the quadratic form of the values, and the sum of the logs of the
/// diagonal. None if the matrix is not positive definite.
fn factorise(a: &mut [f64], values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len();
    let mut z: Vec<f64> = Vec::with_capacity(n);
    let (mut quadratic, mut log_diagonal) = (0.0, 0.0);
    for i in 0..n {
        let (before, row) = a.split_at_mut(i * (i + 1) / 2);
        for j in 0..i {
            let other = &before[j * (j + 1) / 2..][..=j];
            let dot = dot64(&row[..j], &other[..j]);
            row[j] = (row[j] - dot) / other[j];
        }
        let square = dot64(&row[..i], &row[..i]);
        let diagonal = (row[i] - square).sqrt();
        if diagonal.is_nan() || diagonal <= 0.0 {
            return None;
        }
        row[i] = diagonal;
        let dot = dot64(&row[..i], &z);
        let entry = (values[i] - dot) / diagonal;
        quadratic += entry * entry;
        log_diagonal += diagonal.ln();
        z.push(entry);
    }
    Some((quadratic, log_diagonal))
}
