//! The reference: every element of C in higher precision, with a bound on the error of any summation order.
//!
//! f32 is accumulated in f64. f64 is accumulated by compensated products and sums (Ogita, Rump and Oishi, *Accurate sum
//! and dot product*, 2005, Dot2), as if in twice the precision. The bound of an element is
//! `u * |alpha| * min(k + 4, 6 * sqrt(k) + 16) * |a_i| * |b_j| + 4 * u * |result|`, with `u` the unit round-off and `|.|`
//! the 2-norms of the row of A and the column of B (Cauchy-Schwarz over the sum of absolute products): the first
//! argument is the worst case, the second holds with overwhelming probability for rounding errors of random sign
//! (Higham and Mary, *A new approach to probabilistic rounding error analysis*, 2019, with lambda = 6).
//! Integer data small enough to be exact in the element type must match exactly.

use super::input::GemmInput;
use super::workload::{A, ALPHA, B, BETA, C};
use rayon::prelude::*;
use tilewright_core::buffer::{Buffer, Buffers, Expected, ExpectedBuffer};
use tilewright_core::dtype::DType;

/// Rows of C whose accumulators stay in the first-level cache.
const ROWS: usize = 128;
/// Columns of C that share one pass over A.
const COLUMNS: usize = 4;

pub(super) fn compute(input: &GemmInput, before: &Buffers, scalars: &[f64]) -> Expected {
    let c = &before[C];
    let mut values: Vec<f64> = (0..c.len()).map(|i| c.get_f64(i)).collect();
    let mut bounds = vec![0f32; c.len()];
    if input.m > 0 && input.n > 0 {
        let problem = Reference::new(input, before, scalars);
        let columns = values.par_chunks_mut(input.ldc * COLUMNS).zip(bounds.par_chunks_mut(input.ldc * COLUMNS));
        columns.enumerate().for_each(|(block, (values, bounds))| problem.columns(block * COLUMNS, values, bounds));
    }
    Expected { buffers: vec![ExpectedBuffer { index: C, values, bounds }] }
}

/// A matrix as f64, its second index contiguous blocks of `rows`, split into high and low parts for exact products.
struct Split {
    rows: usize,
    whole: Vec<f64>,
    high: Vec<f64>,
    low: Vec<f64>,
}

struct Reference<'a> {
    input: &'a GemmInput,
    /// op(A), column after column of m.
    a: Split,
    /// op(B), column after column of k.
    b: Split,
    alpha: f64,
    beta: f64,
    norm_a: Vec<f64>,
    norm_b: Vec<f64>,
    exact: bool,
    compensated: bool,
}

impl<'a> Reference<'a> {
    fn new(input: &'a GemmInput, before: &Buffers, scalars: &[f64]) -> Self {
        let (m, n, k) = if input.multiplies() { (input.m, input.n, input.k) } else { (input.m, input.n, 0) };
        let (alpha, beta) = (scalars[ALPHA], scalars[BETA]);
        let a = gather(&before[A], m, k, input.lda, input.layout.a_transposed());
        let b = gather(&before[B], k, n, input.ldb, input.layout.b_transposed());
        let exact = is_exact(input, &a, &b, &before[C], alpha, beta);
        let compensated = input.dtype == DType::F64 && !exact;
        let mut norm_a = vec![0f64; m];
        for column in a.chunks_exact(m.max(1)) {
            norm_a.iter_mut().zip(column).for_each(|(s, x)| *s += x * x);
        }
        norm_a.iter_mut().for_each(|s| *s = s.sqrt());
        let norm = |j: usize| b[j * k..(j + 1) * k].iter().map(|x| x * x).sum::<f64>().sqrt();
        let norm_b = (0..n).map(norm).collect();
        let (a, b) = (Split::new(a, m, compensated), Split::new(b, k, compensated));
        Self { input, a, b, alpha, beta, norm_a, norm_b, exact, compensated }
    }

    /// A few neighbouring columns of C, from `first` on.
    fn columns(&self, first: usize, values: &mut [f64], bounds: &mut [f32]) {
        let count = COLUMNS.min(self.input.n - first);
        for row in (0..self.input.m).step_by(ROWS) {
            let rows = ROWS.min(self.input.m - row);
            let mut sum = [[0f64; ROWS]; COLUMNS];
            if self.compensated {
                self.dot2(row, rows, first, count, &mut sum);
            } else {
                self.dot(row, rows, first, count, &mut sum);
            }
            for (c, sum) in sum.iter().enumerate().take(count) {
                for (r, &sum) in sum.iter().enumerate().take(rows) {
                    let at = c * self.input.ldc + row + r;
                    values[at] = self.update(sum, values[at]);
                    bounds[at] = self.bound(row + r, first + c, values[at]);
                }
            }
        }
    }

