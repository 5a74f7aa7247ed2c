//! One checked GEMM call: what a routine is asked to do.

use tilewright_core::computation::InputError;
use tilewright_ops::gemm::{GemmInput, Layout};

/// `C = alpha · op(A) · op(B) + beta · C`, column-major, with BLAS's arguments. Its fields are private: a value of this
/// type is a proof that every access of a correct GEMM lies within the slices and that all sizes fit BLAS's 32-bit integers.
#[derive(Debug)]
pub(crate) struct GemmCall<'a, T> {
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

/// Refuses what 32-bit BLAS has no numbers for.
///
/// # Errors
/// The size or leading dimension that is too large.
pub(crate) fn check_sizes(input: &GemmInput) -> Result<(), InputError> {
    let &GemmInput { m, n, k, lda, ldb, ldc, .. } = input;
    let sizes = [("m", m), ("n", n), ("k", k), ("lda", lda), ("ldb", ldb), ("ldc", ldc)];
    let large = sizes.into_iter().find(|(_, value)| i32::try_from(*value).is_err());
    large.map_or(Ok(()), |(field, value)| {
        Err(InputError::new(field, format!("{value} is beyond the limit of {} of 32-bit BLAS", i32::MAX)))
    })
}

impl<'a, T> GemmCall<'a, T> {
    /// Checks the arguments. Only the sizes, the layout and the leading dimensions of `input` are read: the scalars are `alpha`
    /// and `beta`, the element type is T.
    ///
    /// # Errors
    /// The argument and the limit it breaks.
    pub(crate) fn new(
        input: &GemmInput,
        (alpha, beta): (T, T),
        a: &'a [T],
        b: &'a [T],
        c: &'a mut [T],
    ) -> Result<Self, InputError> {
        let &GemmInput { m, n, k, layout, lda, ldb, ldc, .. } = input;
        check_sizes(input)?;
        check_operand(("a", "lda"), a.len(), lda, input.a_stored())?;
        check_operand(("b", "ldb"), b.len(), ldb, input.b_stored())?;
        check_operand(("c", "ldc"), c.len(), ldc, (m, n))?;
        Ok(GemmCall { layout, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc })
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
            let skipped = if self.layout.b_transposed() { first } else { first * self.ldb };
            let b = &self.b[skipped.min(self.b.len())..];
            panels.push(GemmCall { layout, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc });
        }
        panels
    }

    /// (row stride, column stride) of op(A).
    pub(crate) fn a_strides(&self) -> (usize, usize) {
        if self.layout.a_transposed() { (self.lda, 1) } else { (1, self.lda) }
    }

    /// (row stride, column stride) of op(B).
    pub(crate) fn b_strides(&self) -> (usize, usize) {
        if self.layout.b_transposed() { (self.ldb, 1) } else { (1, self.ldb) }
    }
}

/// Products of one shape at constant distances: `count` calls whose slices were checked together, once.
#[derive(Debug)]
pub(crate) struct BatchCall<'a, T> {
    /// The first product, its slices reaching as far as all products do.
    pub(crate) whole: GemmCall<'a, T>,
    pub(crate) count: usize,
    /// Elements from one product's operand to the next, of A, B and C.
    pub(crate) strides: [usize; 3],
}

impl<'a, T: Copy> BatchCall<'a, T> {
    /// Checks the arguments, as [`GemmCall::new`] does, for all products of the input.
    ///
    /// # Errors
    /// The argument and the limit it breaks.
    pub(crate) fn new(
        input: &GemmInput,
        scalars: (T, T),
        a: &'a [T],
        b: &'a [T],
        c: &'a mut [T],
    ) -> Result<Self, InputError> {
        let [least_a, least_b, least_c] = input.lens();
        for (name, have, need) in [("a", a.len(), least_a), ("b", b.len(), least_b), ("c", c.len(), least_c)] {
            if have < need {
                return Err(InputError::new(name, format!("{have} elements are there, {need} needed")));
            }
        }
        let strides = input.batch.strides.map(|stride| stride as usize);
        let count = input.batch.count as usize;
        let apart = GemmInput::stored_len(input.m, input.n, input.ldc);
        if count > 1 && strides[2] < apart {
            let message = format!("{} is less than the {apart} elements of a product of C", strides[2]);
            return Err(InputError::new("stride_c", message));
        }
        Ok(Self { whole: GemmCall::new(input, scalars, a, b, c)?, count, strides })
    }

    /// Calls for each product in turn.
    pub(crate) fn each(&mut self, mut gemm: impl FnMut(&mut GemmCall<'_, T>)) {
        let GemmCall { layout, m, n, k, alpha, a, lda, b, ldb, beta, ldc, .. } = self.whole;
        for product in 0..self.count {
            // Empty operands have no elements to skip.
            let [at_a, at_b, at_c] = self.strides.map(|stride| stride * product);
            let (a, b) = (&a[at_a.min(a.len())..], &b[at_b.min(b.len())..]);
            let at_c = at_c.min(self.whole.c.len());
            let c = &mut self.whole.c[at_c..];
            gemm(&mut GemmCall { layout, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc });
        }
    }

    /// The same products in at most so many parts, which share no element of C.
    pub(crate) fn parts(&mut self, parts: usize) -> Vec<BatchCall<'_, T>> {
        let (count, strides) = (self.count, self.strides);
        let GemmCall { layout, m, n, k, alpha, a, lda, b, ldb, beta, ldc, .. } = self.whole;
        let each = count.div_ceil(parts.max(1)).max(1);
        let mut rest: &mut [T] = self.whole.c;
        let mut out = Vec::new();
        for first in (0..count).step_by(each) {
            let count = each.min(count - first);
            let (c, tail) = rest.split_at_mut((count * strides[2]).min(rest.len()));
            rest = tail;
            let [at_a, at_b, _] = strides.map(|stride| stride * first);
            let (a, b) = (&a[at_a.min(a.len())..], &b[at_b.min(b.len())..]);
            let whole = GemmCall { layout, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc };
            out.push(BatchCall { whole, count, strides });
        }
        out
    }
}

