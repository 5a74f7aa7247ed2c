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
pub(crate) mod environment;
pub(crate) mod onednn;
pub(crate) mod rust;
pub(crate) mod small;

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

use crate::call::{BatchCall, GemmCall};

const SINGLE_BATCH: &str = "cblas_sgemm_batch_strided";
const DOUBLE_BATCH: &str = "cblas_dgemm_batch_strided";
const COLUMN_MAJOR: c_int = 102;
const NO_TRANSPOSE: c_int = 111;
const TRANSPOSE: c_int = 112;
const CONJUGATE: c_int = 113;

/// `cblas_?gemm` of the LP64 interface; scalars and C may be of another type than the operands.
type CblasFn<T, O = T> = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    O,
    *const T,
    c_int,
    *const T,
    c_int,
    O,
    *mut O,
    c_int,
);

/// `cblas_sbgemm` of OpenBLAS and `cblas_gemm_bf16bf16f32` of MKL: bfloat16 numbers as their 16 bits, all else of binary32.
type CblasHalvesFn = CblasFn<u16, f32>;

/// `cblas_cgemm` and `cblas_zgemm` of the LP64 interface, whose scalars are passed by address.
type CblasComplexFn<T> = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const T,
    *const T,
    c_int,
    *const T,
    c_int,
    *const T,
    *mut T,
    c_int,
);

/// `cblas_?gemm_batch_strided` of the LP64 interface: as `cblas_?gemm`, with a distance behind each leading dimension and the number of
/// products at the end.
type StridedBatchFn<T> = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    T,
    *const T,
    c_int,
    c_int,
    *const T,
    c_int,
    c_int,
    T,
    *mut T,
    c_int,
    c_int,
    c_int,
);

/// `MKLVersion`.
#[repr(C)]
struct MklVersion {
    numbers: [c_int; 3],
    texts: [*const c_char; 4],
}

/// The place of the processor among the texts of [`MklVersion`].
const MKL_PROCESSOR: usize = 2;

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

    /// The `cblas_sgemm` and `cblas_dgemm` of this library, whose names begin with a prefix, and its routines for batches and for
    /// complex numbers if it has them.
    pub(crate) fn cblas(&'static self, prefix: &str) -> Result<Cblas, LoadError> {
        let name = |name: &str| format!("{prefix}{name}");
        // SAFETY: these names have these prototypes in every LP64 CBLAS; some builds leave the prefix from those for batches.
        unsafe {
            Ok(Cblas {
                sgemm: self.symbol(&name("cblas_sgemm"))?,
                dgemm: self.symbol(&name("cblas_dgemm"))?,
                sbatch: self.either(&name(SINGLE_BATCH), SINGLE_BATCH),
                dbatch: self.either(&name(DOUBLE_BATCH), DOUBLE_BATCH),
                complex: self.cblas_complex(prefix, "").ok(),
                three_m: self.cblas_complex(prefix, "3m").ok(),
                halves: self.either(&name("cblas_sbgemm"), "cblas_gemm_bf16bf16f32"),
            })
        }
    }

    fn cblas_complex(&'static self, prefix: &str, suffix: &str) -> Result<CblasComplex, LoadError> {
        // SAFETY: these names have these prototypes in every LP64 CBLAS, those with the suffix where there are any.
        unsafe {
            Ok(CblasComplex {
                cgemm: self.symbol(&format!("{prefix}cblas_cgemm{suffix}"))?,
                zgemm: self.symbol(&format!("{prefix}cblas_zgemm{suffix}"))?,
            })
        }
    }

    /// # Safety
    /// As for [`Library::symbol`], for both names.
    unsafe fn either<T: Copy>(&self, first: &str, second: &str) -> Option<T> {
        // SAFETY: the caller's promise.
        unsafe { self.symbol(first).or_else(|_| self.symbol(second)).ok() }
    }

    /// Whether there is a symbol of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.address(name).is_ok()
    }

    /// Calls `void name(void)`.
    pub(crate) fn call(&self, name: &str) -> Result<(), LoadError> {
        // SAFETY: used for functions of this prototype only, which set up the library's own state.
        unsafe {
            let function: unsafe extern "C" fn() = self.symbol(name)?;
            function();
        }
        Ok(())
    }

    /// The result of `int name(void)`.
    pub(crate) fn number(&self, name: &str) -> Result<i32, LoadError> {
        // SAFETY: used for functions of this prototype only.
        unsafe {
            let function: unsafe extern "C" fn() -> c_int = self.symbol(name)?;
            Ok(function())
        }
    }

    /// The result of `const char *name(int)` for a number that the function knows.
    pub(crate) fn text_of(&self, name: &str, number: i32) -> Result<String, LoadError> {
        // SAFETY: used for functions of this prototype only.
        unsafe {
            let function: unsafe extern "C" fn(c_int) -> *const c_char = self.symbol(name)?;
            let text = function(number);
            Ok(if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() })
        }
    }

    /// The processor that MKL's code is for, as it calls it.
    pub(crate) fn mkl_processor(&self) -> Result<String, LoadError> {
        let mut version = MklVersion { numbers: [0; 3], texts: [std::ptr::null(); 4] };
        // SAFETY: `void MKL_Get_Version(MKLVersion *)` fills this structure with numbers and constant texts.
        unsafe {
            let function: unsafe extern "C" fn(*mut MklVersion) = self.symbol("MKL_Get_Version")?;
            function(&mut version);
            let text = version.texts[MKL_PROCESSOR];
            Ok(if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() })
        }
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
    sbatch: Option<StridedBatchFn<f32>>,
    dbatch: Option<StridedBatchFn<f64>>,
    /// Builds of single precisions lack them.
    pub(crate) complex: Option<CblasComplex>,
    /// `cblas_?gemm3m`, an extension that some have: three real products for a complex one.
    pub(crate) three_m: Option<CblasComplex>,
    halves: Option<CblasHalvesFn>,
}

