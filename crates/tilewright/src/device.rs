//! Devices by their names.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;
use tilewright_compile::{Compilers, Compiling, NativeHost};
use tilewright_core::device::{Device, DeviceKind};
use tilewright_core::expr::brief;
use tilewright_core::program::DeviceError;
use tilewright_cpu::CpuDevice;
use tilewright_emulator::{Behaviour, EmulatorDevice, UnknownBehaviour};
use tilewright_ptxgen::target::{Target, UnknownTarget};
use tilewright_runtime::store::Home;

/// A device by its name: `cpu`, `cuda:N`, `emulator:sm_XX` or `replay:FILE`. What hardware may choose follows an emulator's
/// target: `emulator:sm_80:mma=truncated:schedule=7`.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceName {
    /// The host.
    Cpu,
    /// A CUDA device by its number.
    Cuda(u32),
    /// Runs PTX on the host: for results, never for times.
    Emulator(Target, Behaviour),
    /// A recording: for times, never for results.
    Replay(PathBuf),
}

/// A text that names no device.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum UnknownDevice {
    /// No kind of device begins so.
    #[error("unknown device {:?}: a device is cpu, cuda:N, emulator:sm_XX or replay:FILE{}", .0, meant(.0))]
    Name(String),
    /// What follows `cuda:` is no number.
    #[error("{0:?} is no number of a CUDA device: cuda:0 is the first")]
    Ordinal(String),
    /// What follows `emulator:` is no target.
    #[error(transparent)]
    Target(#[from] UnknownTarget),
    /// What follows the target of an emulator is no behaviour of one.
    #[error(transparent)]
    Behaviour(#[from] UnknownBehaviour),
    /// Nothing follows `replay:`.
    #[error("replay needs a file: replay:FILE")]
    NoFile,
}

/// The name that a text may have been meant as.
fn meant(text: &str) -> String {
    let word = text.to_lowercase();
    let begins = |with: &[&str]| with.iter().any(|with| word.starts_with(with));
    let digits = || text.chars().filter(char::is_ascii_digit).collect::<String>();
    let name = match () {
        () if begins(&["cpu", "host"]) => "cpu, which is all cores of this machine unless threads are given".to_owned(),
        () if begins(&["cuda", "gpu", "nvidia"]) => format!("cuda:{}", digits().parse().unwrap_or(0_u32)),
        () if begins(&["sm_", "emulator"]) && !digits().is_empty() => format!("emulator:sm_{}", digits()),
        () if begins(&["emulator"]) => "emulator:sm_80".to_owned(),
        () if text.contains(['.', '/']) => format!("replay:{}", brief(text)),
        () => return String::new(),
    };
    format!("; did you mean {name}?")
}

impl FromStr for DeviceName {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        match text.split_once(':') {
            None if text == "cpu" => Ok(Self::Cpu),
            Some(("cuda", ordinal)) => {
                ordinal.parse().map(Self::Cuda).map_err(|_| UnknownDevice::Ordinal(ordinal.to_owned()))
            }
            Some(("emulator", rest)) => Ok(match rest.split_once(':') {
                Some((target, behaviour)) => Self::Emulator(target.parse()?, behaviour.parse()?),
                None => Self::Emulator(rest.parse()?, Behaviour::default()),
            }),
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
            Self::Emulator(target, behaviour) if *behaviour == Behaviour::default() => write!(f, "emulator:{target}"),
            Self::Emulator(target, behaviour) => write!(f, "emulator:{target}:{behaviour}"),
            Self::Replay(file) => write!(f, "replay:{}", file.display()),
        }
    }
}

impl DeviceName {
    /// How it runs kernels, which decides which kernels it runs.
    pub fn kind(&self) -> DeviceKind {
        match self {
            Self::Cpu => DeviceKind::Cpu,
            Self::Cuda(_) => DeviceKind::Cuda,
            Self::Emulator(..) => DeviceKind::Emulator,
            Self::Replay(_) => DeviceKind::Replay,
        }
    }

    /// Opens it in this process; `threads` are those of the cpu device, all cores unless given.
    ///
    /// # Errors
    /// It is not there, the package was built without its feature, or threads are given for a device that has none to set.
    pub fn open(&self, threads: Option<u16>) -> Result<Box<dyn Device>, DeviceError> {
        if let (Some(_), false) = (threads, *self == Self::Cpu) {
            let message = format!("{self} has no threads to set: the cpu device has");
            return Err(DeviceError::Argument { name: "threads".into(), message });
        }
        match self {
            Self::Cpu => Ok(Box::new(taking_sources(host(threads)?, threads))),
            Self::Cuda(ordinal) => Ok(Box::new(taking_sources(cuda(*ordinal)?, None))),
            Self::Emulator(target, behaviour) => Ok(Box::new(taking_sources(emulator(*target, *behaviour)?, None))),
            Self::Replay(_) => {
                let feature = "kernels: it holds recorded times".to_owned();
                Err(DeviceError::Unsupported { device: self.to_string(), feature })
            }
        }
    }
}

