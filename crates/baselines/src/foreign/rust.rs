//! Libraries written in Rust, whose products take pointers.

use crate::call::GemmCall;

/// `matrixmultiply::?gemm`: sizes in the order m k n, each operand with row and column stride.
type StridedFn<T> =
    unsafe fn(usize, usize, usize, T, *const T, isize, isize, *const T, isize, isize, T, *mut T, isize, isize);

/// The crate `matrixmultiply`, f32.
pub(crate) fn matrixmultiply_f32(call: &mut GemmCall<'_, f32>) {
    strided_gemm(matrixmultiply::sgemm, call);
}

/// The crate `matrixmultiply`, f64.
pub(crate) fn matrixmultiply_f64(call: &mut GemmCall<'_, f64>) {
    strided_gemm(matrixmultiply::dgemm, call);
}

fn strided_gemm<T: Copy>(function: StridedFn<T>, call: &mut GemmCall<'_, T>) {
    let ((rsa, csa), (rsb, csb)) = (call.a_strides(), call.b_strides());
    // SAFETY: as in `cblas_gemm`; the strides describe the same elements.
    unsafe {
        function(
            call.m,
            call.k,
            call.n,
            call.alpha,
            call.a.as_ptr(),
            rsa as isize,
            csa as isize,
            call.b.as_ptr(),
            rsb as isize,
            csb as isize,
            call.beta,
            call.c.as_mut_ptr(),
            1,
            call.ldc as isize,
        );
    }
}

/// The crate `gemm`, f32 and f64.
pub(crate) fn gemm_crate<T: Copy + Default + PartialEq + 'static>(call: &mut GemmCall<'_, T>, threads: usize) {
    let scalars = (call.alpha, call.beta);
    gemm_as::<T, T>(call, scalars, threads);
}

/// The same of complex numbers.
pub(crate) fn gemm_crate_c32(call: &mut GemmCall<'_, [f32; 2]>, threads: usize) {
    let scalars = [call.alpha, call.beta].map(|[re, im]| gemm::c32::new(re, im));
    gemm_as::<_, gemm::c32>(call, scalars.into(), threads);
}

/// The same of complex numbers.
pub(crate) fn gemm_crate_c64(call: &mut GemmCall<'_, [f64; 2]>, threads: usize) {
    let scalars = [call.alpha, call.beta].map(|[re, im]| gemm::c64::new(re, im));
    gemm_as::<_, gemm::c64>(call, scalars.into(), threads);
}

/// The crate `gemm`, which names the scalars the other way round: `dst = alpha · dst + beta · lhs · rhs`.
///
/// `G` is what the crate calls `T`: of the same layout.
fn gemm_as<T: Copy, G: Copy + Default + PartialEq + 'static>(
    call: &mut GemmCall<'_, T>,
    (alpha, beta): (G, G),
    threads: usize,
) {
    const { assert!(size_of::<T>() == size_of::<G>() && align_of::<T>() == align_of::<G>()) };
    let ((rsa, csa), (rsb, csb)) = (call.a_strides(), call.b_strides());
    let parallelism = if threads > 1 { gemm::Parallelism::Rayon(threads) } else { gemm::Parallelism::None };
    let read_c = beta != G::default();
    // SAFETY: as in `cblas_gemm`; G is f32, f64 or a complex number of such parts, which the crate supports, and T its own bytes.
    unsafe {
        gemm::gemm(
            call.m,
            call.n,
            call.k,
            call.c.as_mut_ptr().cast::<G>(),
            call.ldc as isize,
            1,
            read_c,
            call.a.as_ptr().cast::<G>(),
            csa as isize,
            rsa as isize,
            call.b.as_ptr().cast::<G>(),
            csb as isize,
            rsb as isize,
            beta,
            alpha,
            false,
            call.layout.a_conjugated(),
            call.layout.b_conjugated(),
            parallelism,
        );
    }
}
