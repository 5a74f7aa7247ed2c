//! GEMM libraries to compare with, found at run time.
//!
//! | name | how it is found | threads |
//! |---|---|---|
//! | `gemm` | built in | rayon, given with each call |
//! | `matrixmultiply` | built in | C divided by columns over rayon |
//! | `openblas` | `libopenblas.so.N` | `openblas_set_num_threads` |
//! | `blis` | `libblis.so.N` | `bli_thread_set_num_threads` |
//! | `mkl` | `libmkl_rt.so.N` | `MKL_Set_Num_Threads`, Intel's OpenMP if found beside it, else GNU's, else one |
//!
//! Shared libraries are looked for in [`PATH_VARIABLE`], `build/baselines` of this folder and those above it, the loader's
//! path, the active Python environment, the system's folders and, for what is still missing, the `lib` folders of `python3`.
//! They are opened so that each runs its own code although several define the same symbols, and that is checked.

mod call;
mod foreign;
mod libraries;
mod locate;
mod rust_crates;

use std::fmt;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde::Serialize;
use tilewright_core::buffer::Buffer;
use tilewright_core::dtype::DType;
use tilewright_ops::gemm::{self, GemmInput};

/// The routines of a file, and the file.
#[cfg(feature = "cuda")]
pub type DeviceLibraries = (PathBuf, Vec<Box<dyn tilewright_runtime::cuda::DeviceLibrary>>);

/// cuBLAS and cuBLASLt as steps of programs on a CUDA device, with the file they were loaded from.
///
/// # Errors
/// Why they are not there.
#[cfg(feature = "cuda")]
pub fn device_libraries() -> Result<DeviceLibraries, String> {
    foreign::cublas::libraries()
}

pub use call::{CallError, GemmCall};
pub use locate::PATH_VARIABLE;

/// Who a baseline is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Short name: `openblas`.
    pub name: &'static str,
    /// What the library says of itself.
    pub version: String,
    /// The file it was loaded from; none for what is built in.
    pub path: Option<PathBuf>,
    /// The most threads it can use, if limited.
    pub max_threads: Option<usize>,
}

impl Identity {
    fn built_in(name: &'static str, version: &str) -> Self {
        Identity { name, version: version.to_owned(), path: None, max_threads: None }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)?;
        if let Some(path) = &self.path {
            write!(f, " ({})", path.display())?;
        }
        Ok(())
    }
}

/// A GEMM to compare with.
pub trait Baseline: Send + Sync + fmt::Debug {
    /// Name, version and file.
    fn identity(&self) -> &Identity;
    /// `C = alpha · op(A) · op(B) + beta · C` in f32 on `threads` threads (at least one).
    fn sgemm(&self, call: &mut GemmCall<'_, f32>, threads: usize);
    /// The same in f64.
    fn dgemm(&self, call: &mut GemmCall<'_, f64>, threads: usize);
}

/// One call of `baseline` on the buffers and scalars of a workload of `input`.
///
/// # Errors
/// [`CallError`] for sizes beyond 32-bit BLAS, buffers that are too short, or an element type that is neither f32 nor f64.
pub fn multiply(
    baseline: &dyn Baseline,
    input: &GemmInput,
    buffers: &mut [Buffer],
    scalars: &[f64],
    threads: usize,
) -> Result<(), CallError> {
    let (alpha, beta) = (scalars[gemm::ALPHA], scalars[gemm::BETA]);
    let [a, b, c] = buffers else { return Err(CallError::Buffers { have: buffers.len() }) };
    input.only(&GemmInput::PLAIN)?;
    match input.dtype() {
        DType::F32 => {
            let scalars = (alpha as f32, beta as f32);
            let mut call = GemmCall::new(input, scalars, a.as_slice(), b.as_slice(), c.as_mut_slice())?;
            baseline.sgemm(&mut call, threads);
        }
        _ => {
            let mut call = GemmCall::new(input, (alpha, beta), a.as_slice(), b.as_slice(), c.as_mut_slice())?;
            baseline.dgemm(&mut call, threads);
        }
    }
    Ok(())
}

/// A library that cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Short name: `mkl`.
    pub name: &'static str,
    /// Why: not found, or found but not usable.
    pub reason: String,
}

/// What this machine has.
#[derive(Debug)]
pub struct Inventory {
    /// Baselines that can be called.
    pub found: Vec<Box<dyn Baseline>>,
    /// Those that cannot, and why.
    pub missing: Vec<Missing>,
}

impl Inventory {
    /// The baseline called `name`.
    pub fn get(&self, name: &str) -> Option<&dyn Baseline> {
        self.found.iter().find(|baseline| baseline.identity().name == name).map(|baseline| &**baseline)
    }

    /// The baselines that `selection` names: `all`, or names separated by commas.
    ///
    /// # Errors
    /// [`SelectionError`] for a name that is unknown or whose library is missing.
    pub fn select(&self, selection: &str) -> Result<Vec<&dyn Baseline>, SelectionError> {
        if selection == "all" {
            return Ok(self.found.iter().map(|baseline| &**baseline).collect());
        }
        let names = selection.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(|name| self.get(name).ok_or_else(|| self.why_not(name))).collect()
    }

    fn why_not(&self, name: &str) -> SelectionError {
        match self.missing.iter().find(|missing| missing.name == name) {
            Some(missing) => SelectionError::Missing { name: name.to_owned(), reason: missing.reason.clone() },
            None => SelectionError::Unknown { name: name.to_owned() },
        }
    }
}

/// A baseline asked for by name that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No baseline has this name.
    #[error("baselines: unknown `{name}`; known: all, gemm, matrixmultiply, openblas, blis, mkl")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The library is not usable on this machine.
    #[error("baselines: `{name}` is missing: {reason}")]
    Missing {
        /// What was asked for.
        name: String,
        /// Why it cannot be used.
        reason: String,
    },
}

/// All baselines of this machine. Libraries are searched for and opened on the first call and stay open.
pub fn find_all() -> &'static Inventory {
    static INVENTORY: OnceLock<Inventory> = OnceLock::new();
    INVENTORY.get_or_init(|| {
        let mut found: Vec<Box<dyn Baseline>> =
            vec![Box::new(rust_crates::GemmCrate::new()), Box::new(rust_crates::MatrixMultiply::new())];
        let mut missing = Vec::new();
        for result in libraries::load_all() {
            match result {
                Ok(library) => found.push(Box::new(library)),
                Err(reason) => missing.push(reason),
            }
        }
        Inventory { found, missing }
    })
}
