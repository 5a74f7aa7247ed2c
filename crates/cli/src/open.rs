//! Devices by their names: in this process, or in one of their own where kernels may fault or hang.

use crate::device::DeviceName;
use crate::failure::{Failure, Kind};
use std::sync::Arc;
use tilewright_bench_suite::campaign::Emulated;
use tilewright_core::device::Device;
use tilewright_core::program::DeviceError;
use tilewright_emulator::EmulatorDevice;
use tilewright_runtime::worker::{Isolated, WorkerCommand};

/// A device, in a process of its own unless it is the host.
pub(crate) fn isolated(name: &DeviceName) -> Result<Box<dyn Device>, Failure> {
    if let DeviceName::Cpu | DeviceName::Replay(_) = name {
        return Ok(local(name)?);
    }
    let program = std::env::current_exe().map_err(|e| Failure::new(Kind::Other, "worker", e))?;
    let args = ["worker".to_owned(), "--device".to_owned(), name.to_string()].into();
    let opened = Isolated::open(WorkerCommand::new(program, args));
    Ok(Box::new(opened.map_err(|e| Failure { field: "device".to_owned(), ..e.into() })?))
}

/// A device in this process.
pub(crate) fn local(name: &DeviceName) -> Result<Box<dyn Device>, DeviceError> {
    match name {
        DeviceName::Cpu => name.open(None),
        DeviceName::Emulator(target) => Ok(Box::new(Emulated::new(EmulatorDevice::new(Arc::new(target.spec()))?))),
        DeviceName::Cuda(ordinal) => cuda(*ordinal),
        DeviceName::Replay(_) => {
            let feature = "kernels: it holds recorded times".to_owned();
            Err(DeviceError::Unsupported { device: name.to_string(), feature })
        }
    }
}

/// Whether there is a CUDA device.
#[cfg(feature = "cuda")]
pub(crate) fn has_cuda() -> bool {
    use std::sync::OnceLock;
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| tilewright_runtime::cuda::count().is_ok_and(|count| count > 0))
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn has_cuda() -> bool {
    false
}

#[cfg(feature = "cuda")]
fn cuda(ordinal: u32) -> Result<Box<dyn Device>, DeviceError> {
    let mut device = tilewright_runtime::cuda::CudaDevice::open(ordinal as usize)?;
    match tilewright_baselines::device_libraries() {
        Ok((path, libraries)) => {
            tracing::info!(path = %path.display(), compiler = device.compiler(), "cuBLAS");
            for library in libraries {
                device = device.with_library(library);
            }
        }
        Err(reason) => tracing::warn!(%reason, compiler = device.compiler(), "no cuBLAS"),
    }
    Ok(Box::new(device))
}

#[cfg(not(feature = "cuda"))]
fn cuda(ordinal: u32) -> Result<Box<dyn Device>, DeviceError> {
    let why = "this program was built without CUDA devices".into();
    Err(DeviceError::Missing { device: format!("cuda:{ordinal}"), why })
}
