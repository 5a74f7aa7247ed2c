//! Devices by their names on the command line.

use crate::args::DeviceArgs;
use crate::failure::{Failure, Kind};
use crate::open::{has_cuda, isolated};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::thread::available_parallelism;
use tilewright_core::device::{Device, DeviceKind, DeviceSpec};
use tilewright_cpu::CpuDevice;
use tilewright_emulator::EmulatorDevice;
use tilewright_ptxgen::target::{Target, UnknownTarget};
use tilewright_runtime::Live;

/// A device by its name: `cpu`, `cuda:N`, `emulator:sm_XX` or `replay:FILE`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DeviceName {
    Cpu,
    Cuda(u32),
    Emulator(Target),
    Replay(PathBuf),
}

/// A text that names no device.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum UnknownDevice {
    #[error("unknown device {0:?}: cpu, cuda:N, emulator:sm_XX or replay:FILE")]
    Name(String),
    #[error("{0:?} is no number of a CUDA device: cuda:0 is the first")]
    Ordinal(String),
    #[error(transparent)]
    Target(#[from] UnknownTarget),
    #[error("replay needs a file: replay:FILE")]
    NoFile,
}

impl FromStr for DeviceName {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        match text.split_once(':') {
            None if text == "cpu" => Ok(Self::Cpu),
            Some(("cuda", ordinal)) => {
                ordinal.parse().map(Self::Cuda).map_err(|_| UnknownDevice::Ordinal(ordinal.to_owned()))
            }
            Some(("emulator", target)) => Ok(Self::Emulator(target.parse()?)),
            Some(("replay", "")) => Err(UnknownDevice::NoFile),
            Some(("replay", file)) => Ok(Self::Replay(file.into())),
            _ => Err(UnknownDevice::Name(text.to_owned())),
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
            Self::Emulator(target) => write!(f, "emulator:{target}"),
            Self::Replay(file) => write!(f, "replay:{}", file.display()),
        }
    }
}

impl DeviceName {
    /// The named device.
    pub(crate) fn parse(name: &str) -> Result<Self, Failure> {
        name.parse().map_err(|e: UnknownDevice| Failure::new(Kind::Usage, "device", e))
    }

    /// The device of a command: the named one; else the first CUDA device, unless there is none or the threads of the host are
    /// asked for.
    pub(crate) fn of(args: &DeviceArgs) -> Result<Self, Failure> {
        match &args.device {
            Some(name) => Self::parse(name),
            None if args.threads.is_none() && has_cuda() => Ok(Self::Cuda(0)),
            None => Ok(Self::Cpu),
        }
    }

    /// How it runs kernels, which decides which kernels it runs.
    pub(crate) fn kind(&self) -> DeviceKind {
        match self {
            Self::Cpu => DeviceKind::Cpu,
            Self::Cuda(_) => DeviceKind::Cuda,
            Self::Emulator(_) => DeviceKind::Emulator,
            Self::Replay(_) => DeviceKind::Replay,
        }
    }

    /// Refuses a device that has no clock, before anything is begun that would need it.
    pub(crate) fn expect_clock(&self) -> Result<(), Failure> {
        match self {
            Self::Emulator(target) => Err(Failure::new(
                Kind::Usage,
                "device",
                format!("emulator:{target} checks results and counts, it never times: use verify, space or emit"),
            )),
            _ => Ok(()),
        }
    }

    /// Opens it; `threads` are those of the cpu device.
    pub(crate) fn open(&self, threads: Option<u16>) -> Result<Box<dyn Device>, Failure> {
        Ok(match self {
            Self::Cpu => Box::new(Self::host(threads)?),
            Self::Cuda(_) => isolated(self)?,
            Self::Emulator(target) => Box::new(EmulatorDevice::new(Arc::new(target.spec()))?),
            Self::Replay(file) => {
                let message = format!("{} holds recorded times and runs no kernel", file.display());
                return Err(Failure::new(Kind::Usage, "device", message));
            }
        })
    }

    /// Its facts, with peak rates measured where it is the host.
    pub(crate) fn with_peaks(&self, threads: Option<u16>, spec: &Arc<DeviceSpec>) -> Result<Arc<DeviceSpec>, Failure> {
        Ok(match self {
            Self::Cpu => Self::host(threads)?.with_peaks().spec().clone(),
            _ => spec.clone(),
        })
    }

    fn host(threads: Option<u16>) -> Result<CpuDevice, Failure> {
        let cores = available_parallelism().map_or(1, usize::from);
        Ok(CpuDevice::new(threads.map_or(cores, usize::from))?)
    }
}

/// A device that is measured and checked on.
pub(crate) type Opened = Live<Box<dyn Device>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let name = |text: &str| text.parse::<DeviceName>();
        assert_eq!(name("cpu"), Ok(DeviceName::Cpu));
        for text in ["cpu", "cuda:3", "emulator:sm_80", "emulator:sm_100", "replay:a:b.csv"] {
            assert_eq!(name(text).map(|n| n.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(name("cuda:3"), Ok(DeviceName::Cuda(3)));
        assert_eq!(name("emulator:sm_80").unwrap().kind(), DeviceKind::Emulator);
        assert_eq!(name("replay:a:b.csv"), Ok(DeviceName::Replay("a:b.csv".into())));
        for bad in ["", "gpu", "cpu:0", "cuda", "emulator", "CPU"] {
            assert_eq!(name(bad), Err(UnknownDevice::Name(bad.to_owned())));
        }
        assert_eq!(name("cuda:-1"), Err(UnknownDevice::Ordinal("-1".to_owned())));
        assert_eq!(name("replay:"), Err(UnknownDevice::NoFile));
        assert!(matches!(name("emulator:sm_42"), Err(UnknownDevice::Target(_))));
    }
}