/// A device that compiles sources; functions of the host, which references of GPU kernels may be too, run in this process.
fn taking_sources<D: Device>(device: D, threads: Option<u16>) -> Compiling<D> {
    let natives = move || Ok(Box::new(NativeHost::new(host(threads)?)) as Box<dyn Device>);
    Compiling::new(device, compilers()).with_natives(Box::new(natives))
}

/// An emulated device of a target.
///
/// # Errors
/// None for the targets that there are: their facts are complete.
pub fn emulator(target: Target, behaviour: Behaviour) -> Result<EmulatorDevice, DeviceError> {
    Ok(EmulatorDevice::new(Arc::new(target.spec()))?.with_behaviour(behaviour))
}

/// The compilers of this machine, with what they built kept in the user's cache directory.
pub fn compilers() -> Arc<Compilers> {
    static COMPILERS: OnceLock<Arc<Compilers>> = OnceLock::new();
    let folder =
        || Home::from_environment().map_or_else(|_| std::env::temp_dir().join("tilewright-built"), |home| home.built());
    COMPILERS.get_or_init(|| Arc::new(Compilers::new(folder()))).clone()
}

/// The host with so many threads, all cores unless given.
///
/// # Errors
/// No threads, or more than there are cores for.
pub fn host(threads: Option<u16>) -> Result<CpuDevice, DeviceError> {
    let cores = available_parallelism().map_or(1, usize::from);
    CpuDevice::new(threads.map_or(cores, usize::from))
}

#[cfg(feature = "cuda")]
fn cuda(ordinal: u32) -> Result<Box<dyn Device>, DeviceError> {
    Ok(Box::new(tilewright_runtime::cuda::CudaDevice::open(ordinal as usize)?))
}

#[cfg(not(feature = "cuda"))]
fn cuda(ordinal: u32) -> Result<Box<dyn Device>, DeviceError> {
    let why = "this program was built without CUDA devices".into();
    Err(DeviceError::Missing { device: format!("cuda:{ordinal}"), why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let name = |text: &str| text.parse::<DeviceName>();
        assert_eq!(name("cpu"), Ok(DeviceName::Cpu));
        for text in [
            "cpu",
            "cuda:3",
            "emulator:sm_80",
            "emulator:sm_100",
            "emulator:sm_80:mma=truncated:schedule=7",
            "replay:a:b.csv",
        ] {
            assert_eq!(name(text).map(|n| n.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(name("cuda:3"), Ok(DeviceName::Cuda(3)));
        assert_eq!(name("emulator:sm_80").unwrap().kind(), DeviceKind::Emulator);
        assert_eq!(name("replay:a:b.csv"), Ok(DeviceName::Replay("a:b.csv".into())));
        for bad in ["", "gpu", "cpu:0", "cuda", "emulator", "CPU"] {
            assert_eq!(name(bad), Err(UnknownDevice::Name(bad.to_owned())));
        }
        for (bad, said) in [
            ("cpu:0", "mean cpu, which is all cores"),
            ("CPU", "mean cpu,"),
            ("GPU", "mean cuda:0?"),
            ("cuda1", "mean cuda:1?"),
            ("sm_90", "mean emulator:sm_90?"),
            ("emulator", "mean emulator:sm_80?"),
            ("a/b.csv", "mean replay:a/b.csv?"),
            ("abacus", "a device is cpu, cuda:N, emulator:sm_XX or replay:FILE"),
        ] {
            let message = name(bad).unwrap_err().to_string();
            assert!(message.contains(said), "{message}");
        }
        assert_eq!(name("cuda:-1"), Err(UnknownDevice::Ordinal("-1".to_owned())));
        assert_eq!(name("replay:"), Err(UnknownDevice::NoFile));
        assert!(matches!(name("emulator:sm_42"), Err(UnknownDevice::Target(_))));
        assert_eq!(name("emulator:sm_80:mma=exact"), name("emulator:sm_80"));
        for bad in ["emulator:sm_80:", "emulator:sm_80:7", "emulator:sm_80:mma=truncated,schedule=7"] {
            assert!(matches!(name(bad), Err(UnknownDevice::Behaviour(_))), "{bad}");
        }
    }

    #[test]
    fn what_cannot_be_opened_says_so() {
        let error = |name: &str, threads| name.parse::<DeviceName>().unwrap().open(threads).err().unwrap().to_string();
        assert!(error("replay:a.csv", None).contains("recorded times"));
        assert!(error("emulator:sm_80", Some(2)).contains("threads"));
        assert!(error("cpu", Some(0)).contains("threads"));
    }

    #[test]
    fn an_emulator_that_behaves_otherwise_says_so() {
        for name in ["emulator:sm_80", "emulator:sm_90a:schedule=3"] {
            assert_eq!(name.parse::<DeviceName>().unwrap().open(None).unwrap().spec().id, name);
        }
    }
}
