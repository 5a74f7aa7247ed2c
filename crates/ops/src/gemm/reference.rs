//! The reference: every element of C in higher precision, with a bound on the error of any summation order.
//!
//! Sums in f32 and narrower are accumulated in f64, f64 as if in twice the precision ([`crate::product`]). The bound of an element
//! is [`Bound::of`] the 2-norms of its row of A and its column of B.
//! Integer data small enough to be exact in the element type must match exactly, and so must all integer types.
//!
//! Both components of a complex element are sums of 2k real products, `ar br - ai bi` and `ar bi + ai br`: the same bound holds of
//! each, with twice the length and the norms of the complex row and column (Higham, *Accuracy and Stability of Numerical Algorithms*,
//! section 3.1, has the inner product; the sums of `|ar br| + |ai bi|` are at most the product of the norms, as for real ones).
//!
//! Where operands may be rounded, [`super::Accuracy`] says how far that moves a product; that is added to the bound as it is, since
//! roundings of equal operands do not cancel. It says, too, how long sums are and how much larger than the norms what they are made of,
//! where complex elements may be made of three real products.

use super::epilogue::Bias;
use super::input::GemmInput;
use super::workload::{A, ALPHA, B, BETA, BIAS, C};
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
    let mut values: Vec<f64> = (0..c.components()).map(|i| c.component(i)).collect();
    let mut bounds = vec![0f32; values.len()];
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
    let mut written = vec![false; c.components()];
    parts(input, (before, scalars), BLOCK_BYTES, &mut |part| {
        written[part.first..][..part.values.len()].fill(true);
        comparison.add(&after[C], part);
    });
    for first in (0..written.len()).filter(|&i| !written[i]) {
        comparison.add(&after[C], &Part { buffer: C, first, values: &[c.component(first)], bounds: &[0.0] });
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
        let all = Operands { input, before, offsets: input.batch.offsets(product), k };
        let exact = is_exact(&all, alpha, beta);
        let depth = components(input) * k;
        for rows in blocks(m, most(depth)) {
            let a = all.rows_of_a(&rows);
            for columns in blocks(n, most(depth).min(most(rows.len()))) {
                let b = all.columns_of_b(&columns);
                let block = Reference::new(&all, (&a, &b), (alpha, beta), exact);
                columns.enumerate().for_each(|(j, column)| block.visit(&rows, (column, j), visit));
            }
        }
    }
}

/// `0..length` in ranges that are at most so long.
fn blocks(length: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..length).step_by(most).map(move |from| from..(from + most).min(length))
}

/// Components of an element.
fn components(input: &GemmInput) -> usize {
    if input.dtype().is_complex() { 2 } else { 1 }
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
    /// Of complex operands the real parts of all of k, then the imaginary ones.
    fn rows_of_a(&self, rows: &Range<usize>) -> Matrix {
        let layout = self.input.layout;
        let a = Stored { buffer: &self.before[A], ld: self.input.lda, transposed: layout.a_transposed() };
        let from = self.offsets[A];
        let mut values = Vec::with_capacity(components(self.input) * rows.len() * self.k);
        for part in 0..components(self.input) {
            let negative = part == 1 && layout.a_conjugated();
            for p in 0..self.k {
                values.extend(rows.clone().map(|i| signed(a.get(from, (i, p), part), negative)));
            }
        }
        Matrix { rows: rows.len(), columns: components(self.input) * self.k, values }
    }

    /// Of complex operands two columns each, which make the real and the imaginary part of what they are multiplied with: a part of
    /// A by `br, -bi` and by `bi, br`.
    fn columns_of_b(&self, columns: &Range<usize>) -> Matrix {
        let (layout, parts) = (self.input.layout, components(self.input));
        let b = Stored { buffer: &self.before[B], ld: self.input.ldb, transposed: layout.b_transposed() };
        let from = self.offsets[B];
        let mut values = Vec::with_capacity(parts * parts * columns.len() * self.k);
        for j in columns.clone() {
            for (of_c, of_a) in (0..parts).flat_map(|c| (0..parts).map(move |a| (c, a))) {
                let part = of_c ^ of_a;
                // The square of i, and the conjugate.
                let negative = (of_c == 0 && of_a == 1) ^ (part == 1 && layout.b_conjugated());
                values.extend((0..self.k).map(|p| signed(b.get(from, (p, j), part), negative)));
            }
        }
        Matrix { rows: parts * self.k, columns: parts * columns.len(), values }
    }

    /// The components that A and B are made of, with what lies between their columns left out.
    fn elements(&self, of: usize) -> impl Iterator<Item = f64> {
        let (buffer, input) = (&self.before[of], self.input);
        let ((rows, columns), ld) = if of == A { (input.a_stored(), input.lda) } else { (input.b_stored(), input.ldb) };
        let (columns, parts) = (if self.k == 0 { 0 } else { columns }, components(input));
        let from = self.offsets[of];
        (0..columns).flat_map(move |j| (0..parts * rows).map(move |i| buffer.component(parts * (from + j * ld) + i)))
    }
}

/// An operand.
struct Stored<'a> {
    buffer: &'a Buffer,
    ld: usize,
    transposed: bool,
}

impl Stored<'_> {
    /// The real or the imaginary part of an element of op(X), as it is stored, from an element on.
    fn get(&self, from: usize, (i, j): (usize, usize), part: usize) -> f64 {
        let at = from + if self.transposed { j + i * self.ld } else { i + j * self.ld };
        if self.buffer.dtype().is_complex() { self.buffer.component(2 * at + part) } else { self.buffer.get_f64(at) }
    }
}