fn check_operand(
    (data, ld): (&'static str, &'static str),
    have: usize,
    value: usize,
    (rows, columns): (usize, usize),
) -> Result<(), InputError> {
    // BLAS asks for at least 1 even where there are no rows
    if value < rows.max(1) {
        return Err(InputError::new(ld, format!("{value} is less than the {} rows stored", rows.max(1))));
    }
    let need = GemmInput::stored_len(rows, columns, value);
    if have < need {
        return Err(InputError::new(data, format!("{have} elements are there, {need} needed")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::dtype::DType;
    use tilewright_ops::gemm::Batch;

    fn call(lda: usize, ldb: usize, ldc: usize, lengths: [usize; 3]) -> Result<(), InputError> {
        let (a, b, mut c) = (vec![0f32; lengths[0]], vec![0f32; lengths[1]], vec![0f32; lengths[2]]);
        // A is 2 x 5 stored 5 x 2, B is 5 x 3
        let input = GemmInput { lda, ldb, ldc, ..GemmInput::new(2, 3, 5, DType::F32, Layout::Tn) };
        GemmCall::new(&input, (1.0, 0.0), &a, &b, &mut c).map(|_| ())
    }

    #[test]
    fn limits_are_exact() {
        assert_eq!(call(6, 7, 4, [11, 19, 10]), Ok(()));
        let short =
            |field, have, need| Err(InputError::new(field, format!("{have} elements are there, {need} needed")));
        assert_eq!(call(6, 7, 4, [10, 19, 10]), short("a", 10, 11));
        assert_eq!(call(6, 7, 4, [11, 18, 10]), short("b", 18, 19));
        assert_eq!(call(6, 7, 4, [11, 19, 9]), short("c", 9, 10));
        let ld =
            |field, value, rows| Err(InputError::new(field, format!("{value} is less than the {rows} rows stored")));
        assert_eq!(call(4, 7, 4, [99; 3]), ld("lda", 4, 5));
        assert_eq!(call(5, 4, 4, [99; 3]), ld("ldb", 4, 5));
        assert_eq!(call(5, 5, 1, [99; 3]), ld("ldc", 1, 2));
        let too_large = call(1 << 31, 7, 4, [99; 3]).unwrap_err();
        assert_eq!(too_large.to_string(), "lda: 2147483648 is beyond the limit of 2147483647 of 32-bit BLAS");
    }

    #[test]
    fn empty_matrices_need_no_elements() {
        let input = GemmInput::new(2, 2, 0, DType::F64, Layout::Tn);
        assert!(GemmCall::new(&input, (1.0, 0.0), &[], &[], &mut [0f64; 4]).is_ok());
    }

    #[test]
    fn panels_cover_c_once() {
        for layout in Layout::ALL {
            let input = GemmInput { ldc: 5, ..GemmInput::new(3, 7, 2, DType::F32, layout) };
            let [a, b, c] = input.lens();
            let (a, b, mut c) = (vec![0f32; a], vec![0f32; b], vec![0f32; c]);
            let mut call = GemmCall::new(&input, (1.0, 0.0), &a, &b, &mut c).unwrap();
            let panels = call.column_panels(3);
            assert_eq!(panels.iter().map(|panel| panel.n).collect::<Vec<_>>(), [3, 3, 1]);
            for panel in panels {
                let GemmCall { m, n, k, lda, ldb, ldc, a, b, c, .. } = panel;
                let input = GemmInput { lda, ldb, ldc, ..GemmInput::new(m, n, k, DType::F32, layout) };
                assert!(GemmCall::new(&input, (1.0, 0.0), a, b, c).is_ok(), "{layout}");
            }
        }
    }

    #[test]
    fn products_and_parts_of_a_batch_cover_c_once() {
        let one = GemmInput { ldc: 4, ..GemmInput::new(3, 2, 5, DType::F32, Layout::Nt) };
        let input = GemmInput { batch: Batch { strides: [0, 11, 9], count: 5 }, ..one };
        let [a, b, c] = input.lens();
        let (a, b, mut c) = (vec![0f32; a], vec![0f32; b], vec![0f32; c]);
        let short = BatchCall::new(&input, (1.0, 0.0), &a, &b[1..], &mut c).unwrap_err();
        assert_eq!(short.field, "b");
        let mut call = BatchCall::new(&input, (1.0, 0.0), &a, &b, &mut c).unwrap();
        for mut part in call.parts(2) {
            part.each(|one| {
                assert!(one.a.len() >= 15 && one.b.len() >= 10 && one.c.len() >= 7);
                one.c[0] += 1.0;
            });
        }
        assert_eq!(c.iter().sum::<f32>(), 5.0);
        assert_eq!([c[0], c[9], c[18], c[27], c[36]], [1.0; 5]);
        let overlapping = GemmInput { batch: Batch { strides: [0, 11, 6], count: 5 }, ..input };
        assert_eq!(BatchCall::new(&overlapping, (1.0, 0.0), &a, &b, &mut c).unwrap_err().field, "stride_c");
    }
}
