//! Devices as commands name and open them: in this process, or in one of their own where kernels may fault or hang.

use crate::args::DeviceArgs;
use crate::failure::{Failure, Kind};
use crate::output::note;
use std::sync::Arc;
use std::time::Duration;
pub(crate) use tilewright::DeviceName;
use tilewright::device::{compilers, emulator, host};
use tilewright_bench_suite::campaign::Emulated;
use tilewright_compile::Compiling;
use tilewright_core::device::{Device, DeviceSpec};
#[cfg(feature = "cuda")]
use tilewright_core::device::{FoundLibrary, MissingLibrary};
use tilewright_core::program::DeviceError;
use tilewright_runtime::Live;
use tilewright_runtime::bystanders::Bystanders;
use tilewright_runtime::worker::{Isolated, WorkerCommand};

/// A device that is measured and checked on.
pub(crate) type Opened = Live<Box<dyn Device>>;

/// Variables that would make a library compute in another type than it is asked for, or the driver wait for each launch: comparisons
/// would be with something else.
const UNSET: [&str; 6] = [
    "NVIDIA_TF32_OVERRIDE",
    "CUBLAS_EMULATE_SINGLE_PRECISION",
    "CUBLAS_EMULATE_DOUBLE_PRECISION",
    "CUBLAS_EMULATION_STRATEGY",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_LAUNCH_BLOCKING",
];

/// The device of this name.
pub(crate) fn parse(name: &str) -> Result<DeviceName, Failure> {
    Ok(name.parse().map_err(tilewright::Error::Device)?)
}

/// The device of a command: the named one; else the first CUDA device, unless there is none or the threads of the host are asked for.
pub(crate) fn named(args: &DeviceArgs) -> Result<DeviceName, Failure> {
    match &args.device {
        Some(name) => parse(name),
        None if args.threads.is_none() && has_cuda() => Ok(DeviceName::Cuda(0)),
        None => Ok(DeviceName::Cpu),
    }
}

/// Refuses a device that has no clock, before anything is begun that would need it.
pub(crate) fn expect_clock(name: &DeviceName) -> Result<(), Failure> {
    let DeviceName::Emulator(..) = name else { return Ok(()) };
    let message = format!("{name} checks results and counts, it never times: use verify, space or emit");
    Err(Failure::new(Kind::Usage, "device", message))
}

/// Opens a device, in a process of its own where kernels may fault or hang; `threads` are those of the cpu device.
pub(crate) fn opened(name: &DeviceName, threads: Option<u16>) -> Result<Box<dyn Device>, Failure> {
    match name {
        DeviceName::Cpu => Ok(Box::new(taking_sources(host(threads)?, threads))),
        DeviceName::Cuda(_) => Ok(Box::new(taking_sources(isolated(name)?, None))),
        DeviceName::Emulator(target, behaviour) => Ok(Box::new(taking_sources(emulator(*target, *behaviour)?, None))),
        DeviceName::Replay(file) => {
            let message = format!("{} holds recorded times and runs no kernel", file.display());
            Err(Failure::new(Kind::Usage, "device", message))
        }
    }
}

/// The facts of a device, with peak rates measured where it is the host.
pub(crate) fn with_peaks(args: &DeviceArgs, spec: &Arc<DeviceSpec>) -> Result<Arc<DeviceSpec>, Failure> {
    Ok(match named(args)? {
        DeviceName::Cpu => host(args.threads)?.with_peaks().spec().clone(),
        _ => spec.clone(),
    })
}

/// Does what is timed on a device, and warns where others on this machine, or a throttled clock, disturbed it.
pub(crate) fn watched<R>(device: &DeviceSpec, timed: impl FnOnce() -> R) -> R {
    let mut bystanders = Bystanders::of(device);
    bystanders.look();
    let done = timed();
    bystanders.look();
    if bystanders.seen().is_serious() {
        note(format_args!("warning: {}", bystanders.seen().sentence()));
    }
    done
}