    fn update(&self, sum: f64, c: f64) -> f64 {
        let product = if self.input.multiplies() { self.alpha * sum } else { 0.0 };
        if self.beta == 0.0 { product } else { product + self.beta * c }
    }

    fn bound(&self, i: usize, j: usize, value: f64) -> f32 {
        if self.exact {
            return 0.0;
        }
        let u = self.input.dtype.unit_roundoff();
        let k = self.input.k as f64;
        let growth = (k + 4.0).min(6.0 * k.sqrt() + 16.0);
        let product = if self.input.multiplies() { self.norm_a[i] * self.norm_b[j] } else { 0.0 };
        // Three roundings of the update act on both of its terms; |beta c| is at most |result| + |alpha sum|.
        let bound = u * (growth + 4.0) * self.alpha.abs() * product + 4.0 * u * value.abs();
        // A bound must not round down to nothing.
        if bound.is_finite() { (bound as f32).next_up() } else { 0.0 }
    }

    fn dot(&self, row: usize, rows: usize, first: usize, count: usize, sum: &mut [[f64; ROWS]; COLUMNS]) {
        for p in 0..self.b.rows {
            let a = &self.a.whole[p * self.a.rows + row..][..rows];
            for (c, sum) in sum.iter_mut().enumerate().take(count) {
                let b = self.b.whole[(first + c) * self.b.rows + p];
                sum.iter_mut().zip(a).for_each(|(s, &a)| *s += a * b);
            }
        }
    }

    fn dot2(&self, row: usize, rows: usize, first: usize, count: usize, sum: &mut [[f64; ROWS]; COLUMNS]) {
        let mut errors = [[0f64; ROWS]; COLUMNS];
        for p in 0..self.b.rows {
            let at = p * self.a.rows + row;
            let (a, high, low) = (&self.a.whole[at..][..rows], &self.a.high[at..][..rows], &self.a.low[at..][..rows]);
            for c in 0..count {
                let at = (first + c) * self.b.rows + p;
                let (b, b_high, b_low) = (self.b.whole[at], self.b.high[at], self.b.low[at]);
                let (sum, errors) = (&mut sum[c][..rows], &mut errors[c][..rows]);
                for r in 0..rows {
                    let product = a[r] * b;
                    let product_error =
                        ((high[r] * b_high - product) + high[r] * b_low + low[r] * b_high) + low[r] * b_low;
                    let total = sum[r] + product;
                    let z = total - sum[r];
                    let sum_error = (sum[r] - (total - z)) + (product - z);
                    sum[r] = total;
                    errors[r] += product_error + sum_error;
                }
            }
        }
        for (sum, errors) in sum.iter_mut().zip(&errors) {
            for (s, &e) in sum.iter_mut().zip(errors) {
                // With infinities the sum alone says what must propagate.
                if s.is_finite() {
                    *s += e;
                }
            }
        }
    }
}

impl Split {
    /// Dekker's split into two halves of at most 26 bits, where products are compensated.
    fn new(whole: Vec<f64>, rows: usize, split: bool) -> Self {
        const FACTOR: f64 = 134_217_729.0; // 2^27 + 1
        let half = |x: &f64| {
            let t = FACTOR * x;
            t - (t - x)
        };
        let high: Vec<f64> = if split { whole.iter().map(half).collect() } else { Vec::new() };
        let low = high.iter().zip(&whole).map(|(h, x)| x - h).collect();
        Self { rows, whole, high, low }
    }
}

/// op(X) as f64 without padding, `rows` x `columns`, column-major.
fn gather(x: &Buffer, rows: usize, columns: usize, ld: usize, transposed: bool) -> Vec<f64> {
    let mut out = Vec::with_capacity(rows * columns);
    for j in 0..columns {
        for i in 0..rows {
            out.push(x.get_f64(if transposed { j + i * ld } else { i + j * ld }));
        }
    }
    out
}

/// Whether every partial sum, in any order, is exact in the element type: integers whose sums of absolute products,
/// in the quarter units that alpha and beta leave, fit the significand.
fn is_exact(input: &GemmInput, a: &[f64], b: &[f64], c: &Buffer, alpha: f64, beta: f64) -> bool {
    let largest =
        |x: &[f64]| x.iter().try_fold(0f64, |m, &v| if v.fract() == 0.0 { Some(m.max(v.abs())) } else { None });
    let c: Vec<f64> = if beta == 0.0 { Vec::new() } else { (0..c.len()).map(|i| c.get_f64(i)).collect() };
    let (Some(a), Some(b), Some(c)) = (largest(a), largest(b), largest(&c)) else {
        return false;
    };
    let quarters = |x: f64| (4.0 * x).fract() == 0.0;
    let total = (a * b * input.k as f64 * alpha.abs().max(1.0) + c * beta.abs().max(1.0)) * 4.0;
    quarters(alpha) && quarters(beta) && total * 2.0 * input.dtype.unit_roundoff() <= 1.0
}
