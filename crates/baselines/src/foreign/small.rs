//! Products that are made for one shape: kernels that libxsmm compiles when it is asked, and plans of the crate `nano-gemm`.

use super::{Library, LoadError};
use crate::call::{BatchCall, Checked, GemmCall};
use std::ffi::{c_int, c_void};
use tilewright_core::computation::InputError;
use tilewright_ops::gemm::{GemmInput, ScalarClass};

/// Refuses a call for anything but what a kernel was made for: the kernel would go beyond its operands.
fn expect<T>(made_for: &Checked, call: &GemmCall<'_, T>) -> Result<(), InputError> {
    if call.number == made_for.number() {
        return Ok(());
    }
    let &GemmCall { m, n, k, .. } = call;
    Err(InputError::new("m", format!("the kernel was made for {made_for:?}, and is called for {m} x {n} x {k}")))
}

/// `libxsmm_?mmdispatch`: sizes, leading dimensions, scalars, flags, prefetch.
type Dispatch<T> = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    *const c_int,
    *const c_int,
    *const c_int,
    *const T,
    *const T,
    *const c_int,
    *const c_int,
) -> *const c_void;

/// What it gives: code for one shape.
type Compiled<T> = unsafe extern "C" fn(*const T, *const T, *mut T);

const TRANSPOSED_A: c_int = 1;
const TRANSPOSED_B: c_int = 2;
const NO_PREFETCH: c_int = 0;

/// The functions of libxsmm that are called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Libxsmm {
    single: Dispatch<f32>,
    double: Dispatch<f64>,
}

/// An element type that libxsmm compiles for.
pub(crate) trait Dispatched: Copy + PartialEq + From<f32> + Send + Sync + 'static {
    #[doc(hidden)]
    fn of(library: &Libxsmm) -> Dispatch<Self>;
}

impl Dispatched for f32 {
    fn of(library: &Libxsmm) -> Dispatch<f32> {
        library.single
    }
}

impl Dispatched for f64 {
    fn of(library: &Libxsmm) -> Dispatch<f64> {
        library.double
    }
}

/// Code of libxsmm for one shape and one pair of scalars.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jitted<T> {
    checked: Checked,
    beta: T,
    code: Compiled<T>,
}

impl Libxsmm {
    pub(crate) fn of(library: &'static Library) -> Result<Self, LoadError> {
        // SAFETY: the prototypes of version 1; version 2 has no functions of these names.
        unsafe {
            Ok(Self { single: library.symbol("libxsmm_smmdispatch")?, double: library.symbol("libxsmm_dmmdispatch")? })
        }
    }

    /// Code for an input. Its scalars and sizes are those that the library has code for.
    ///
    /// # Errors
    /// The library has none.
    pub(crate) fn compile<T: Dispatched>(&self, input: &GemmInput, checked: &Checked) -> Result<Jitted<T>, InputError> {
        let layout = checked.layout();
        let [m, n, k] = checked.sizes().map(|size| size as c_int);
        let [lda, ldb, ldc] = checked.leading().map(|ld| ld as c_int);
        let beta = T::from(if input.beta == ScalarClass::Zero { 0.0 } else { 1.0 });
        let flag = |is: bool, bit| if is { bit } else { 0 };
        let flags = flag(layout.a_transposed(), TRANSPOSED_A) | flag(layout.b_transposed(), TRANSPOSED_B);
        let alpha = T::from(1.0);
        // SAFETY: the prototype was checked when the symbol was looked up; all pointers are to values that outlive the call.
        let code = unsafe { T::of(self)(m, n, k, &lda, &ldb, &ldc, &alpha, &beta, &flags, &NO_PREFETCH) };
        if code.is_null() {
            let message = format!("{layout}: libxsmm compiles no code for this layout and these sizes");
            return Err(InputError::new("layout", message));
        }
        // SAFETY: what the dispatcher gives is code of this prototype, asked for without prefetching (which would have
        // three more arguments). It is kept as long as the library, which is never closed.
        let code = unsafe { std::mem::transmute::<*const c_void, Compiled<T>>(code) };
        Ok(Jitted { checked: *checked, beta, code })
    }
}

