//! The functions of cuDNN that are called, and how its files are opened.
//!
//! cuDNN is one file that opens others when they are needed, by their names: of another folder's release, unless those of its own
//! are open already. They are opened here, by their paths, and what is mapped afterwards is looked at.
//!
//! The prototypes are those of `cudnn_ops.h` and `cudnn_cnn.h` of release 9, the older ones of which the graphs of newer releases
//! have not replaced; statuses are plain numbers, since releases number them differently.

use super::super::cuda::symbol;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use tilewright_core::program::DeviceError;
use tilewright_ops::conv::Direction;

pub(super) type Handle = *mut c_void;
pub(super) type Status = u32;

/// The oldest release that knows `CUDNN_FMA_MATH`.
const OLDEST: usize = 8000;

/// Files that the first one opens, in the order in which one needs the other.
const PARTS: [&str; 3] = ["libcudnn_graph.so", "libcudnn_ops.so", "libcudnn_cnn.so"];

/// `cudnnConvolutionFwdAlgoPerf_t`, and those of the other directions, which have the same members.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Performance {
    pub(super) algorithm: c_int,
    pub(super) status: Status,
    pub(super) time_ms: f32,
    pub(super) memory: usize,
    pub(super) determinism: c_int,
    pub(super) math: c_int,
    pub(super) reserved: [c_int; 3],
}

type Make = unsafe extern "C" fn(*mut Handle) -> Status;
type SetTensor = unsafe extern "C" fn(Handle, c_int, c_int, c_int, c_int, c_int, c_int) -> Status;
type SetNumber = unsafe extern "C" fn(Handle, c_int) -> Status;
type SetConvolution = unsafe extern "C" fn(Handle, c_int, c_int, c_int, c_int, c_int, c_int, c_int, c_int) -> Status;
type Propose =
    unsafe extern "C" fn(Handle, Handle, Handle, Handle, Handle, c_int, *mut c_int, *mut Performance) -> Status;
type Workspace = unsafe extern "C" fn(Handle, Handle, Handle, Handle, Handle, c_int, *mut usize) -> Status;
type Run = unsafe extern "C" fn(
    Handle,
    *const c_void,
    Handle,
    *const c_void,
    Handle,
    *const c_void,
    Handle,
    c_int,
    *mut c_void,
    usize,
    *const c_void,
    Handle,
    *mut c_void,
) -> Status;

/// The functions of one direction. All take descriptors in the same order: what is read first and second, the convolution, what is
/// written.
#[derive(Clone, Copy)]
pub(super) struct Pass {
    /// All algorithms, what the library expects most of first.
    pub(super) propose: Propose,
    pub(super) workspace: Workspace,
    pub(super) run: Run,
    /// How many algorithms there are.
    pub(super) algorithms: c_int,
}

/// The functions.
pub(super) struct Api {
    /// The file; none in tests.
    pub(super) path: Option<PathBuf>,
    pub(super) create: Make,
    pub(super) set_stream: unsafe extern "C" fn(Handle, *mut c_void) -> Status,
    pub(super) make_tensor: Make,
    /// Descriptor, layout, element type, and the four sizes.
    pub(super) set_tensor: SetTensor,
    pub(super) make_filter: Make,
    /// Descriptor, element type, layout, and the four sizes.
    pub(super) set_filter: SetTensor,
    pub(super) make_convolution: Make,
    pub(super) set_convolution: SetConvolution,
    pub(super) set_math: SetNumber,
    pub(super) set_groups: SetNumber,
    pub(super) error: unsafe extern "C" fn(Status) -> *const c_char,
    /// Of release 9.
    pub(super) last_error: Option<unsafe extern "C" fn(*mut c_char, usize)>,
    pub(super) forward: Pass,
    pub(super) data: Pass,
    pub(super) filter: Pass,
}

/// The version by parts, from the number that the library gives: `92800`, and before release 9 `8907`.
fn version_text(number: usize) -> String {
    let unit = if number >= 10_000 { 10_000 } else { 1000 };
    format!("{}.{}.{}", number / unit, number % unit / 100, number % 100)
}

impl Api {
    /// Opens the first file and finds all functions; its version beside it.
    ///
    /// # Errors
    /// Why the file cannot be used.
    pub(super) fn open(path: &Path) -> Result<(Self, String), String> {
        // SAFETY: the constructors of this library have no preconditions.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| e.to_string())?;
        let version: unsafe extern "C" fn() -> usize = symbol(&library, "cudnnGetVersion")?;
        // SAFETY: the function takes nothing and may be called at any time.
        let number = unsafe { version() };
        let version = version_text(number);
        if number < OLDEST {
            return Err(format!("{} is release {version}: CUDNN_FMA_MATH came with 8.0", path.display()));
        }
        let api = Self::of(&library, path)?;
        // Never closed: code of its own is loaded on the device.
        std::mem::forget(library);
        Ok((api, version))
    }

