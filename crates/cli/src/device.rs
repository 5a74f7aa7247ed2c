//! Devices by their names on the command line, and what opening one gives.

use crate::args::DeviceArgs;
use crate::failure::{Failure, Kind};
use crate::station::{has_cuda, isolated};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::thread::available_parallelism;
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::problem::{Executor, Measure};
use tilewright_core::program::DeviceError;
use tilewright_cpu::CpuDevice;
use tilewright_emulator::{EmulatorDevice, Log};
use tilewright_ptxgen::target::{Target, UnknownTarget};
use tilewright_runtime::HostMeasure;
use tilewright_runtime::station::Shared;

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
    pub(crate) fn open(&self, threads: Option<u16>) -> Result<Opened, Failure> {
        match self {
            Self::Cpu => {
                let cores = available_parallelism().map_or(1, usize::from);
                Ok(Opened::Cpu(CpuDevice::new(threads.map_or(cores, usize::from))?))
            }
            Self::Cuda(_) => Ok(Opened::Station(Shared::new(isolated(self)?))),
            Self::Emulator(target) => Ok(Opened::Emulator(EmulatorDevice::new(Arc::new(target.spec()))?)),
            Self::Replay(file) => {
                let message = format!("{} holds recorded times and runs no kernel", file.display());
                Err(Failure::new(Kind::Usage, "device", message))
            }
        }
    }
}

/// A device that was opened.
pub(crate) enum Opened {
    Cpu(CpuDevice),
    Emulator(EmulatorDevice),
    /// Behind a process of its own.
    Station(Shared),
}

impl Opened {
    /// Its facts.
    pub(crate) fn spec(&self) -> Arc<DeviceSpec> {
        match self {
            Self::Cpu(device) => device.spec().clone(),
            Self::Emulator(device) => device.spec().clone(),
            Self::Station(shared) => Executor::spec(shared).clone(),
        }
    }

    /// Its facts, with peak rates measured where it has a clock.
    pub(crate) fn measured_spec(self) -> Arc<DeviceSpec> {
        match self {
            Self::Cpu(device) => device.with_peaks().spec().clone(),
            other => other.spec(),
        }
    }

    /// Runs programs for their results.
    pub(crate) fn executor(self) -> Box<dyn Executor> {
        match self {
            Self::Cpu(device) => Box::new(device),
            Self::Emulator(device) => Box::new(device),
            Self::Station(shared) => Box::new(shared),
        }
    }

    /// Times configurations. Callers have asked [`DeviceName::expect_clock`]; this is the type's word for the same.
    pub(crate) fn measure(self) -> Result<Box<dyn Measure>, Failure> {
        match self {
            Self::Cpu(device) => Ok(Box::new(HostMeasure::new(device))),
            Self::Station(shared) => Ok(Box::new(shared)),
            Self::Emulator(device) => {
                let feature = "a clock: it never times".to_owned();
                Err(DeviceError::Unsupported { device: device.spec().id.clone(), feature }.into())
            }
        }
    }

    /// Places where cases are checked beside each other, at most so many. Only the emulator has more than one: other devices
    /// are in use as a whole by one case.
    pub(crate) fn seats(self, most: usize) -> Vec<Seat> {
        match self {
            Self::Emulator(device) => {
                // With a log of its own each, so that findings go with their case.
                let seat = |_| {
                    let device = EmulatorDevice::new(device.spec().clone()).map(EmulatorDevice::tolerant);
                    device.map(|device| Seat { log: Some(device.log()), executor: Box::new(device) })
                };
                // The facts were enough for the first device of them.
                (0..most.max(1)).filter_map(|i| seat(i).ok()).collect()
            }
            other => vec![Seat { executor: other.executor(), log: None }],
        }
    }
}

/// A place where one case at a time is checked.
pub(crate) struct Seat {
    pub(crate) executor: Box<dyn Executor>,
    /// What the emulator found; such a seat runs its blocks one after the other.
    pub(crate) log: Option<Log>,
}

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
