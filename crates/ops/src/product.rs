//! Matrix products that a reference is made of: in f64, and as if in twice that.
//!
//! The second is Ozaki's scheme (Ozaki, Ogita, Oishi and Rump, *Error-free transformations of matrix multiplication*, 2012):
//! both operands are cut into slices of so few bits that products of slices are exact in f64, in whatever order they are
//! summed, so that a fast matrix product computes them; only the few sums over slices need compensation.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder};
use rayon::prelude::*;

/// Steps of k that one exact product takes: 2 * `SLICE_BITS` bits of products and 12 of these fit 53.
const STEPS: usize = 4096;

/// Bits of an element, relative to the largest of its row or column, that a slice holds.
const SLICE_BITS: i32 = 20;

/// Slices that hold all of a significand of 53 bits.
const SLICES: usize = 3;

/// Columns of the result that are computed together.
const COLUMNS: usize = 64;

/// A matrix in f64 without padding, column-major.
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) values: Vec<f64>,
}

impl Matrix {
    fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, values: vec![0.0; rows * columns] }
    }

    fn view(&self, from: usize, to: usize) -> ArrayView2<'_, f64> {
        let part = &self.values[from * self.rows..to * self.rows];
        view(part, self.rows, to - from)
    }

    /// The Euclidean norm of each row.
    pub(crate) fn row_norms(&self) -> Vec<f64> {
        let mut squares = vec![0f64; self.rows];
        for column in self.values.chunks_exact(self.rows.max(1)) {
            squares.iter_mut().zip(column).for_each(|(s, x)| *s += x * x);
        }
        squares.into_iter().map(f64::sqrt).collect()
    }

    /// The Euclidean norm of each column.
    pub(crate) fn column_norms(&self) -> Vec<f64> {
        let norm = |column: &[f64]| column.iter().map(|x| x * x).sum::<f64>().sqrt();
        if self.rows == 0 { vec![0.0; self.columns] } else { self.values.chunks_exact(self.rows).map(norm).collect() }
    }

    /// The part of k from `from` on, for the left operand its columns, with what is not finite as zero.
    fn finite_columns(&self, from: usize, to: usize) -> Self {
        let values = self.values[from * self.rows..to * self.rows].iter().map(|&x| finite(x)).collect();
        Self { rows: self.rows, columns: to - from, values }
    }

    /// The same for the right operand, its rows.
    fn finite_rows(&self, from: usize, to: usize) -> Self {
        let columns = self.values.chunks_exact(self.rows.max(1));
        let values = columns.flat_map(|column| column[from..to].iter().map(|&x| finite(x))).collect();
        Self { rows: to - from, columns: self.columns, values }
    }
}

fn finite(x: f64) -> f64 {
    if x.is_finite() { x } else { 0.0 }
}

fn view(values: &[f64], rows: usize, columns: usize) -> ArrayView2<'_, f64> {
    // The length is that of the shape by construction; an empty view stands for a matrix without elements.
    ArrayView2::from_shape((rows, columns).f(), values).unwrap_or_else(|_| ArrayView2::from(&[[]; 0]))
}

/// `a b` in f64.
pub(crate) fn plain(a: &Matrix, b: &Matrix) -> Matrix {
    let mut c = Matrix::zeros(a.rows, b.columns);
    if a.rows == 0 || a.columns == 0 {
        return c;
    }
    let left = a.view(0, a.columns);
    c.values.par_chunks_mut(a.rows * COLUMNS).enumerate().for_each(|(block, c)| {
        let (first, count) = (block * COLUMNS, c.len() / a.rows);
        if let Ok(mut c) = ArrayViewMut2::from_shape((a.rows, count).f(), c) {
            general_mat_mul(1.0, &left, &b.view(first, first + count), 0.0, &mut c);
        }
    });
    c
}

/// `a b` as if in twice the precision of f64, then rounded. Where a row of `a` or a column of `b` holds an infinity or NaN,
/// so does the result, as a product in f64 has it.
pub(crate) fn compensated(a: &Matrix, b: &Matrix) -> Matrix {
    let mut sum = Matrix::zeros(a.rows, b.columns);
    let mut errors = vec![0f64; sum.values.len()];
    for from in (0..a.columns).step_by(STEPS) {
        let to = (from + STEPS).min(a.columns);
        let left = slices(a.finite_columns(from, to), |i, rows| i % rows, a.rows);
        let right = slices(b.finite_rows(from, to), |i, rows| i / rows, b.columns);
        for (p, q) in (0..SLICES).flat_map(|p| (0..SLICES - p).map(move |q| (p, q))) {
            let product = plain(&left[p], &right[q]);
            let terms = sum.values.par_iter_mut().zip(&mut errors).zip(&product.values);
            terms.with_min_len(1 << 14).for_each(|((sum, error), &term)| add(sum, error, term));
        }
    }
    sum.values.iter_mut().zip(&errors).for_each(|(sum, error)| *sum += error);
    if a.values.iter().chain(&b.values).all(|x| x.is_finite()) { sum } else { propagated(a, b, sum) }
}

/// Knuth's two-sum.
fn add(sum: &mut f64, error: &mut f64, term: f64) {
    let total = *sum + term;
    let z = total - *sum;
    *error += (*sum - (total - z)) + (term - z);
    *sum = total;
}