    fn of(library: &Library, path: &Path) -> Result<Self, String> {
        let pass = |name: &str, algorithms: c_int| {
            Ok::<_, String>(Pass {
                propose: symbol(library, &format!("cudnnGetConvolution{name}Algorithm_v7"))?,
                workspace: symbol(library, &format!("cudnnGetConvolution{name}WorkspaceSize"))?,
                run: symbol(library, &format!("cudnnConvolution{name}"))?,
                algorithms,
            })
        };
        Ok(Self {
            path: Some(path.to_owned()),
            create: symbol(library, "cudnnCreate")?,
            set_stream: symbol(library, "cudnnSetStream")?,
            make_tensor: symbol(library, "cudnnCreateTensorDescriptor")?,
            set_tensor: symbol(library, "cudnnSetTensor4dDescriptor")?,
            make_filter: symbol(library, "cudnnCreateFilterDescriptor")?,
            set_filter: symbol(library, "cudnnSetFilter4dDescriptor")?,
            make_convolution: symbol(library, "cudnnCreateConvolutionDescriptor")?,
            set_convolution: symbol(library, "cudnnSetConvolution2dDescriptor")?,
            set_math: symbol(library, "cudnnSetConvolutionMathType")?,
            set_groups: symbol(library, "cudnnSetConvolutionGroupCount")?,
            error: symbol(library, "cudnnGetErrorString")?,
            last_error: symbol(library, "cudnnGetLastErrorString").ok(),
            forward: pass("Forward", 8)?,
            data: pass("BackwardData", 6)?,
            filter: pass("BackwardFilter", 7)?,
        })
    }

    /// The functions of a direction.
    pub(super) fn pass(&self, direction: Direction) -> Pass {
        match direction {
            Direction::Forward => self.forward,
            Direction::Data => self.data,
            Direction::Filter => self.filter,
        }
    }

    /// A handle for the current context. The library's other files are opened first.
    pub(super) fn handle(&self) -> Result<Handle, DeviceError> {
        if let Some(path) = &self.path {
            open_parts(path).map_err(DeviceError::Load)?;
        }
        let handle = self.made("cudnnCreate", self.create)?;
        if let Some(path) = &self.path {
            of_one_folder(path, &mapped()).map_err(DeviceError::Load)?;
        }
        Ok(handle)
    }

    /// What a function makes.
    pub(super) fn made(&self, what: &str, make: Make) -> Result<Handle, DeviceError> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the place is ours. Handles need a current context, which every caller has.
        self.ok(unsafe { make(&raw mut handle) }, what).map(|()| handle)
    }

    /// What a status means: releases up to 8 number them from 0, later ones by thousands for each kind.
    pub(super) fn ok(&self, status: Status, what: &str) -> Result<(), DeviceError> {
        match status {
            0 => Ok(()),
            2 | 4003 | 4004 => Err(DeviceError::OutOfMemory { need: 0, have: None }),
            9 | 3000..4000 => Err(DeviceError::Unsupported { device: "cuda".into(), feature: self.text(status, what) }),
            _ => Err(DeviceError::Load(self.text(status, what))),
        }
    }

    /// `cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED (status 1001), the reason`.
    fn text(&self, status: Status, what: &str) -> String {
        // SAFETY: the function gives null or a text that lives as long as the library.
        let name = unsafe {
            let text = (self.error)(status);
            if text.is_null() { "unknown".into() } else { CStr::from_ptr(text).to_string_lossy() }
        };
        let mut reason = [0u8; 256];
        if let Some(last) = self.last_error {
            // SAFETY: the buffer is as long as stated, less one byte, so that it ends in NUL whatever is written.
            unsafe { last(reason.as_mut_ptr().cast(), reason.len() - 1) };
        }
        let reason = CStr::from_bytes_until_nul(&reason).unwrap_or_default().to_string_lossy();
        let more = if reason.is_empty() { String::new() } else { format!(", {reason}") };
        format!("{what}: {name} (status {status}){more}")
    }
}

/// Opens the files beside the first one, so that the names that it asks for are those. Releases before 9 have others, which are
/// left to it.
fn open_parts(path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for part in PARTS.map(|part| path.with_file_name(name.replacen("libcudnn.so", part, 1))) {
        if part.exists() {
            // SAFETY: as for the first file.
            let opened = unsafe { Library::open(Some(&part), RTLD_NOW | RTLD_LOCAL) };
            std::mem::forget(opened.map_err(|e| e.to_string())?);
        }
    }
    Ok(())
}

/// The files that are mapped into this process; none where the system does not tell.
fn mapped() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let file = |line: &str| line.split_once('/').map(|(_, path)| PathBuf::from(format!("/{path}")));
    maps.lines().filter_map(file).collect()
}

/// Refuses files of cuDNN that lie elsewhere than the first one.
fn of_one_folder(path: &Path, mapped: &[PathBuf]) -> Result<(), String> {
    let file = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_part = |other: &&PathBuf| other.file_name().is_some_and(|n| n.to_string_lossy().starts_with("libcudnn"));
    match mapped.iter().filter(is_part).find(|other| other.parent() != file.parent()) {
        Some(other) => Err(format!("{} was opened beside {}: of another folder", other.display(), file.display())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbered_in_two_ways() {
        assert_eq!((version_text(92_800), version_text(8907)), ("9.28.0".to_owned(), "8.9.7".to_owned()));
    }

    #[test]
    fn files_of_another_folder_are_refused() {
        let path = |name: &str| PathBuf::from(name);
        let first = path("/a/libcudnn.so.9");
        let own = [path("/a/libcudnn_cnn.so.9"), path("/b/libcublas.so.12"), path("/a/libcudnn.so.9")];
        assert_eq!(of_one_folder(&first, &own), Ok(()));
        let other = [path("/a/libcudnn.so.9"), path("/b/libcudnn_ops.so.9")];
        let reason = of_one_folder(&first, &other).unwrap_err();
        assert!(reason.contains("/b/libcudnn_ops.so.9") && reason.contains("/a/libcudnn.so.9"), "{reason}");
    }

    #[test]
    fn results_of_the_heuristic_lie_as_in_the_header() {
        assert_eq!((size_of::<Performance>(), std::mem::offset_of!(Performance, memory)), (48, 16));
    }
}