/// A device, in a process of its own unless it is the host.
pub(crate) fn isolated(name: &DeviceName) -> Result<Box<dyn Device>, Failure> {
    if let DeviceName::Cpu | DeviceName::Replay(_) = name {
        return Ok(local(name)?);
    }
    let program = std::env::current_exe().map_err(|e| Failure::new(Kind::Other, "worker", e))?;
    let args = ["worker".to_owned(), "--device".to_owned(), name.to_string()].into();
    let unset = UNSET.map(str::to_owned).into();
    let opened = Isolated::open(WorkerCommand { unset, ..WorkerCommand::new(program, args) });
    Ok(Box::new(opened.map_err(|e| Failure { field: "device".to_owned(), ..e.into() })?))
}

/// A device that compiles sources; functions of the host, which references of GPU kernels may be too, run in a process of their own.
pub(crate) fn taking_sources<D: Device>(device: D, threads: Option<u16>) -> Compiling<D> {
    let natives = move || natives(threads).map(|device| Box::new(device) as Box<dyn Device>);
    Compiling::new(device, compilers()).with_natives(Box::new(natives))
}

/// Functions of users for the host, in a process of their own: what crashes or hangs ends alone.
fn natives(threads: Option<u16>) -> Result<Isolated, DeviceError> {
    let missing = |why: std::io::Error| DeviceError::Missing { device: "cpu".into(), why: why.to_string() };
    let program = std::env::current_exe().map_err(missing)?;
    let mut command = WorkerCommand::new(program, ["worker", "--device", "cpu"].map(str::to_owned).into());
    command.patience = patience();
    if let Some(threads) = threads {
        command.env.push(("OMP_NUM_THREADS".to_owned(), threads.to_string()));
    }
    Isolated::open(command)
}

/// How long a user's function may run: `TILEWRIGHT_PATIENCE` in seconds, else five.
fn patience() -> Duration {
    const USUAL: f64 = 5.0;
    let said = std::env::var("TILEWRIGHT_PATIENCE").ok().and_then(|text| text.parse::<f64>().ok());
    Duration::from_secs_f64(said.filter(|s| (0.01..=3600.0).contains(s)).unwrap_or(USUAL))
}

/// A device in this process; an emulated one measures what campaigns rehearse with.
pub(crate) fn local(name: &DeviceName) -> Result<Box<dyn Device>, DeviceError> {
    match name {
        DeviceName::Emulator(target, behaviour) => Ok(Box::new(Emulated::new(emulator(*target, *behaviour)?))),
        #[cfg(feature = "cuda")]
        DeviceName::Cuda(ordinal) => cuda(*ordinal),
        _ => name.open(None),
    }
}

/// Whether there is a CUDA device.
#[cfg(feature = "cuda")]
fn has_cuda() -> bool {
    tilewright_runtime::cuda::count().is_ok_and(|count| count > 0)
}

#[cfg(not(feature = "cuda"))]
fn has_cuda() -> bool {
    false
}

#[cfg(feature = "cuda")]
fn cuda(ordinal: u32) -> Result<Box<dyn Device>, DeviceError> {
    let mut device = tilewright_runtime::cuda::CudaDevice::open(ordinal as usize)?;
    let libraries = tilewright_baselines::device_libraries();
    let found = libraries.found.iter().map(|of| FoundLibrary {
        name: of.name.to_owned(),
        version: of.version.clone(),
        path: of.path.as_ref().map_or_else(String::new, |path| path.display().to_string()),
    });
    let missing = libraries.missing.iter();
    let missing = missing.map(|of| MissingLibrary { name: of.name.to_owned(), reason: of.reason.clone() });
    device = device.with_inventory(found.collect(), missing.collect());
    for library in libraries.routines {
        device = device.with_library(library);
    }
    Ok(Box::new(device))
}
