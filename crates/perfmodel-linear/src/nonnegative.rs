//! Least squares, with weights of either sign or none below zero (Lawson and Hanson).

use crate::singular::{ZERO, decompose};
use ndarray::{Array1, Array2, Axis, s};

/// The shortest of the vectors that minimise `|A x - b|`.
pub(crate) fn least_squares(a: &Array2<f64>, b: &Array1<f64>) -> Array1<f64> {
    let (values, v) = decompose(a);
    let most = values.iter().copied().fold(0.0, f64::max);
    // A v = u s: the projections of b on u s, divided by s twice.
    let projected = a.dot(&v).t().dot(b);
    let scaled = projected.iter().zip(&values).map(|(p, s)| if *s > ZERO * most { p / (s * s) } else { 0.0 });
    v.dot(&scaled.collect::<Array1<f64>>())
}

/// Adds rows that pull every weight to zero.
pub(crate) fn with_ridge(a: &Array2<f64>, b: &Array1<f64>, ridge: f64) -> (Array2<f64>, Array1<f64>) {
    let (rows, n) = a.dim();
    let mut taller = Array2::zeros((rows + n, n));
    taller.slice_mut(s![..rows, ..]).assign(a);
    (0..n).for_each(|i| taller[(rows + i, i)] = ridge.sqrt());
    let mut longer = Array1::zeros(rows + n);
    longer.slice_mut(s![..rows]).assign(b);
    (taller, longer)
}

/// The vector without negative parts that minimises `|A x - b|`.
pub(crate) fn nonnegative(a: &Array2<f64>, b: &Array1<f64>) -> Array1<f64> {
    let n = a.ncols();
    let mut x = Array1::<f64>::zeros(n);
    let mut free: Vec<usize> = Vec::new();
    let tolerance = 1e-10 * a.t().dot(b).iter().fold(0.0f64, |m, g| m.max(g.abs()));
    for _ in 0..10 * n.max(1) {
        let slope = a.t().dot(&(b - &a.dot(&x)));
        let next = (0..n).filter(|i| !free.contains(i)).max_by(|i, j| slope[*i].total_cmp(&slope[*j]));
        let Some(next) = next.filter(|i| slope[*i] > tolerance) else { break };
        free.push(next);
        while !free.is_empty() {
            let z = least_squares(&a.select(Axis(1), &free), b);
            if z.iter().all(|v| *v > 0.0) {
                x.fill(0.0);
                free.iter().zip(&z).for_each(|(i, v)| x[*i] = *v);
                break;
            }
            // As far towards z as all stay above zero; those that reach it leave.
            let steps = free.iter().zip(&z).filter(|(_, v)| **v <= 0.0).map(|(i, v)| x[*i] / (x[*i] - v));
            let step = steps.fold(1.0, f64::min);
            free.iter().zip(&z).for_each(|(i, v)| x[*i] += step * (v - x[*i]));
            let least = free.iter().zip(&z).filter(|(_, v)| **v <= 0.0);
            let leaving = least.min_by(|(i, _), (j, _)| x[**i].total_cmp(&x[**j])).map(|(i, _)| *i);
            free.iter().for_each(|i| x[*i] = x[*i].max(0.0));
            free.retain(|i| x[*i] > 0.0 && Some(*i) != leaving);
            (0..n).filter(|i| !free.contains(i)).for_each(|i| x[i] = 0.0);
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn exact_systems_are_solved() {
        let a = array![[1.0, 2.0], [3.0, 1.0], [0.0, 1.0]];
        let x = array![0.5, 2.0];
        for found in [least_squares(&a, &a.dot(&x)), nonnegative(&a, &a.dot(&x))] {
            assert!((found - &x).iter().all(|e| e.abs() < 1e-12));
        }
    }

    #[test]
    fn negative_parts_become_zero_and_the_rest_is_optimal() {
        let a = array![[1.0, 1.0, 0.2], [1.0, 1.1, 0.1], [1.0, 0.9, 0.4], [2.0, 1.0, 0.3]];
        let b = array![1.0, 0.5, 1.4, 2.5];
        let x = nonnegative(&a, &b);
        assert!(x.iter().all(|v| *v >= 0.0));
        let slope = a.t().dot(&(&b - &a.dot(&x)));
        for (x, g) in x.iter().zip(&slope) {
            assert!(if *x > 0.0 { g.abs() < 1e-9 } else { *g < 1e-9 }, "weight {x}, slope {g}");
        }
    }
}
