//! cuBLAS and cuBLASLt on a CUDA device.
//!
//! Both are opened here, by the file that was found: loaders that go by name know only the releases of their own time, and one
//! process must not mix files of two releases. The prototypes are those of `cublas_v2.h` and `cublasLt.h`, unchanged from
//! release 11 to 13; statuses are plain numbers, since newer libraries have more of them.

mod light;
mod numbers;
mod plain;

use super::cuda::{Opened, first, symbol};
use crate::inventory::Identity;
use crate::kernel::ON_DEVICES;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use light::Light;
use plain::Plain;
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use tilewright_core::computation::Computation;
use tilewright_core::program::{DeviceError, LibraryCall};
use tilewright_ops::gemm::{A, B, C, Gemm, GemmInput};
use tilewright_runtime::cuda::{Stage, level};

/// The file that is looked for.
pub(super) const STEM: &str = "libcublas.so";

type Handle = *mut c_void;
type Status = u32;

/// The two files, of one folder.
struct Files {
    blas: Library,
    light: Library,
    path: PathBuf,
}

fn open_at(path: &Path) -> Result<Files, String> {
    let folder = path.parent().ok_or("a file without a folder")?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let light = folder.join(name.replacen("libcublas", "libcublasLt", 1));
    let failed = |e: libloading::Error| e.to_string();
    // SAFETY: the constructors of these libraries have no preconditions. The first is made global so that the second, which
    // needs it, takes it and no other file.
    unsafe {
        let light = Library::open(Some(&light), RTLD_NOW | RTLD_GLOBAL).map_err(failed)?;
        let blas = Library::open(Some(path), RTLD_NOW).map_err(failed)?;
        Ok(Files { blas, light, path: path.to_owned() })
    }
}

/// Major releases whose prototypes are those that are called here.
const RELEASES: std::ops::RangeInclusive<c_int> = 11..=13;

/// Major, minor and patch of what the library says of itself.
fn version(light: &Library) -> Result<[c_int; 3], String> {
    let property: unsafe extern "C" fn(u32, *mut c_int) -> Status = symbol(light, "cublasLtGetProperty")?;
    let mut parts = [0; 3];
    for (which, part) in (0..).zip(&mut parts) {
        // SAFETY: the place is ours; the function may be called at any time.
        let status = unsafe { property(which, part) };
        ok(status, "cublasLtGetProperty").map_err(|e| e.to_string())?;
    }
    Ok(parts)
}

/// Refuses a release whose functions may be others, and one that is newer than the driver, which no device would run.
fn expect_release(path: &Path, [major, minor, patch]: [c_int; 3], driver: Option<i32>) -> Result<(), String> {
    let (path, found) = (path.display(), format!("cuBLAS {major}.{minor}.{patch}"));
    if !RELEASES.contains(&major) {
        let (first, last) = (RELEASES.start(), RELEASES.end());
        return Err(format!("{path} is {found}; releases {first} to {last} are needed"));
    }
    match driver {
        Some(level) if level / 1000 < major => {
            let has = format!("CUDA {}.{}", level / 1000, level % 1000 / 10);
            Err(format!("{path} is {found} and needs a driver of CUDA {major}; the driver here is of {has}"))
        }
        _ => Ok(()),
    }
}

/// Both libraries, or why there is none. Nothing is asked of a device yet.
pub(super) fn open() -> Result<Opened, String> {
    let driver = level();
    let (files, [major, minor, patch]) = first(STEM, |path| {
        let files = open_at(path)?;
        let version = version(&files.light).map_err(|why| format!("{}: {why}", path.display()))?;
        expect_release(path, version, driver)?;
        Ok((files, version))
    })?;
    let (plain, light) = (Plain::of(&files.blas)?, Light::of(&files.light)?);
    let version = format!("{major}.{minor}.{patch}");
    let identity = Identity { path: Some(files.path.clone()), ..Identity::built_in("cublas", &version) };
    // Never closed: code of theirs is loaded on the device.
    std::mem::forget(files);
    Ok((identity, vec![Box::new(plain), Box::new(light)]))
}

fn ok(status: Status, what: &str) -> Result<(), DeviceError> {
    match status {
        0 => Ok(()),
        3 => Err(DeviceError::OutOfMemory { need: 0, have: None }),
        // What is refused is wrong with the call, and no lack of the device.
        7 => {
            Err(DeviceError::Argument { name: "call".into(), message: format!("{what} refuses it (status {status})") })
        }
        15 => Err(DeviceError::Unsupported { device: "cuda".into(), feature: format!("{what} (status {status})") }),
        _ => Err(DeviceError::Load(format!("{what}: status {status}"))),
    }
}

fn parsed(call: &LibraryCall) -> Result<GemmInput, DeviceError> {
    let argument = |name: &str, message: String| DeviceError::Argument { name: name.to_owned(), message };
    let input = Gemm.parse(&call.input).map_err(|e| argument(&e.field, e.message.clone()))?;
    input.only(&ON_DEVICES).map_err(|e| argument(&e.field, e.message.clone()))?;
    if input.batch.count > 1 {
        return Err(argument("batch", format!("{} products at once are not called yet", input.batch.count)));
    }
    Ok(input)
}

/// Checks that the buffers hold what the input needs.
fn fits(input: &GemmInput, stage: &Stage<'_>) -> Result<(), DeviceError> {
    let needs: Vec<usize> = input.lens().iter().zip(input.operand_types()).map(|(len, of)| len * of.size()).collect();
    let short = needs.iter().zip(stage.bytes).any(|(need, have)| need > have);
    if short || stage.bytes.len() < needs.len() || stage.scalars.len() < 2 {
        let message = format!("{:?} bytes where {needs:?} are needed", stage.bytes);
        return Err(DeviceError::Argument { name: "buffers".into(), message });
    }
    Ok(())
}

/// Matrices of the input's element type as addresses.
fn operands(stage: &Stage<'_>) -> [usize; 3] {
    [A, B, C].map(|i| stage.buffers[i] as usize)
}

/// `cublasOperation_t` of A and of B.
fn operations(input: &GemmInput) -> [u32; 2] {
    let layout = input.layout;
    [
        numbers::operation(layout.a_transposed(), layout.a_conjugated()),
        numbers::operation(layout.b_transposed(), layout.b_conjugated()),
    ]
}

#[cfg(test)]
mod tests;
