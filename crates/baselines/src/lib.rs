#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod call;
mod conv;
pub mod cores;
mod foreign;
mod inventory;
mod kernel;
mod libraries;
mod locate;
mod matmul;
mod rust_crates;
mod small;
mod threads;

pub use inventory::{CoreChoice, Identity, Inventory, Missing, inventory};
pub use kernel::{CANDIDATES, LibraryGemm};
pub use locate::PATH_VARIABLE;
pub use small::SmallGemm;

use std::sync::Arc;
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::id::KernelId;
use tilewright_core::problem::AnyKernel;

/// Libraries of CUDA devices: cuBLAS with cuBLASLt, and cuDNN.
#[cfg(feature = "cuda")]
pub struct DeviceLibraries {
    /// Steps of programs: what a device needs to run the kernels of these names.
    pub routines: Vec<Box<dyn tilewright_runtime::cuda::DeviceLibrary>>,
    /// What was opened.
    pub found: Vec<Identity>,
    /// What cannot be used, and why.
    pub missing: Vec<Missing>,
}

/// The libraries of CUDA devices that are found on this machine. Nothing is asked of a device yet.
#[cfg(feature = "cuda")]
pub fn device_libraries() -> DeviceLibraries {
    foreign::cuda::libraries()
}

/// The routines of CUDA devices for a computation as its kernels, whether their libraries are found or not: those that are not found do
/// not run.
pub fn device_kernels(computation: &str) -> Vec<Arc<dyn AnyKernel>> {
    match computation {
        "gemm" => LibraryGemm::of_cuda().into_iter().map(LibraryGemm::erased).collect(),
        "conv" => conv::of_cuda(),
        _ => Vec::new(),
    }
}

/// The routines found for a computation on a device, as its kernels. Libraries of the host are opened on the first call and stay
/// open.
pub fn kernels(computation: &str, device: &DeviceSpec) -> Vec<Arc<dyn AnyKernel>> {
    match (computation, device.kind) {
        ("gemm", DeviceKind::Cpu) => {
            let small = SmallGemm::of_host().into_iter().map(SmallGemm::erased);
            let blas = LibraryGemm::of_host().into_iter().map(LibraryGemm::erased);
            blas.chain(small).chain(matmul::OneDnnGemm::of_host()).collect()
        }
        ("gemm", DeviceKind::Cuda) if foreign::has_cublas() => device_kernels(computation),
        ("conv", DeviceKind::Cpu) => conv::of_host(),
        ("conv", DeviceKind::Cuda) if foreign::has_cudnn() => device_kernels(computation),
        _ => Vec::new(),
    }
}

/// What the libraries of these kernels could do for a caller whose data lay in a layout of their own: kernels to be timed beside them,
/// and for nothing else. The first run of a program of theirs reads the data that it is given and leaves the result; later runs
/// compute the same again, from and to the library's layout.
pub fn in_own_layout(kernels: &[Arc<dyn AnyKernel>]) -> Vec<Arc<dyn AnyKernel>> {
    if kernels.iter().any(|kernel| conv::is_onednn(&kernel.id())) { conv::in_own_layout() } else { Vec::new() }
}

/// Who the library behind each of these kernels is, each library once.
pub fn identities<'a>(kernels: impl IntoIterator<Item = &'a KernelId>) -> Vec<Identity> {
    let mut found: Vec<Identity> = Vec::new();
    for identity in kernels.into_iter().filter_map(identity_of) {
        if !found.contains(&identity) {
            found.push(identity);
        }
    }
    found
}

/// Who the library behind a kernel is; none where it is not found here, or not ours.
pub fn identity_of(kernel: &KernelId) -> Option<Identity> {
    let named = |library: &str, found: &[Identity]| found.iter().find(|of| of.name == library).cloned();
    let library = library_of(kernel.name());
    match library {
        "cublas" | "cublaslt" | "cudnn" => named(library.trim_end_matches("lt"), of_devices()),
        _ if inventory::NAMES.contains(&library) => named(library, &inventory().found),
        _ => None,
    }
}

/// The library that a kernel is named after.
fn library_of(name: &str) -> &str {
    name.strip_suffix(kernel::THREE_M).unwrap_or_else(|| conv::library_of(name))
}

/// The libraries of CUDA devices that are found here.
fn of_devices() -> &'static [Identity] {
    #[cfg(feature = "cuda")]
    {
        static FOUND: std::sync::OnceLock<Vec<Identity>> = std::sync::OnceLock::new();
        if foreign::has_cublas() || foreign::has_cudnn() {
            return FOUND.get_or_init(|| device_libraries().found);
        }
    }
    &[]
}

/// Whether a kernel is one of [`in_own_layout`].
pub fn is_in_own_layout(kernel: &KernelId) -> bool {
    conv::is_in_own_layout(kernel)
}

/// The kernels among [`kernels`] that a text names: `all`, `none`, or names of libraries separated by commas.
///
/// # Errors
/// A name that is unknown for the computation on such a device, or whose library is missing.
pub fn select(
    computation: &str,
    device: &DeviceSpec,
    selection: &str,
) -> Result<Vec<Arc<dyn AnyKernel>>, SelectionError> {
    let found = match selection {
        "none" => return Ok(Vec::new()),
        "all" => return Ok(kernels(computation, device)),
        _ => kernels(computation, device),
    };
    let names = selection.split(',').map(str::trim).filter(|name| !name.is_empty());
    let one = |wanted: &str| {
        let kernel = found.iter().find(|kernel| kernel.id().name() == wanted);
        kernel.cloned().ok_or_else(|| why_not(computation, wanted, device, &found))
    };
    names.map(one).collect()
}

fn why_not(computation: &str, wanted: &str, device: &DeviceSpec, found: &[Arc<dyn AnyKernel>]) -> SelectionError {
    let library = match (computation, device.kind) {
        ("gemm", DeviceKind::Cpu) => Some(wanted.strip_suffix(kernel::THREE_M).unwrap_or(wanted)),
        ("conv", DeviceKind::Cpu) => Some(conv::library_of(wanted)),
        _ => None,
    };
    let missing = library.and_then(|library| inventory().missing.iter().find(|missing| missing.name == library));
    let of_host = missing.map(|missing| missing.reason.clone());
    let owned = wanted.to_owned();
    if let Some(reason) = of_host.or_else(|| absent(computation, wanted, device)) {
        return SelectionError::Missing { name: owned, reason };
    }
    let known: Vec<String> = found.iter().map(|kernel| kernel.id().name().to_owned()).collect();
    SelectionError::Unknown { name: owned, known: ["all", "none"].map(String::from).into_iter().chain(known).collect() }
}

/// Why a routine of CUDA devices, which has this name, is not there.
fn absent(computation: &str, wanted: &str, device: &DeviceSpec) -> Option<String> {
    let is_one = device_kernels(computation).iter().any(|kernel| kernel.id().name() == wanted);
    let library = if computation == "gemm" { "cublas" } else { conv::library_of(wanted) };
    #[cfg(feature = "cuda")]
    let reason = || device_libraries().missing.into_iter().find(|m| m.name == library).map(|m| m.reason);
    #[cfg(not(feature = "cuda"))]
    let reason = || Some(format!("this was built without CUDA, and {library} is of CUDA devices"));
    if is_one && device.kind == DeviceKind::Cuda { reason() } else { None }
}

/// A library asked for by name that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No library has this name.
    #[error("baselines: unknown `{name}`; known on this device: {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What may be.
        known: Vec<String>,
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
