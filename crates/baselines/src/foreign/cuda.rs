//! What libraries of CUDA devices have in common: where their files lie, and how they are opened.

use super::{cublas, cudnn};
use crate::inventory::{Identity, Missing};
use crate::{DeviceLibraries, locate};
use libloading::os::unix::Library;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tilewright_runtime::cuda::DeviceLibrary;

/// A library that was opened, and its routines.
pub(super) type Opened = (Identity, Vec<Box<dyn DeviceLibrary>>);

/// What can be opened of one library after the other, and why the rest cannot. Nothing is asked of a device yet.
pub(crate) fn libraries() -> DeviceLibraries {
    let mut all = DeviceLibraries { routines: Vec::new(), found: Vec::new(), missing: Vec::new() };
    for (name, opened) in [("cublas", cublas::open()), ("cudnn", cudnn::open())] {
        match opened {
            Ok((identity, routines)) => {
                all.found.push(identity);
                all.routines.extend(routines);
            }
            Err(reason) => all.missing.push(Missing { name, reason }),
        }
    }
    all
}

/// Whether cuBLAS has a file where it is looked for, usable or not.
pub(super) fn has_cublas() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| !locate::candidates(folders(), &[cublas::STEM]).is_empty())
}

/// Whether cuDNN has one.
pub(super) fn has_cudnn() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| !locate::candidates(folders(), &[cudnn::STEM]).is_empty())
}

/// Folders in which CUDA's libraries are kept. Python is asked once.
fn folders() -> &'static [PathBuf] {
    static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOLDERS.get_or_init(|| {
        let mut folders = locate::folders();
        folders.extend(
            ["/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib", "/opt/cuda/lib64"].map(PathBuf::from),
        );
        folders.extend(packages());
        folders
    })
}

/// Where Python's packages of CUDA keep theirs.
fn packages() -> impl Iterator<Item = PathBuf> {
    const SCRIPT: &str = "import sysconfig; print(sysconfig.get_paths()['purelib'])";
    let folders =
        |root: PathBuf| ["cu13", "cublas", "cu12", "cudnn"].map(|name| root.join("nvidia").join(name).join("lib"));
    locate::python_paths(SCRIPT).flat_map(folders)
}

/// The first file of this name that can be used.
///
/// # Errors
/// Why none can.
pub(super) fn first<T>(stem: &str, open_at: impl Fn(&Path) -> Result<T, String>) -> Result<T, String> {
    let mut reasons = Vec::new();
    for path in locate::candidates(folders(), &[stem]) {
        match open_at(&path) {
            Ok(opened) => return Ok(opened),
            Err(reason) => reasons.push(reason),
        }
    }
    if reasons.is_empty() {
        Err(format!("{stem} was not found; see {}", locate::PATH_VARIABLE))
    } else {
        Err(reasons.join("; "))
    }
}

/// A function of a library that is never closed.
pub(super) fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: callers give the prototype of the library's header.
    unsafe { library.get::<T>(name.as_bytes()) }.map(|s| *s).map_err(|e| e.to_string())
}