/// Marks the upper halves of vector registers as unused. The compiled code leaves them in use, and a processor may then take some hundred
/// cycles for the first instruction of the older kind behind it, which would be charged to the library.
#[inline]
fn clean_registers() {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the instruction is there.
        unsafe { std::arch::x86_64::_mm256_zeroupper() }
    }
}

impl<T: Dispatched> Jitted<T> {
    /// # Errors
    /// Another shape, or other scalars, than the code was made for.
    pub(crate) fn run(&self, batch: &mut BatchCall<'_, T>) -> Result<(), InputError> {
        expect(&self.checked, &batch.whole)?;
        if batch.whole.alpha != T::from(1.0) || batch.whole.beta != self.beta {
            return Err(InputError::new("alpha, beta", "the code was compiled for other values"));
        }
        batch.each(|call| {
            // SAFETY: `BatchCall` checked that the slices hold matrices of these sizes, for which the code was made: `expect`
            // compared their numbers.
            unsafe { (self.code)(call.a.as_ptr(), call.b.as_ptr(), call.c.as_mut_ptr()) }
        });
        clean_registers();
        Ok(())
    }
}

/// A plan of the crate `nano-gemm`.
pub(crate) struct NanoPlan<T> {
    checked: Checked,
    plan: nano_gemm::Plan<T>,
}

// SAFETY: a plan is never changed once it is made. Its pointers are to functions and to constant tables of masks.
unsafe impl<T: Send> Send for NanoPlan<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for NanoPlan<T> {}

impl NanoPlan<f32> {
    /// Of an input of which nothing is empty. Only for a plain A the crate has kernels that read it as it lies.
    pub(crate) fn single(checked: &Checked) -> Self {
        let [m, n, k] = checked.sizes();
        let plan = match checked.layout().a_transposed() {
            false => nano_gemm::Plan::new_colmajor_lhs_and_dst_f32(m, n, k),
            true => nano_gemm::Plan::new_f32(m, n, k),
        };
        Self { checked: *checked, plan }
    }
}

impl NanoPlan<f64> {
    /// As [`NanoPlan::single`].
    pub(crate) fn double(checked: &Checked) -> Self {
        let [m, n, k] = checked.sizes();
        let plan = match checked.layout().a_transposed() {
            false => nano_gemm::Plan::new_colmajor_lhs_and_dst_f64(m, n, k),
            true => nano_gemm::Plan::new_f64(m, n, k),
        };
        Self { checked: *checked, plan }
    }
}

impl<T: Copy> NanoPlan<T> {
    /// # Errors
    /// Another shape than the plan was made for.
    pub(crate) fn run(&self, batch: &mut BatchCall<'_, T>) -> Result<(), InputError> {
        expect(&self.checked, &batch.whole)?;
        batch.each(|call| self.one(call));
        Ok(())
    }

    /// The crate names the scalars the other way round: `dst = alpha · dst + beta · lhs · rhs`.
    fn one(&self, call: &mut GemmCall<'_, T>) {
        let ((rsa, csa), (rsb, csb)) = (call.a_strides(), call.b_strides());
        // SAFETY: `GemmCall` holds slices for its shape, for which the plan was made; `expect` compared numbers, and so layouts, which say
        // whether the plan was told that A is column-major. C always is.
        unsafe {
            self.plan.execute_unchecked(
                call.m,
                call.n,
                call.k,
                call.c.as_mut_ptr(),
                1,
                call.ldc as isize,
                call.a.as_ptr(),
                rsa as isize,
                csa as isize,
                call.b.as_ptr(),
                rsb as isize,
                csb as isize,
                call.beta,
                call.alpha,
                false,
                false,
            );
        }
    }
}
