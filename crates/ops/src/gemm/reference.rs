//! The reference: every element of C in higher precision, with a bound on the error of any summation order.
//!
//! Sums in f32 and narrower are accumulated in f64, f64 as if in twice the precision ([`crate::product`]). The bound of an element
//! is [`Bound::of`] the 2-norms of its row of A and its column of B.
//! Integer data small enough to be exact in the element type must match exactly.

use super::input::GemmInput;
use super::workload::{A, ALPHA, B, BETA, C};
use crate::bound::Bound;
use crate::product::{Matrix, compensated, plain};
use std::ops::Range;
use tilewright_core::buffer::{Buffer, Buffers, Comparison, Expected, ExpectedBuffer, Part, Verdict};
use tilewright_core::dtype::DType;

/// Bytes of each operand that are held in f64 at a time: the rows of A, and the columns of B, of one block.
const BLOCK_BYTES: usize = 32 << 20;

/// Columns of a block at least: a product of few columns leaves threads without work.
const FEWEST: usize = 64;

/// All of C.
pub(super) fn compute(input: &GemmInput, before: &Buffers, scalars: &[f64]) -> Expected {
    let c = &before[C];
    let mut values: Vec<f64> = (0..c.len()).map(|i| c.get_f64(i)).collect();
    let mut bounds = vec![0f32; c.len()];
    parts(input, (before, scalars), BLOCK_BYTES, &mut |part| {
        values[part.first..][..part.values.len()].copy_from_slice(part.values);
        bounds[part.first..][..part.values.len()].copy_from_slice(part.bounds);
    });
    Expected { buffers: vec![ExpectedBuffer { index: C, values, bounds }] }
}

/// Compares C after a run, block by block. What is no element of C must stand as it was.
pub(super) fn compare(input: &GemmInput, before: &Buffers, scalars: &[f64], after: &[Buffer]) -> Verdict {
    let (c, mut comparison) = (&before[C], Comparison::default());
    assert_eq!(after[C].len(), c.len(), "length of C");
    let mut written = vec![false; c.len()];
    parts(input, (before, scalars), BLOCK_BYTES, &mut |part| {
        written[part.first..][..part.values.len()].fill(true);
        comparison.add(&after[C], part);
    });
    for first in (0..c.len()).filter(|&i| !written[i]) {
        comparison.add(&after[C], &Part { buffer: C, first, values: &[c.get_f64(first)], bounds: &[0.0] });
    }
    comparison.verdict()
}

/// Every element of C, in runs of one column, block by block.
fn parts(
    input: &GemmInput,
    (before, scalars): (&Buffers, &[f64]),
    block_bytes: usize,
    visit: &mut dyn FnMut(&Part<'_>),
) {
    let (alpha, beta) = (scalars[ALPHA], scalars[BETA]);
    let (m, n, k) = if input.multiplies() { (input.m, input.n, input.k) } else { (input.m, input.n, 0) };
    let products = if m > 0 && n > 0 { input.batch.count } else { 0 };
    let most = |length: usize| (block_bytes / size_of::<f64>() / length.max(1)).max(FEWEST);
    for product in 0..products {
        let offsets = input.batch.offsets(product);
        let all = Operands { input, before, offsets, k };
        let exact = is_exact(&all, alpha, beta);
        for rows in blocks(m, most(k)) {
            let a = all.rows_of_a(&rows);
            for columns in blocks(n, most(k).min(most(rows.len()))) {
                let b = all.columns_of_b(&columns);
                let block = Reference::new(&all, (&a, &b), (alpha, beta), exact);
                for (j, column) in columns.enumerate() {
                    let first = offsets[C] + column * input.ldc + rows.start;
                    let update = |i: usize| block.update(i, j, before[C].get_f64(first + i));
                    let values: Vec<f64> = (0..rows.len()).map(update).collect();
                    let bounds: Vec<f32> = values.iter().enumerate().map(|(i, &v)| block.bound(i, j, v)).collect();
                    visit(&Part { buffer: C, first, values: &values, bounds: &bounds });
                }
            }
        }
    }
}

/// `0..length` in ranges that are at most so long.
fn blocks(length: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..length).step_by(most).map(move |from| from..(from + most).min(length))
}

/// The operands of one product.
struct Operands<'a> {
    input: &'a GemmInput,
    before: &'a Buffers,
    offsets: [usize; 3],
    /// 0 where nothing is multiplied.
    k: usize,
}