/// The GEMMs of complex numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CblasComplex {
    cgemm: CblasComplexFn<[f32; 2]>,
    zgemm: CblasComplexFn<[f64; 2]>,
}

impl Cblas {
    pub(crate) fn sgemm(&self, call: &mut GemmCall<'_, f32>) {
        cblas_gemm(self.sgemm, call);
    }

    pub(crate) fn dgemm(&self, call: &mut GemmCall<'_, f64>) {
        cblas_gemm(self.dgemm, call);
    }

    /// Products of bfloat16 numbers, where the library has them.
    pub(crate) fn halves(&self) -> Option<impl Fn(&mut GemmCall<'_, u16, f32>) + Send + Sync + use<>> {
        self.halves.map(|function| move |call: &mut GemmCall<'_, u16, f32>| cblas_gemm(function, call))
    }

    pub(crate) fn sbatch(&self, batch: &mut BatchCall<'_, f32>) {
        cblas_batch(self.sgemm, self.sbatch, batch);
    }

    pub(crate) fn dbatch(&self, batch: &mut BatchCall<'_, f64>) {
        cblas_batch(self.dgemm, self.dbatch, batch);
    }
}

impl CblasComplex {
    pub(crate) fn cgemm(&self, batch: &mut BatchCall<'_, [f32; 2]>) {
        batch.each(|call| cblas_complex(self.cgemm, call));
    }

    pub(crate) fn zgemm(&self, batch: &mut BatchCall<'_, [f64; 2]>) {
        batch.each(|call| cblas_complex(self.zgemm, call));
    }
}

/// By the routine for batches, where the library has one and its integers hold the distances; else one call for each product.
fn cblas_batch<T: Copy>(one: CblasFn<T>, all: Option<StridedBatchFn<T>>, batch: &mut BatchCall<'_, T>) {
    let strides = batch.strides.map(c_int::try_from);
    let (Some(all), [Ok(stride_a), Ok(stride_b), Ok(stride_c)], true) = (all, strides, batch.count > 1) else {
        return batch.each(|call| cblas_gemm(one, call));
    };
    let transpose = |transposed| if transposed { TRANSPOSE } else { NO_TRANSPOSE };
    let call = &mut batch.whole;
    // SAFETY: `BatchCall::new` checked that the three slices hold the matrices of all products, and that products of C do not
    // overlap; every size fits a c_int, the count because a `Batch` has at most as many.
    unsafe {
        all(
            COLUMN_MAJOR,
            transpose(call.layout.a_transposed()),
            transpose(call.layout.b_transposed()),
            call.m as c_int,
            call.n as c_int,
            call.k as c_int,
            call.alpha,
            call.a.as_ptr(),
            call.lda as c_int,
            stride_a,
            call.b.as_ptr(),
            call.ldb as c_int,
            stride_b,
            call.beta,
            call.c.as_mut_ptr(),
            call.ldc as c_int,
            stride_c,
            batch.count as c_int,
        );
    }
}

fn cblas_gemm<T, O: Copy>(function: CblasFn<T, O>, call: &mut GemmCall<'_, T, O>) {
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

fn cblas_complex<T: Copy>(function: CblasComplexFn<T>, call: &mut GemmCall<'_, T>) {
    let stored = |transposed, conjugated| match (transposed, conjugated) {
        (_, true) => CONJUGATE,
        (true, false) => TRANSPOSE,
        (false, false) => NO_TRANSPOSE,
    };
    // SAFETY: as in `cblas_gemm`; the scalars are read during the call only.
    unsafe {
        function(
            COLUMN_MAJOR,
            stored(call.layout.a_transposed(), call.layout.a_conjugated()),
            stored(call.layout.b_transposed(), call.layout.b_conjugated()),
            call.m as c_int,
            call.n as c_int,
            call.k as c_int,
            &call.alpha,
            call.a.as_ptr(),
            call.lda as c_int,
            call.b.as_ptr(),
            call.ldb as c_int,
            &call.beta,
            call.c.as_mut_ptr(),
            call.ldc as c_int,
        );
    }
}
