//! Every `unsafe` of this crate: opening foreign libraries and calling foreign GEMMs and convolutions.
//!
//! The outside sees only safe functions. Their soundness rests on two facts: a [`GemmCall`] proves that its slices hold
//! what its shape needs, and the symbols looked up here have the C prototypes of their libraries' public headers.
#![allow(unsafe_code)]

#[cfg(feature = "cuda")]
mod cublas;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
#[cfg(feature = "cuda")]
mod cudnn;
pub(crate) mod onednn;

/// Whether cuBLAS lies where it is looked for.
pub(crate) fn has_cublas() -> bool {
    #[cfg(feature = "cuda")]
    return cuda::has_cublas();
    #[cfg(not(feature = "cuda"))]
    false
}

/// Whether cuDNN lies where it is looked for.
pub(crate) fn has_cudnn() -> bool {
    #[cfg(feature = "cuda")]
    return cuda::has_cudnn();
    #[cfg(not(feature = "cuda"))]
    false
}

use std::ffi::{CStr, c_char, c_int};
use std::path::{Path, PathBuf};

use crate::call::GemmCall;

const COLUMN_MAJOR: c_int = 102;
const NO_TRANSPOSE: c_int = 111;
const TRANSPOSE: c_int = 112;

/// `cblas_?gemm` of the LP64 interface.
type CblasFn<T> = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    T,
    *const T,
    c_int,
    *const T,
    c_int,
    T,
    *mut T,
    c_int,
);

/// `matrixmultiply::?gemm`: sizes in the order m k n, each operand with row and column stride.
type StridedFn<T> =
    unsafe fn(usize, usize, usize, T, *const T, isize, isize, *const T, isize, isize, T, *mut T, isize, isize);

/// Why a library could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("cannot open {}: {reason}", path.display())]
    Open { path: PathBuf, reason: String },
    #[error("{} has no symbol {symbol}", path.display())]
    Symbol { path: PathBuf, symbol: String },
    #[error("{} has 64-bit integers, the LP64 interface is needed", path.display())]
    Interface { path: PathBuf },
    #[error("{symbol} of {} resolves to {}", path.display(), file.display())]
    Foreign { path: PathBuf, symbol: String, file: PathBuf },
    #[error("{} cannot be used: {why}", path.display())]
    Unusable { path: PathBuf, why: String },
}

/// Whether the symbols of a library serve later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// Only for itself: two libraries that both define `cblas_sgemm` each keep their own.
    Local,
    /// For all libraries opened later that do not bind deeply: an OpenMP runtime that MKL's layers expect to find.
    Global,
}

/// An open library. Never closed: BLAS libraries own threads that must not lose their code.
#[derive(Debug)]
pub(crate) struct Library {
    handle: libloading::Library,
    path: PathBuf,
}

impl Library {
    /// Opens the library at `path`, or by bare name through the loader's own search.
    pub(crate) fn open(path: &Path, visibility: Visibility) -> Result<&'static Library, LoadError> {
        let error = |reason: libloading::Error| LoadError::Open { path: path.to_owned(), reason: reason.to_string() };
        // SAFETY: opening runs the library's constructors. Only the BLAS, OpenMP and oneDNN libraries named in `libraries`
        // are opened; their constructors set up their own state and read environment variables.
        let handle = unsafe { open(path, visibility) }.map_err(error)?;
        Ok(Box::leak(Box::new(Library { handle, path: path.to_owned() })))
    }

    /// The `cblas_sgemm` and `cblas_dgemm` of this library.
    pub(crate) fn cblas(&'static self) -> Result<Cblas, LoadError> {
        // SAFETY: both names have this one prototype in every LP64 CBLAS.
        unsafe { Ok(Cblas { sgemm: self.symbol("cblas_sgemm")?, dgemm: self.symbol("cblas_dgemm")? }) }
    }

    /// Calls `void name(int)`.
    pub(crate) fn call_with_int(&self, name: &str, value: i64) -> Result<(), LoadError> {
        // SAFETY: used for setters of this prototype only. BLIS declares a 64-bit argument: passing 64 bits serves both,
        // because a callee that takes `int` reads the low half of the same register.
        let setter: unsafe extern "C" fn(i64) = unsafe { self.symbol(name)? };
        // SAFETY: as above; the setters accept any positive count.
        unsafe { setter(value) };
        Ok(())
    }

    /// The result of `const char *name(void)`.
    pub(crate) fn text(&self, name: &str) -> Result<String, LoadError> {
        // SAFETY: used for functions of this prototype only.
        let getter: unsafe extern "C" fn() -> *const c_char = unsafe { self.symbol(name)? };
        // SAFETY: the functions return null or a NUL-terminated string that lives as long as the library: forever.
        unsafe {
            let text = getter();
            Ok(if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() })
        }
    }

    /// The text that `void name(char *buffer, int length)` writes.
    pub(crate) fn text_in_buffer(&self, name: &str) -> Result<String, LoadError> {
        // SAFETY: used for functions of this prototype only.
        let getter: unsafe extern "C" fn(*mut c_char, c_int) = unsafe { self.symbol(name)? };
        let mut buffer = [0u8; 256];
        // SAFETY: the buffer is as long as stated, less one byte, so that it ends in NUL whatever is written.
        unsafe { getter(buffer.as_mut_ptr().cast(), buffer.len() as c_int - 1) };
        let end = buffer.iter().position(|&byte| byte == 0).unwrap_or(buffer.len());
        Ok(String::from_utf8_lossy(&buffer[..end]).trim().to_owned())
    }

    /// Where `name` lies in memory.
    pub(crate) fn address(&self, name: &str) -> Result<usize, LoadError> {
        // SAFETY: the address is only looked at, never called or read.
        unsafe { self.symbol::<*const ()>(name) }.map(|pointer| pointer as usize)
    }

    /// # Safety
    /// `T` is a pointer type and, if a function pointer, has the prototype of `name`.
    unsafe fn symbol<T: Copy>(&self, name: &str) -> Result<T, LoadError> {
        // SAFETY: the caller's promise. The handle is never closed, so the copied pointer stays valid.
        match unsafe { self.handle.get::<T>(name.as_bytes()) } {
            Ok(symbol) => Ok(*symbol),
            Err(_) => Err(LoadError::Symbol { path: self.path.clone(), symbol: name.to_owned() }),
        }
    }
}

