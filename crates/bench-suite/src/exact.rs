//! An exact check of a product at the cost of a matrix-vector product.
//!
//! The data are small integers ([`Filling::Exact`](tilewright_core::buffer::Filling::Exact)), so that every partial sum is a number that f32
//! holds exactly: a right GEMM gives one result to the last bit, whatever its order of summation, and a wrong element
//! anywhere is found without computing the product a second time.

use tilewright_core::buffer::{Buffer, Workload};
use tilewright_core::dtype::DType;
use tilewright_ops::gemm::{A, ALPHA, B, BETA, C, GemmInput};

/// Bits of the elements of the test vector. Products of C's elements with it, which are multiples of 1/4 below 2^21,
/// summed over up to 2^12 columns, stay within the 53 bits of f64.
const VECTOR_BITS: u32 = 16;

/// A wrong row of a product.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("wrong result in row {row} of C: its product with a test vector is {found}, {expected} expected")]
pub struct WrongProduct {
    /// The first row of C with a wrong element.
    pub row: usize,
    /// Its product with the test vector.
    pub found: f64,
    /// What that should be.
    pub expected: f64,
}

/// What C·x must be after one GEMM, for a random vector x (Freivalds, 1977): `alpha·op(A)·(op(B)·x) + beta·C·x`.
#[derive(Clone, Debug)]
pub struct ExactProduct {
    input: GemmInput,
    x: Vec<f64>,
    expected: Vec<f64>,
}

impl ExactProduct {
    /// From the workload as it is before the GEMM, with data of [`Filling::Exact`](tilewright_core::buffer::Filling::Exact).
    pub fn new(input: &GemmInput, before: &Workload) -> Self {
        let x: Vec<f64> = (0..input.n as u64).map(|j| (mix(j) >> (64 - VECTOR_BITS)) as f64).collect();
        let [a, b, c] = [A, B, C].map(|index| &before.buffers[index]);
        let (alpha, beta) = (before.scalars[ALPHA], before.scalars[BETA]);
        let mut expected = vec![0.0; input.m];
        if input.multiplies() {
            let bx = product(b, [input.k, input.n, input.ldb], input.layout.b_transposed(), &x);
            expected = product(a, [input.m, input.k, input.lda], input.layout.a_transposed(), &bx);
            expected.iter_mut().for_each(|y| *y *= alpha);
        }
        // beta = 0 never reads C, which may hold NaN
        if beta != 0.0 {
            let cx = product(c, [input.m, input.n, input.ldc], false, &x);
            expected.iter_mut().zip(cx).for_each(|(y, cx)| *y += beta * cx);
        }
        ExactProduct { input: input.clone(), x, expected }
    }

    /// Checks every element of C. A wrong row passes with a probability of 2^-16.
    ///
    /// # Errors
    /// [`WrongProduct`] names the first row that differs.
    pub fn check(&self, after: &[Buffer]) -> Result<(), WrongProduct> {
        let found = product(&after[C], [self.input.m, self.input.n, self.input.ldc], false, &self.x);
        for (row, (found, &expected)) in found.into_iter().zip(&self.expected).enumerate() {
            // false for NaN too
            let right = found == expected;
            if !right {
                return Err(WrongProduct { row, found, expected });
            }
        }
        Ok(())
    }
}

/// op(M) · x in f64 for an op(M) of rows x columns with leading dimension `ld`.
fn product(matrix: &Buffer, shape: [usize; 3], transposed: bool, x: &[f64]) -> Vec<f64> {
    match matrix.dtype() {
        DType::F32 => product_of(matrix.as_slice::<f32>(), shape, transposed, x),
        _ => product_of(matrix.as_slice::<f64>(), shape, transposed, x),
    }
}

fn product_of<T: Copy + Into<f64>>(
    matrix: &[T],
    [rows, columns, ld]: [usize; 3],
    transposed: bool,
    x: &[f64],
) -> Vec<f64> {
    let mut y = vec![0.0; rows];
    if transposed {
        for (y, row) in y.iter_mut().zip(matrix.chunks(ld)) {
            *y = row.iter().take(columns).zip(x).map(|(&element, x)| element.into() * x).sum();
        }
    } else {
        for (&x, column) in x.iter().zip(matrix.chunks(ld)) {
            y.iter_mut().zip(column).for_each(|(y, &element)| *y += element.into() * x);
        }
    }
    y
}

/// SplitMix64 (Steele, Lea and Flood, 2014): the value after `state`.
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilewright_core::buffer::Filling;
    use tilewright_core::computation::Computation;
    use tilewright_ops::gemm::{Gemm, Layout, ScalarClass};

    fn inputs() -> impl Strategy<Value = GemmInput> {
        let class = prop::sample::select(&[ScalarClass::Zero, ScalarClass::One, ScalarClass::Other][..]);
        let sizes = (0usize..9, 0usize..9, 0usize..9, 0usize..3);
        let dtype = prop::sample::select(&[DType::F32, DType::F64][..]);
        (sizes, dtype, prop::sample::select(&Layout::ALL[..]), class.clone(), class).prop_map(
            |((m, n, k, pad), dtype, layout, alpha, beta)| {
                let tight = GemmInput::new(m, n, k, dtype, layout);
                let (lda, ldb, ldc) = (tight.lda + pad, tight.ldb + 2 * pad, tight.ldc + pad);
                GemmInput { lda, ldb, ldc, alpha, beta, ..tight }
            },
        )
    }

    proptest! {
        #[test]
        fn agrees_with_the_reference_and_sees_one_wrong_element(input in inputs(), seed: u64, at: prop::sample::Index) {
            let mut work = Gemm.workload(&input, Filling::Exact, seed);
            let exact = ExactProduct::new(&input, &work);
            let expected = Gemm.reference(&input, &work.buffers, &work.scalars);
            for (index, value) in expected.buffers[0].values.iter().enumerate() {
                work.buffers[C].set_f64(index, *value);
            }
            prop_assert_eq!(exact.check(&work.buffers), Ok(()));
            if input.m > 0 && input.n > 0 {
                let element = at.index(input.m * input.n);
                let (row, column) = (element % input.m, element / input.m);
                // a vector with a zero there could not see it
                prop_assume!(exact.x[column] != 0.0);
                let wrong = row + column * input.ldc;
                let value = work.buffers[C].get_f64(wrong);
                for bad in [value + 0.25, f64::NAN] {
                    work.buffers[C].set_f64(wrong, bad);
                    prop_assert_eq!(exact.check(&work.buffers).unwrap_err().row, row);
                }
            }
        }
    }
}