/// Cuts a matrix into slices; `line` tells which row or column, of `lines`, an element is scaled with.
fn slices(mut rest: Matrix, line: impl Fn(usize, usize) -> usize, lines: usize) -> Vec<Matrix> {
    let rows = rest.rows.max(1);
    let mut out = Vec::with_capacity(SLICES);
    for _ in 0..SLICES {
        let mut largest = vec![0f64; lines];
        for (i, x) in rest.values.iter().enumerate() {
            let of = &mut largest[line(i, rows)];
            *of = of.max(x.abs());
        }
        // Adding and subtracting it rounds to a multiple of the largest element's power of two over 2^SLICE_BITS.
        let cutter =
            |x: &f64| if *x == 0.0 { 0.0 } else { 1.5 * f64::exp2(x.log2().ceil() + f64::from(52 - SLICE_BITS)) };
        let cutters: Vec<f64> = largest.iter().map(cutter).collect();
        let mut top = Matrix::zeros(rest.rows, rest.columns);
        for (i, (x, top)) in rest.values.iter_mut().zip(&mut top.values).enumerate() {
            let cutter = cutters[line(i, rows)];
            *top = (*x + cutter) - cutter;
            *x -= *top;
        }
        out.push(top);
    }
    out
}

/// `sum` with the elements that are not finite as the plain product has them.
fn propagated(a: &Matrix, b: &Matrix, mut sum: Matrix) -> Matrix {
    let plain = plain(a, b);
    for (sum, plain) in sum.values.iter_mut().zip(plain.values) {
        if !plain.is_finite() {
            *sum = plain;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Elements are multiples of it, so that products and sums of them are integers in its square.
    const UNIT: f64 = 1.0 / (1u64 << 50) as f64;

    /// The product in units of `UNIT` squared, exact.
    fn exact(a: &Matrix, b: &Matrix) -> Vec<i128> {
        let int = |x: f64| (x / UNIT) as i128;
        let mut out = Vec::new();
        for j in 0..b.columns {
            for i in 0..a.rows {
                let terms = (0..a.columns).map(|p| int(a.values[p * a.rows + i]) * int(b.values[j * b.rows + p]));
                out.push(terms.sum());
            }
        }
        out
    }

    fn matrix(rows: usize, columns: usize, mut next: impl FnMut() -> i64) -> Matrix {
        Matrix { rows, columns, values: (0..rows * columns).map(|_| next() as f64 * UNIT).collect() }
    }

    /// Draws two matrices and holds their product to the bound of one rounding and of the slices that are left out.
    ///
    /// With `2^e` at least the largest element, the slices are at most `2^e`, `2^(e-21)` and `2^(e-42)` and the rest
    /// `2^(e-63)`. Four products of the order of `2^-63` are left out, and `2^e` is less than twice the largest element.
    fn is_right_to_the_last_bit((m, n, k): (usize, usize, usize), seed: u64, bits: u32) -> Result<(), TestCaseError> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // Magnitudes of all kinds beside each other.
            (state as i64) >> (64 - bits + (state % 7) as u32).min(63)
        };
        let (a, b) = (matrix(m, k, &mut next), matrix(k, n, &mut next));
        let largest = |of: &Matrix| of.values.iter().fold(0f64, |m, x| m.max(x.abs()));
        let left_out = 16.1 * f64::exp2(-63.0) * largest(&a) * largest(&b) * k as f64;
        for (&found, expected) in compensated(&a, &b).values.iter().zip(exact(&a, &b)) {
            // What is found is a multiple of the unit too. The difference of rounded values would be up to one step where
            // the exact value lies in the middle of two.
            let difference = ((found / UNIT / UNIT) as i128 - expected) as f64 * UNIT * UNIT;
            let bound = 1.0001 * f64::EPSILON / 2.0 * found.abs() + left_out;
            prop_assert!(difference.abs() <= bound, "{found:e} is off by {difference:e}, more than {bound:e}");
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn compensated_products_are_right_to_the_last_bit(
            size in (1usize..9, 1usize..70, 1usize..40),
            seed in any::<u64>(),
            bits in 1u32..53,
        ) {
            is_right_to_the_last_bit(size, seed, bits)?;
        }
    }

    #[test]
    fn a_sum_in_the_middle_of_two_values_may_round_to_either() -> Result<(), TestCaseError> {
        is_right_to_the_last_bit((1, 31, 3), 1_116_784_356_410_337_798, 48)
    }

    #[test]
    fn more_steps_than_one_product_takes() {
        let k = 2 * STEPS + 5;
        let a = Matrix { rows: 1, columns: k, values: (0..k).map(|p| 1.0 + p as f64 * 2f64.powi(-52)).collect() };
        let b = Matrix { rows: k, columns: 1, values: vec![1.0; k] };
        let exact = k as f64 + (k * (k - 1) / 2) as f64 * 2f64.powi(-52);
        assert_eq!(compensated(&a, &b).values, [exact]);
    }

    #[test]
    fn what_is_not_finite_spreads_along_its_row_and_column() {
        let mut a = Matrix { rows: 3, columns: 4, values: vec![1.0; 12] };
        a.values[1] = f64::INFINITY;
        let mut b = Matrix { rows: 4, columns: 2, values: vec![2.0; 8] };
        b.values[4] = f64::NAN;
        let c = compensated(&a, &b).values;
        assert_eq!((c[0], c[1], c[2]), (8.0, f64::INFINITY, 8.0));
        assert!(c[3..].iter().all(|x| x.is_nan()));
    }

    #[test]
    fn nothing_to_sum_is_zero() {
        let (a, b) = (Matrix::zeros(3, 0), Matrix::zeros(0, 2));
        assert_eq!(plain(&a, &b).values, [0.0; 6]);
        assert_eq!(compensated(&a, &b).values, [0.0; 6]);
        assert!(compensated(&Matrix::zeros(0, 3), &Matrix::zeros(3, 0)).values.is_empty());
    }
}
