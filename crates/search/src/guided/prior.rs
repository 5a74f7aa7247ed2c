//! What is expected of a point before anything near it is measured: what other devices say, weighted by how well they
//! have predicted this one.

use crate::experience::{Views, squash};

/// Variance of what no view explains, relative to that of a view's weight: a view is trusted until a dozen outcomes speak
/// against it.
const RIDGE: f64 = 0.3;

/// A weighted sum of views.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prior {
    weights: Vec<f64>,
    constant: f64,
}

impl Prior {
    /// Regresses the values of told points on the views, with equal weights as the prior.
    pub(crate) fn fit(experience: &Views, told: &[(u32, f64)], values: &[f64]) -> Self {
        let views = experience.views.len();
        if views == 0 {
            return Self::default();
        }
        let equal = 1.0 / views as f64;
        let rows: Vec<Vec<f64>> = told.iter().map(|(n, _)| row(experience, *n)).collect();
        let count = rows.len().max(1) as f64;
        let mean = |v: usize| rows.iter().map(|r| r[v]).sum::<f64>() / count;
        let means: Vec<f64> = (0..views).map(mean).collect();
        let value_mean = values.iter().sum::<f64>() / count;
        let mut a = vec![vec![0.0; views]; views];
        let mut b = vec![0.0; views];
        for (row, value) in rows.iter().zip(values) {
            let centred: Vec<f64> = row.iter().zip(&means).map(|(x, m)| x - m).collect();
            let rest = value - value_mean - centred.iter().map(|x| x * equal).sum::<f64>();
            for i in 0..views {
                b[i] += centred[i] * rest;
                (0..views).for_each(|j| a[i][j] += centred[i] * centred[j]);
            }
        }
        (0..views).for_each(|i| a[i][i] += RIDGE);
        let change = solve(a, b);
        let weights: Vec<f64> = change.iter().map(|c| equal + c).collect();
        let constant = value_mean - weights.iter().zip(&means).map(|(w, m)| w * m).sum::<f64>();
        Self { weights, constant: if rows.is_empty() { 0.0 } else { constant } }
    }

    /// What is expected of a point.
    pub(crate) fn of(&self, experience: &Views, number: u32) -> f64 {
        if self.weights.is_empty() {
            return 0.0;
        }
        self.constant + row(experience, number).iter().zip(&self.weights).map(|(x, w)| x * w).sum::<f64>()
    }
}

/// What the views say of a point; where one says nothing, what the others say.
fn row(experience: &Views, number: u32) -> Vec<f64> {
    let raw = || experience.views.iter().map(|v| f64::from(v[number as usize]));
    let (sum, known) = raw().filter(|x| !x.is_nan()).fold((0.0, 0), |(s, n), x| (s + x, n + 1));
    // Unknown everywhere: twice as slow as the best.
    let other = if known > 0 { sum / f64::from(known) } else { squash(std::f64::consts::LN_2) };
    raw().map(|x| if x.is_nan() { other } else { x }).collect()
}

/// Solves a positive definite system by elimination.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for i in 0..n {
        for j in i + 1..n {
            let factor = a[j][i] / a[i][i];
            let pivot = a[i].clone();
            a[j].iter_mut().zip(pivot).skip(i).for_each(|(x, p)| *x -= factor * p);
            b[j] -= factor * b[i];
        }
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| a[i][k] * b[k]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_that_predicts_is_followed() {
        let mut experience = Views::new(40);
        let right: Vec<Option<f64>> = (0..40).map(|i| Some(1.0 + f64::from(i))).collect();
        let wrong: Vec<Option<f64>> = (0..40).map(|i| Some(1.0 + f64::from(i * 17 % 40))).collect();
        experience.add(right);
        experience.add(wrong);
        let told: Vec<(u32, f64)> = (0..20).map(|i| (i * 2, 0.0)).collect();
        let values: Vec<f64> = told.iter().map(|(n, _)| f64::from(experience.views[0][*n as usize])).collect();
        let prior = Prior::fit(&experience, &told, &values);
        assert!(prior.weights[0] > 0.8 && prior.weights[1] < 0.2, "{prior:?}");
        assert!((prior.of(&experience, 1) - f64::from(experience.views[0][1])).abs() < 0.1);
        let nothing = Prior::fit(&experience, &[], &[]);
        assert!((nothing.weights[0] - 0.5).abs() < 1e-9);
    }
}