/// # Safety
/// Runs the library's constructors.
#[cfg(unix)]
unsafe fn open(path: &Path, visibility: Visibility) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::unix::{Library as Unix, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
    // glibc: look in the library and what it needs before the global scope. Without it BLIS, whose cblas_sgemm calls
    // sgemm_ and whose loops call GOMP_parallel, would run MKL's layers and Intel's OpenMP once those are global.
    const RTLD_DEEPBIND: c_int = if cfg!(all(target_os = "linux", target_env = "gnu")) { 8 } else { 0 };
    let scope = match visibility {
        Visibility::Local => RTLD_LOCAL | RTLD_DEEPBIND,
        Visibility::Global => RTLD_GLOBAL,
    };
    // SAFETY: the caller's promise.
    unsafe { Unix::open(Some(path), RTLD_NOW | scope) }.map(Into::into)
}

/// # Safety
/// Runs the library's constructors.
#[cfg(not(unix))]
unsafe fn open(path: &Path, _visibility: Visibility) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: the caller's promise.
    unsafe { libloading::Library::new(path) }
}

/// The GEMMs of one CBLAS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cblas {
    sgemm: CblasFn<f32>,
    dgemm: CblasFn<f64>,
}

impl Cblas {
    pub(crate) fn sgemm(&self, call: &mut GemmCall<'_, f32>) {
        cblas_gemm(self.sgemm, call);
    }

    pub(crate) fn dgemm(&self, call: &mut GemmCall<'_, f64>) {
        cblas_gemm(self.dgemm, call);
    }
}

fn cblas_gemm<T: Copy>(function: CblasFn<T>, call: &mut GemmCall<'_, T>) {
    let transpose = |transposed| if transposed { TRANSPOSE } else { NO_TRANSPOSE };
    // SAFETY: `GemmCall::new` checked that the three slices hold their matrices with these leading dimensions and that
    // every size fits a c_int; `c` is borrowed mutably, so nothing else sees it during the call.
    unsafe {
        function(
            COLUMN_MAJOR,
            transpose(call.layout.a_transposed()),
            transpose(call.layout.b_transposed()),
            call.m as c_int,
            call.n as c_int,
            call.k as c_int,
            call.alpha,
            call.a.as_ptr(),
            call.lda as c_int,
            call.b.as_ptr(),
            call.ldb as c_int,
            call.beta,
            call.c.as_mut_ptr(),
            call.ldc as c_int,
        );
    }
}

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

/// The crate `gemm`, which names the scalars the other way round: `dst = alpha · dst + beta · lhs · rhs`.
pub(crate) fn gemm_crate<T: Copy + Default + PartialEq + 'static>(call: &mut GemmCall<'_, T>, threads: usize) {
    let ((rsa, csa), (rsb, csb)) = (call.a_strides(), call.b_strides());
    let parallelism = if threads > 1 { gemm::Parallelism::Rayon(threads) } else { gemm::Parallelism::None };
    let read_c = call.beta != T::default();
    // SAFETY: as in `cblas_gemm`; T is f32 or f64, which the crate supports.
    unsafe {
        gemm::gemm(
            call.m,
            call.n,
            call.k,
            call.c.as_mut_ptr(),
            call.ldc as isize,
            1,
            read_c,
            call.a.as_ptr(),
            csa as isize,
            rsa as isize,
            call.b.as_ptr(),
            csb as isize,
            rsb as isize,
            call.beta,
            call.alpha,
            false,
            false,
            false,
            parallelism,
        );
    }
}
