//! Devices by their names on the command line.

use crate::args::DeviceArgs;
use crate::failure::{Failure, Kind};
use crate::open::{has_cuda, isolated};
use std::sync::Arc;
pub(crate) use tilewright::DeviceName;
use tilewright::device::host;
use tilewright_core::device::{Device, DeviceSpec};
use tilewright_runtime::Live;

/// Devices as commands name and open them.
pub(crate) trait Named: Sized {
    /// The named device.
    fn parse(name: &str) -> Result<Self, Failure>;

    /// The device of a command: the named one; else the first CUDA device, unless there is none or the threads of the host are
    /// asked for.
    fn of(args: &DeviceArgs) -> Result<Self, Failure>;

    /// Refuses a device that has no clock, before anything is begun that would need it.
    fn expect_clock(&self) -> Result<(), Failure>;

    /// Opens it, in a process of its own where kernels may fault or hang; `threads` are those of the cpu device.
    fn opened(&self, threads: Option<u16>) -> Result<Box<dyn Device>, Failure>;

    /// Its facts, with peak rates measured where it is the host.
    fn with_peaks(&self, threads: Option<u16>, spec: &Arc<DeviceSpec>) -> Result<Arc<DeviceSpec>, Failure>;
}

impl Named for DeviceName {
    fn parse(name: &str) -> Result<Self, Failure> {
        Ok(name.parse().map_err(tilewright::Error::Device)?)
    }

    fn of(args: &DeviceArgs) -> Result<Self, Failure> {
        match &args.device {
            Some(name) => Self::parse(name),
            None if args.threads.is_none() && has_cuda() => Ok(Self::Cuda(0)),
            None => Ok(Self::Cpu),
        }
    }

    fn expect_clock(&self) -> Result<(), Failure> {
        match self {
            Self::Emulator(target) => Err(Failure::new(
                Kind::Usage,
                "device",
                format!("emulator:{target} checks results and counts, it never times: use verify, space or emit"),
            )),
            _ => Ok(()),
        }
    }

    fn opened(&self, threads: Option<u16>) -> Result<Box<dyn Device>, Failure> {
        match self {
            Self::Cpu => Ok(Box::new(host(threads)?)),
            Self::Cuda(_) => isolated(self),
            Self::Emulator(_) => Ok(self.open(None)?),
            Self::Replay(file) => {
                let message = format!("{} holds recorded times and runs no kernel", file.display());
                Err(Failure::new(Kind::Usage, "device", message))
            }
        }
    }

    fn with_peaks(&self, threads: Option<u16>, spec: &Arc<DeviceSpec>) -> Result<Arc<DeviceSpec>, Failure> {
        Ok(match self {
            Self::Cpu => host(threads)?.with_peaks().spec().clone(),
            _ => spec.clone(),
        })
    }
}

/// A device that is measured and checked on.
pub(crate) type Opened = Live<Box<dyn Device>>;
