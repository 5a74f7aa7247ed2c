//! The reference: every element of C in higher precision, with a bound on the error of any summation order.
//!
//! Sums in f32 and narrower are accumulated in f64, f64 as if in twice the precision ([`super::product`]). The bound of an element is
//! `u * |alpha| * min(k + 4, 6 * sqrt(k) + 16) * |a_i| * |b_j| + 4 * u * |result|`, with `u` the unit round-off of the accumulator and `|.|`
//! the 2-norms of the row of A and the column of B (Cauchy-Schwarz over the sum of absolute products): the first
//! argument is the worst case, the second holds with overwhelming probability for rounding errors of random sign
//! (Higham and Mary, *A new approach to probabilistic rounding error analysis*, 2019, with lambda = 6).
//! Integer data small enough to be exact in the element type must match exactly.

use super::input::GemmInput;
use super::product::{Matrix, compensated, plain};
use super::workload::{A, ALPHA, B, BETA, C};
use tilewright_core::buffer::{Buffer, Buffers, Expected, ExpectedBuffer};
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;

pub(super) fn compute(input: &GemmInput, before: &Buffers, scalars: &[f64]) -> Expected {
    let c = &before[C];
    let mut values: Vec<f64> = (0..c.len()).map(|i| c.get_f64(i)).collect();
    let mut bounds = vec![0f32; c.len()];
    let products = if input.m > 0 && input.n > 0 { input.batch.count } else { 0 };
    for product in 0..products {
        let offsets = input.batch.offsets(product);
        let problem = Reference::new(input, before, offsets, scalars);
        for j in 0..input.n {
            for i in 0..input.m {
                let at = offsets[C] + j * input.ldc + i;
                values[at] = problem.update(i, j, values[at]);
                bounds[at] = problem.bound(i, j, values[at]);
            }
        }
    }
    Expected { buffers: vec![ExpectedBuffer { index: C, values, bounds }] }
}

struct Reference<'a> {
    input: &'a GemmInput,
    product: Matrix,
    alpha: f64,
    beta: f64,
    norm_a: Vec<f64>,
    norm_b: Vec<f64>,
    exact: bool,
}

impl<'a> Reference<'a> {
    fn new(input: &'a GemmInput, before: &Buffers, offsets: [usize; 3], scalars: &[f64]) -> Self {
        let (m, n, k) = if input.multiplies() { (input.m, input.n, input.k) } else { (input.m, input.n, 0) };
        let (alpha, beta) = (scalars[ALPHA], scalars[BETA]);
        let a = gather(&before[A], offsets[A], (m, k), input.lda, input.layout.a_transposed());
        let b = gather(&before[B], offsets[B], (k, n), input.ldb, input.layout.b_transposed());
        let exact = is_exact(input, &a.values, &b.values, &before[C], alpha, beta);
        let product = if input.types.accumulator == DType::F64 && !exact { compensated(&a, &b) } else { plain(&a, &b) };
        let (norm_a, norm_b) = (a.row_norms(), b.column_norms());
        Self { input, product, alpha, beta, norm_a, norm_b, exact }
    }

    fn update(&self, i: usize, j: usize, c: f64) -> f64 {
        let sum = self.product.values[j * self.product.rows + i];
        let product = if self.input.multiplies() { self.alpha * sum } else { 0.0 };
        if self.beta == 0.0 { product } else { product + self.beta * c }
    }

    fn bound(&self, i: usize, j: usize, value: f64) -> f32 {
        if self.exact {
            return 0.0;
        }
        let ElementTypes { accumulator, output, .. } = self.input.types;
        let u = accumulator.unit_roundoff();
        let k = self.input.k as f64;
        let growth = (k + 4.0).min(6.0 * k.sqrt() + 16.0);
        let product = if self.input.multiplies() { self.norm_a[i] * self.norm_b[j] } else { 0.0 };
        // Three roundings of the update act on both of its terms; |beta c| is at most |result| + |alpha sum|.
        let bound = u * (growth + 4.0) * self.alpha.abs() * product + 4.0 * u * value.abs();
        let bound = bound + (k + 4.0) * least(accumulator);
        // The result is rounded once more where C is of another type.
        let once = if output == accumulator { 0.0 } else { output.unit_roundoff() };
        let bound = bound * (1.0 + once) + once * value.abs() + least(output);
        // A bound must not round down to nothing.
        if bound.is_finite() { (bound as f32).next_up() } else { 0.0 }
    }
}

/// The error of rounding where numbers are too small for relative errors. Of types with eight bits of exponent and more it is
/// less than what bounds are rounded by.
fn least(dtype: DType) -> f64 {
    if dtype == DType::F16 { 2f64.powi(-25) } else { 0.0 }
}

/// op(X) in f64, from an element on.
fn gather(x: &Buffer, from: usize, (rows, columns): (usize, usize), ld: usize, transposed: bool) -> Matrix {
    let mut values = Vec::with_capacity(rows * columns);
    for j in 0..columns {
        for i in 0..rows {
            values.push(x.get_f64(from + if transposed { j + i * ld } else { i + j * ld }));
        }
    }
    Matrix { rows, columns, values }
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
    let u = input.types.accumulator.unit_roundoff().max(input.types.output.unit_roundoff());
    quarters(alpha) && quarters(beta) && total * 2.0 * u <= 1.0
}
