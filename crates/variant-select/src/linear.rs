//! Least squares, and the linear algebra of it.

use std::iter::Sum;
use std::ops::{AddAssign, Mul};

/// Sums of weighted normal equations.
#[derive(Clone, Debug)]
pub(crate) struct Normal {
    width: usize,
    /// Lower triangle of the products, row-major with full rows.
    products: Vec<f64>,
    targets: Vec<f64>,
    weight: f64,
}

impl Normal {
    pub(crate) fn new(width: usize) -> Self {
        Self { width, products: vec![0.0; width * width], targets: vec![0.0; width], weight: 0.0 }
    }

    pub(crate) fn add(&mut self, row: &[f32], target: f64, weight: f64) {
        for i in 0..self.width {
            let x = f64::from(row[i]) * weight;
            self.targets[i] += x * target;
            let products = &mut self.products[i * self.width..=i * self.width + i];
            products.iter_mut().zip(row).for_each(|(p, &y)| *p += x * f64::from(y));
        }
        self.weight += weight;
    }

    /// Coefficients with a ridge relative to the mean square of each term; the first term is not penalised where it is
    /// the intercept. None where they are not finite.
    pub(crate) fn solve(&self, ridge: f64, intercept: bool) -> Option<Vec<f32>> {
        let n = self.width;
        let mut a = self.products.clone();
        for i in 0..n {
            let scale = if intercept { self.weight } else { a[i * n + i] };
            let penalty = if intercept && i == 0 { 1e-12 } else { ridge };
            a[i * n + i] += penalty * scale + f64::MIN_POSITIVE;
        }
        let mut x = self.targets.clone();
        factor(&mut a, n)?;
        solve(&a, &mut x);
        x.iter().all(|v| v.is_finite()).then(|| x.iter().map(|&v| v as f32).collect())
    }
}

/// The lower factor of a positive definite matrix of which the lower triangle is given, in place. None where it is not one.
pub(crate) fn factor(a: &mut [f64], n: usize) -> Option<()> {
    for i in 0..n {
        let (above, row) = a.split_at_mut(i * n);
        for j in 0..i {
            row[j] = (row[j] - dot(&above[j * n..j * n + j], &row[..j])) / above[j * n + j];
        }
        let rest = row[i] - dot(&row[..i], &row[..i]);
        row[i] = (rest > 0.0).then(|| rest.sqrt())?;
    }
    Some(())
}

/// Solves in place, given the lower factor of the matrix.
pub(crate) fn solve(factor: &[f64], x: &mut [f64]) {
    let n = x.len();
    for i in 0..n {
        x[i] = (x[i] - dot(&factor[i * n..i * n + i], &x[..i])) / factor[i * n + i];
    }
    // Row by row from below, so that memory is read in its order.
    for i in (0..n).rev() {
        x[i] /= factor[i * n + i];
        let (before, known) = (&factor[i * n..i * n + i], x[i]);
        x[..i].iter_mut().zip(before).for_each(|(x, a)| *x -= a * known);
    }
}

/// The inverse of a symmetric matrix, given its lower factor; both triangles.
pub(crate) fn inverse(factor: &[f64], n: usize) -> Vec<f64> {
    // Row i holds column i of the factor's inverse, which begins on the diagonal.
    let mut columns = vec![0.0f64; n * n];
    for (i, column) in columns.chunks_exact_mut(n).enumerate() {
        column[i] = factor[i * n + i].recip();
        for r in i + 1..n {
            column[r] = -dot(&factor[r * n + i..r * n + r], &column[i..r]) / factor[r * n + r];
        }
    }
    let mut out = vec![0.0f64; n * n];
    for i in 0..n {
        for j in 0..=i {
            let sum = dot(&columns[i * n + i..(i + 1) * n], &columns[j * n + i..(j + 1) * n]);
            out[i * n + j] = sum;
            out[j * n + i] = sum;
        }
    }
    out
}

/// Writes the inner product of a row with each of the rows of a matrix.
pub(crate) fn products(matrix: &[f32], row: &[f32], out: &mut [f32]) {
    for (out, other) in out.iter_mut().zip(matrix.chunks_exact(row.len().max(1))) {
        *out = dot(other, row);
    }
}

/// Inner product, in lanes so that it needs no chain of additions.
pub(crate) fn dot<T: Copy + Default + AddAssign + Mul<Output = T> + Sum>(a: &[T], b: &[T]) -> T {
    let mut lanes = [T::default(); 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let mut sum: T = a8.remainder().iter().zip(b8.remainder()).map(|(&x, &y)| x * y).sum();
    for (x, y) in a8.zip(b8) {
        for (lane, (&x, &y)) in lanes.iter_mut().zip(x.iter().zip(y)) {
            *lane += x * y;
        }
    }
    lanes.into_iter().for_each(|lane| sum += lane);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        const N: usize = 19;
        let entry = |i: usize, j: usize| (-(i.abs_diff(j) as f64) / 3.0).exp() + f64::from(u8::from(i == j));
        let whole: Vec<f64> = (0..N * N).map(|at| entry(at / N, at % N)).collect();
        let mut lower = whole.clone();
        factor(&mut lower, N).unwrap();
        let inverse = inverse(&lower, N);
        for i in 0..N {
            let mut x: Vec<f64> = whole[i * N..(i + 1) * N].to_vec();
            solve(&lower, &mut x);
            for j in 0..N {
                let one = f64::from(u8::from(i == j));
                let product = dot(&whole[i * N..(i + 1) * N], &inverse[j * N..(j + 1) * N]);
                assert!((product - one).abs() < 1e-12 && (x[j] - one).abs() < 1e-12, "{i} {j}: {product} {}", x[j]);
            }
        }
        assert!(factor(&mut [1.0, 0.0, 2.0, 1.0], 2).is_none());
    }
}
