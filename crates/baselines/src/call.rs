//! One checked GEMM call: what a routine is asked to do.

use std::sync::atomic::{AtomicU64, Ordering};
use tilewright_core::computation::InputError;
use tilewright_ops::gemm::{Batch, GemmInput, Layout};

/// What can be checked of an input before any data are there. Its fields are private and never change: whoever holds one with the
/// number of another holds the same sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    number: u64,
    layout: Layout,
    sizes: [usize; 3],
    leading: [usize; 3],
    /// Elements of A, B and C, all products together.
    lens: [usize; 3],
    count: usize,
    strides: [usize; 3],
}

/// The number of calls that are parts of others.
const NO_NUMBER: u64 = 0;

fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(NO_NUMBER);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
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

impl Checked {
    /// Only the sizes, the layout, the leading dimensions and the batch of `input` are read.
    ///
    /// # Errors
    /// The size or distance that is too large, or too small for products that do not overlap.
    pub(crate) fn new(input: &GemmInput) -> Result<Self, InputError> {
        let &GemmInput { m, n, k, layout, lda, ldb, ldc, .. } = input;
        check_sizes(input)?;
        let ((a_rows, _), (b_rows, _)) = (input.a_stored(), input.b_stored());
        for (name, value, rows) in [("lda", lda, a_rows), ("ldb", ldb, b_rows), ("ldc", ldc, m)] {
            // BLAS asks for at least 1 even where there are no rows.
            if value < rows.max(1) {
                return Err(InputError::new(name, format!("{value} is less than the {} rows stored", rows.max(1))));
            }
        }
        let strides = input.batch.strides.map(|stride| stride as usize);
        let count = input.batch.count as usize;
        let apart = GemmInput::stored_len(m, n, ldc);
        if count > 1 && strides[2] < apart {
            let message = format!("{} is less than the {apart} elements of a product of C", strides[2]);
            return Err(InputError::new("stride_c", message));
        }
        let (sizes, leading) = ([m, n, k], [lda, ldb, ldc]);
        Ok(Self { number: next_number(), layout, sizes, leading, lens: input.lens(), count, strides })
    }

    /// The same buffers, without a reduction.
    pub(crate) fn without_products(self) -> Self {
        let [m, n, _] = self.sizes;
        Self { number: next_number(), sizes: [m, n, 0], ..self }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// m, n and k; all fit 32 bits.
    pub(crate) fn sizes(&self) -> [usize; 3] {
        self.sizes
    }

    /// Of A, B and C; all fit 32 bits.
    pub(crate) fn leading(&self) -> [usize; 3] {
        self.leading
    }

    /// The call on these data; none where a slice is too short.
    #[inline]
    pub(crate) fn on<'a, T, O>(
        &self,
        (alpha, beta): (O, O),
        a: &'a [T],
        b: &'a [T],
        c: &'a mut [O],
    ) -> Option<BatchCall<'a, T, O>> {
        let &Self { number, layout, sizes: [m, n, k], leading: [lda, ldb, ldc], lens, count, strides } = self;
        if (a.len() < lens[0]) | (b.len() < lens[1]) | (c.len() < lens[2]) {
            return None;
        }
        let whole = GemmCall { number, layout, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc };
        Some(BatchCall { whole, count, strides })
    }

    /// Why [`Checked::on`] gives nothing for slices of these lengths.
    #[cold]
    pub(crate) fn refusal(&self, have: [usize; 3]) -> InputError {
        let all = [("a", 0), ("b", 1), ("c", 2)];
        let short = all.into_iter().find(|&(_, at)| have[at] < self.lens[at]);
        let (name, at) = short.unwrap_or(("c", 2));
        InputError::new(name, format!("{} elements are there, {} needed", have[at], self.lens[at]))
    }
}

/// `C = alpha · op(A) · op(B) + beta · C`, column-major, with BLAS's arguments. A value of this type is a proof that every access of a
/// correct GEMM lies within the slices and that all sizes fit BLAS's 32-bit integers. C and the scalars may be of another type.
#[derive(Debug)]
pub(crate) struct GemmCall<'a, T, O = T> {
    /// Of the [`Checked`] that it was made by.
    pub(crate) number: u64,
    pub(crate) layout: Layout,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) alpha: O,
    pub(crate) a: &'a [T],
    pub(crate) lda: usize,
    pub(crate) b: &'a [T],
    pub(crate) ldb: usize,
    pub(crate) beta: O,
    pub(crate) c: &'a mut [O],
    pub(crate) ldc: usize,
}

impl<'a, T> GemmCall<'a, T> {
    /// Checks the arguments. Only the sizes, the layout and the leading dimensions of `input` are read, of one product: the scalars
    /// are `alpha` and `beta`, the element type is T.
    ///
    /// # Errors
    /// The argument and the limit it breaks.
    pub(crate) fn new(
        input: &GemmInput,
        scalars: (T, T),
        a: &'a [T],
        b: &'a [T],
        c: &'a mut [T],
    ) -> Result<Self, InputError>
    where
        T: Copy,
    {
        let one = GemmInput { batch: Batch::ONE, ..input.clone() };
        BatchCall::new(&one, scalars, a, b, c).map(|batch| batch.whole)
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
            panels.push(GemmCall { number: NO_NUMBER, layout, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc });
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
pub(crate) struct BatchCall<'a, T, O = T> {
    /// The first product, its slices reaching as far as all products do.
    pub(crate) whole: GemmCall<'a, T, O>,
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
        let checked = Checked::new(input)?;
        let have = [a.len(), b.len(), c.len()];
        checked.on(scalars, a, b, c).ok_or_else(|| checked.refusal(have))
    }

    /// Calls for each product in turn.
    pub(crate) fn each(&mut self, mut gemm: impl FnMut(&mut GemmCall<'_, T>)) {
        let GemmCall { number, layout, m, n, k, alpha, a, lda, b, ldb, beta, ldc, .. } = self.whole;
        for product in 0..self.count {
            // Empty operands have no elements to skip.
            let [at_a, at_b, at_c] = self.strides.map(|stride| stride * product);
            let (a, b) = (&a[at_a.min(a.len())..], &b[at_b.min(b.len())..]);
            let at_c = at_c.min(self.whole.c.len());
            let c = &mut self.whole.c[at_c..];
            gemm(&mut GemmCall { number, layout, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc });
        }
    }

    /// The same products in at most so many parts, which share no element of C.
    pub(crate) fn parts(&mut self, parts: usize) -> Vec<BatchCall<'_, T>> {
        let (count, strides) = (self.count, self.strides);
        let GemmCall { number, layout, m, n, k, alpha, a, lda, b, ldb, beta, ldc, .. } = self.whole;
        let each = count.div_ceil(parts.max(1)).max(1);
        let mut rest: &mut [T] = self.whole.c;
        let mut out = Vec::new();
        for first in (0..count).step_by(each) {
            let count = each.min(count - first);
            let (c, tail) = rest.split_at_mut((count * strides[2]).min(rest.len()));
            rest = tail;
            let [at_a, at_b, _] = strides.map(|stride| stride * first);
            let (a, b) = (&a[at_a.min(a.len())..], &b[at_b.min(b.len())..]);
            let whole = GemmCall { number, layout, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc };
            out.push(BatchCall { whole, count, strides });
        }
        out
    }
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