fn signed(x: f64, negative: bool) -> f64 {
    if negative { -x } else { x }
}

/// A block of the result.
struct Reference<'a> {
    of: &'a Operands<'a>,
    product: Matrix,
    alpha: f64,
    beta: f64,
    norm_a: Vec<f64>,
    norm_b: Vec<f64>,
    bound: Bound,
}

impl<'a> Reference<'a> {
    fn new(of: &'a Operands<'a>, (a, b): (&Matrix, &Matrix), (alpha, beta): (f64, f64), exact: bool) -> Self {
        let GemmInput { types, accuracy, k, .. } = *of.input;
        let is_double = matches!(types.accumulator, DType::F64 | DType::C64);
        let product = if is_double && !exact { compensated(a, b) } else { plain(a, b) };
        let length = accuracy.length(components(of.input), k);
        let bound = Bound { types, length, exact, rounding: accuracy.rounding() };
        Self { of, product, alpha, beta, norm_a: a.row_norms(), norm_b: b.column_norms(), bound }
    }

    /// A column of the block: where it stands in C, and which of the block's it is.
    fn visit(&self, rows: &Range<usize>, (column, j): (usize, usize), visit: &mut dyn FnMut(&Part<'_>)) {
        let (input, before) = (self.of.input, self.of.before);
        let parts = components(input);
        let first = parts * (self.of.offsets[C] + column * input.ldc + rows.start);
        let (mut values, mut bounds) = (Vec::with_capacity(parts * rows.len()), Vec::with_capacity(parts * rows.len()));
        for (i, part) in (0..rows.len()).flat_map(|i| (0..parts).map(move |part| (i, part))) {
            let added = match input.epilogue.bias {
                Bias::None => 0.0,
                Bias::Row => before[BIAS].component(parts * (rows.start + i) + part),
                Bias::Column => before[BIAS].component(parts * column + part),
            };
            let (product, norms) = self.scaled(i, parts * j + part);
            let kept = if self.beta == 0.0 { 0.0 } else { self.beta * before[C].component(first + parts * i + part) };
            let sum = product + kept + added;
            // Additions round at the size of what they add.
            bounds.push(self.bound.of(norms, product, sum.abs() + added.abs()));
            values.push(input.epilogue.activation.of(sum));
        }
        visit(&Part { buffer: C, first, values: &values, bounds: &bounds });
    }

    /// A sum times alpha, and the norms of what it is made of.
    fn scaled(&self, i: usize, j: usize) -> (f64, f64) {
        if !self.of.input.multiplies() {
            return (0.0, 0.0);
        }
        let sum = self.product.values[j * self.product.rows + i];
        let growth = self.of.input.accuracy.growth();
        (self.alpha * sum, growth * self.alpha.abs() * self.norm_a[i] * self.norm_b[j])
    }
}

/// Products of an element of C that are not zero, at most. They are counted where sums have few bits, whose data are made so that there
/// are few.
fn terms(of: &Operands<'_>) -> usize {
    let (input, from) = (of.input, of.offsets[A]);
    if input.types.accumulator != DType::F16 {
        return components(input) * input.k;
    }
    let a = Stored { buffer: &of.before[A], ld: input.lda, transposed: input.layout.a_transposed() };
    let row = |i: usize| (0..of.k).filter(|&p| a.get(from, (i, p), 0) != 0.0).count();
    (0..input.m).map(row).max().unwrap_or(0)
}

/// Whether every partial sum, in any order, is exact in the element type: integers whose sums of absolute products,
/// in the quarter units that alpha and beta leave, fit the significand.
fn is_exact(of: &Operands<'_>, alpha: f64, beta: f64) -> bool {
    fn largest(mut x: impl Iterator<Item = f64>) -> Option<f64> {
        x.try_fold(0f64, |m, v| if v.fract() == 0.0 { Some(m.max(v.abs())) } else { None })
    }
    let (input, c) = (of.input, &of.before[C]);
    if input.dtype().is_integer() {
        return true;
    }
    let c = (0..if beta == 0.0 { 0 } else { c.components() }).map(|i| c.component(i));
    let bias = of.before.get(BIAS).into_iter().flat_map(|bias| (0..bias.components()).map(|i| bias.component(i)));
    let (Some(a), Some(b), Some(c), Some(bias)) =
        (largest(of.elements(A)), largest(of.elements(B)), largest(c), largest(bias))
    else {
        return false;
    };
    let quarters = |x: f64| (4.0 * x).fract() == 0.0;
    let total =
        (a * b * input.accuracy.growth() * terms(of) as f64 * alpha.abs().max(1.0) + c * beta.abs().max(1.0) + bias)
            * 4.0;
    let u = input.types.accumulator.unit_roundoff().max(input.types.output.unit_roundoff());
    quarters(alpha) && quarters(beta) && total * 2.0 * u <= 1.0 && a.max(b) <= input.accuracy.exact()
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
            (Layout::Cn, Filling::Real, DType::C64),
            (Layout::Tc, Filling::Special, DType::C32),
            (Layout::Nt, Filling::Real, DType::I8),
        ] {
            let mut input = GemmInput::new(150, 131, 70, ElementTypes::of(dtype), layout);
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
            let rows = |i: usize| i / components(&input) % input.ldc < input.m;
            assert!(seen.iter().enumerate().all(|(i, &count)| count == usize::from(rows(i))), "{input:?}");
        }
    }
}
