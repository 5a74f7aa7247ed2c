//! One checked GEMM call: what a baseline is asked to do.

use crate::tasks::Layout;

/// `C = alpha · op(A) · op(B) + beta · C`, column-major, with BLAS's arguments. Its fields are private: a value of this
/// type is a proof that every access of a correct GEMM lies within the slices and that all sizes fit BLAS's 32-bit integers.
#[derive(Debug)]
pub struct GemmCall<'a, T> {
    pub(crate) layout: Layout,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) alpha: T,
    pub(crate) a: &'a [T],
    pub(crate) lda: usize,
    pub(crate) b: &'a [T],
    pub(crate) ldb: usize,
    pub(crate) beta: T,
    pub(crate) c: &'a mut [T],
    pub(crate) ldc: usize,
}

/// Why a call is not one that BLAS can be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// A size or leading dimension beyond the 32-bit integers of the LP64 interface.
    #[error("{field} = {value} is beyond the limit of {} of 32-bit BLAS", i32::MAX)]
    TooLarge {
        /// `m`, `n`, `k`, `lda`, `ldb` or `ldc`.
        field: &'static str,
        /// Its value.
        value: usize,
    },
    /// A leading dimension smaller than the rows it must hold.
    #[error("{field} = {value} is less than the {rows} rows stored")]
    LeadingDimension {
        /// `lda`, `ldb` or `ldc`.
        field: &'static str,
        /// Its value.
        value: usize,
        /// The least legal value.
        rows: usize,
    },
    /// A slice too short for its matrix.
    #[error("{field} holds {have} elements, {need} needed")]
    TooShort {
        /// `a`, `b` or `c`.
        field: &'static str,
        /// Its length in elements.
        have: usize,
        /// What the shape and the leading dimension need.
        need: usize,
    },
}

/// An operand and its leading dimension.
#[derive(Debug)]
pub struct Operand<S> {
    /// The elements.
    pub data: S,
    /// Distance between columns, in elements.
    pub ld: usize,
}

impl<'a, T> GemmCall<'a, T> {
    /// Checks the arguments.
    ///
    /// # Errors
    /// [`CallError`] names the argument and the limit it breaks.
    pub fn new(
        (m, n, k): (usize, usize, usize),
        layout: Layout,
        (alpha, beta): (T, T),
        a: Operand<&'a [T]>,
        b: Operand<&'a [T]>,
        c: Operand<&'a mut [T]>,
    ) -> Result<Self, CallError> {
        for (field, value) in [("m", m), ("n", n), ("k", k), ("lda", a.ld), ("ldb", b.ld), ("ldc", c.ld)] {
            if i32::try_from(value).is_err() {
                return Err(CallError::TooLarge { field, value });
            }
        }
        let (a_rows, a_columns) = if layout.a_transposed { (k, m) } else { (m, k) };
        let (b_rows, b_columns) = if layout.b_transposed { (n, k) } else { (k, n) };
        check_operand(("a", "lda"), a.data.len(), a.ld, a_rows, a_columns)?;
        check_operand(("b", "ldb"), b.data.len(), b.ld, b_rows, b_columns)?;
        check_operand(("c", "ldc"), c.data.len(), c.ld, m, n)?;
        let (lda, ldb, ldc) = (a.ld, b.ld, c.ld);
        Ok(GemmCall { layout, m, n, k, alpha, a: a.data, lda, b: b.data, ldb, beta, c: c.data, ldc })
    }

    /// (row stride, column stride) of op(A).
    pub(crate) fn a_strides(&self) -> (usize, usize) {
        if self.layout.a_transposed { (self.lda, 1) } else { (1, self.lda) }
    }

    /// The same call in panels of `width` columns of C.
    pub(crate) fn column_panels(&mut self, width: usize) -> Vec<GemmCall<'_, T>>
    where
        T: Copy,
    {
        let GemmCall { layout, m, k, alpha, a, lda, ldb, beta, ldc, .. } = *self;
        let mut rest: &mut [T] = self.c;
        let mut panels = Vec::new();
        for first in (0..self.n).step_by(width.max(1)) {
            let n = width.min(self.n - first);
            // the last panel may end before a whole leading dimension
            let (c, tail) = rest.split_at_mut((n * self.ldc).min(rest.len()));
            rest = tail;
            let skipped = if self.layout.b_transposed { first } else { first * self.ldb };
            let b = &self.b[skipped.min(self.b.len())..];
            panels.push(GemmCall { layout, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc });
        }
        panels
    }

    /// (row stride, column stride) of op(B).
    pub(crate) fn b_strides(&self) -> (usize, usize) {
        if self.layout.b_transposed { (self.ldb, 1) } else { (1, self.ldb) }
    }
}

fn check_operand(
    (data, ld): (&'static str, &'static str),
    have: usize,
    value: usize,
    rows: usize,
    columns: usize,
) -> Result<(), CallError> {
    // BLAS asks for at least 1 even where there are no rows
    if value < rows.max(1) {
        return Err(CallError::LeadingDimension { field: ld, value, rows: rows.max(1) });
    }
    let need = if rows == 0 || columns == 0 { 0 } else { (columns - 1) * value + rows };
    if have < need {
        return Err(CallError::TooShort { field: data, have, need });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(lda: usize, ldb: usize, ldc: usize, lengths: [usize; 3]) -> Result<(), CallError> {
        let (a, b, mut c) = (vec![0f32; lengths[0]], vec![0f32; lengths[1]], vec![0f32; lengths[2]]);
        let a = Operand { data: &a[..], ld: lda };
        let b = Operand { data: &b[..], ld: ldb };
        let c = Operand { data: &mut c[..], ld: ldc };
        // A is 2 × 5 stored 5 × 2, B is 5 × 3
        GemmCall::new((2, 3, 5), Layout::TN, (1.0, 0.0), a, b, c).map(|_| ())
    }

    #[test]
    fn limits_are_exact() {
        assert_eq!(call(6, 7, 4, [11, 19, 10]), Ok(()));
        let short = |field, have, need| Err(CallError::TooShort { field, have, need });
        assert_eq!(call(6, 7, 4, [10, 19, 10]), short("a", 10, 11));
        assert_eq!(call(6, 7, 4, [11, 18, 10]), short("b", 18, 19));
        assert_eq!(call(6, 7, 4, [11, 19, 9]), short("c", 9, 10));
        let ld = |field, value, rows| Err(CallError::LeadingDimension { field, value, rows });
        assert_eq!(call(4, 7, 4, [99; 3]), ld("lda", 4, 5));
        assert_eq!(call(5, 4, 4, [99; 3]), ld("ldb", 4, 5));
        assert_eq!(call(5, 5, 1, [99; 3]), ld("ldc", 1, 2));
        let too_large = 1 << 31;
        assert_eq!(call(too_large, 7, 4, [99; 3]), Err(CallError::TooLarge { field: "lda", value: too_large }));
    }

    #[test]
    fn empty_matrices_need_no_elements() {
        let a = Operand { data: &[0f64; 0][..], ld: 1 };
        let b = Operand { data: &[0f64; 0][..], ld: 1 };
        let mut c = [0f64; 4];
        let c = Operand { data: &mut c[..], ld: 2 };
        assert!(GemmCall::new((2, 2, 0), Layout::TN, (1.0, 0.0), a, b, c).is_ok());
    }
}