impl Operands<'_> {
    fn rows_of_a(&self, rows: &Range<usize>) -> Matrix {
        let (lda, transposed) = (self.input.lda, self.input.layout.a_transposed());
        let from = self.offsets[A] + rows.start * if transposed { lda } else { 1 };
        gather(&self.before[A], from, (rows.len(), self.k), lda, transposed)
    }

    fn columns_of_b(&self, columns: &Range<usize>) -> Matrix {
        let (ldb, transposed) = (self.input.ldb, self.input.layout.b_transposed());
        let from = self.offsets[B] + columns.start * if transposed { 1 } else { ldb };
        gather(&self.before[B], from, (self.k, columns.len()), ldb, transposed)
    }

    /// The elements that A and B are made of, with what lies between their columns left out.
    fn elements(&self, of: usize) -> impl Iterator<Item = f64> {
        let (buffer, input) = (&self.before[of], self.input);
        let ((rows, columns), ld) = if of == A { (input.a_stored(), input.lda) } else { (input.b_stored(), input.ldb) };
        let columns = if self.k == 0 { 0 } else { columns };
        let from = self.offsets[of];
        (0..columns).flat_map(move |j| (0..rows).map(move |i| buffer.get_f64(from + i + j * ld)))
    }
}

/// A block of the result.
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
    fn new(of: &Operands<'a>, (a, b): (&Matrix, &Matrix), (alpha, beta): (f64, f64), exact: bool) -> Self {
        let input = of.input;
        let product = if input.types.accumulator == DType::F64 && !exact { compensated(a, b) } else { plain(a, b) };
        let (norm_a, norm_b) = (a.row_norms(), b.column_norms());
        Self { input, product, alpha, beta, norm_a, norm_b, exact }
    }

    fn update(&self, i: usize, j: usize, c: f64) -> f64 {
        let sum = self.product.values[j * self.product.rows + i];
        let product = if self.input.multiplies() { self.alpha * sum } else { 0.0 };
        if self.beta == 0.0 { product } else { product + self.beta * c }
    }

    fn bound(&self, i: usize, j: usize, value: f64) -> f32 {
        let product = if self.input.multiplies() { self.norm_a[i] * self.norm_b[j] } else { 0.0 };
        let bound = Bound { types: self.input.types, length: self.input.k, exact: self.exact };
        bound.of(self.alpha.abs() * product, value)
    }
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
fn is_exact(of: &Operands<'_>, alpha: f64, beta: f64) -> bool {
    fn largest(mut x: impl Iterator<Item = f64>) -> Option<f64> {
        x.try_fold(0f64, |m, v| if v.fract() == 0.0 { Some(m.max(v.abs())) } else { None })
    }
    let (input, c) = (of.input, &of.before[C]);
    let c = (0..if beta == 0.0 { 0 } else { c.len() }).map(|i| c.get_f64(i));
    let (Some(a), Some(b), Some(c)) = (largest(of.elements(A)), largest(of.elements(B)), largest(c)) else {
        return false;
    };
    let quarters = |x: f64| (4.0 * x).fract() == 0.0;
    let total = (a * b * input.k as f64 * alpha.abs().max(1.0) + c * beta.abs().max(1.0)) * 4.0;
    let u = input.types.accumulator.unit_roundoff().max(input.types.output.unit_roundoff());
    quarters(alpha) && quarters(beta) && total * 2.0 * u <= 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{Gemm, Layout};
    use tilewright_core::buffer::Filling;
    use tilewright_core::computation::Computation;
    use tilewright_core::element::ElementTypes;

    /// Blocks of 64 rows and columns give the values and bounds of one block, and each element once.
    #[test]
    fn blocks_make_one_product() {
        for (layout, filling, dtype) in [
            (Layout::Nn, Filling::Real, DType::F32),
            (Layout::Tt, Filling::Real, DType::F64),
            (Layout::Nt, Filling::Exact, DType::F32),
            (Layout::Tn, Filling::Special, DType::F32),
        ] {
            let mut input = GemmInput::new(150, 131, 70, ElementTypes::all(dtype), layout);
            (input.lda, input.ldb, input.ldc) = (input.lda + 3, input.ldb + 1, input.ldc + 2);
            let work = Gemm.workload(&input, filling, 5);
            let whole = compute(&input, &work.buffers, &work.scalars).buffers.remove(0);
            let mut seen = vec![0; whole.values.len()];
            parts(&input, (&work.buffers, &work.scalars), 0, &mut |part| {
                for (i, (&value, bound)) in (part.first..).zip(part.values.iter().zip(part.bounds)) {
                    let close = (value - whole.values[i]).abs() <= 1e-12 * (1.0 + value.abs());
                    assert!(close || value.is_nan() && whole.values[i].is_nan() || value == whole.values[i]);
                    assert!((bound - whole.bounds[i]).abs() <= 1e-3 * bound, "{bound} {}", whole.bounds[i]);
                    seen[i] += 1;
                }
            });
            let rows = |i: usize| i % input.ldc < input.m;
            assert!(seen.iter().enumerate().all(|(i, &count)| count == usize::from(rows(i))), "{input:?}");
        }
    }
}
