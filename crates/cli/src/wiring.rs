//! Which devices and kernels there are: the only place that names backends.

use crate::args::DeviceArgs;
use crate::failure::{Failure, Kind};
use crate::trainer::MlpTrainer;
use std::path::Path;
use std::sync::Arc;
use std::thread::available_parallelism;
use tilewright_core::device::DeviceSpec;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Erased, Executor, Measure, Problem};
use tilewright_core::space::Config;
use tilewright_cpu::{CpuDevice, CpuGemm};
use tilewright_runtime::store::{Home, Profile, ProfileStore};
use tilewright_runtime::trainer::Trainer;
use tilewright_runtime::{HostMeasure, RuntimeError};

/// The kernels by the name of their computation on the command line.
pub(crate) struct Wiring {
    kernels: Vec<Box<dyn AnyKernel>>,
}

impl Wiring {
    pub(crate) fn new() -> Self {
        Self { kernels: vec![Box::new(Erased::new(CpuGemm::new()))] }
    }

    /// A kernel by its own name or by its computation's.
    pub(crate) fn kernel(&self, name: &str) -> Result<&dyn AnyKernel, Failure> {
        let mut kernels = self.kernels.iter().map(|k| &**k);
        kernels.find(|k| k.computation().as_str() == name || k.id().as_str() == name).ok_or_else(|| {
            let known: Vec<String> = self.kernels.iter().map(|k| k.computation().to_string()).collect();
            Failure::new(Kind::Usage, "kernel", format!("unknown kernel {name:?}: {}", known.join(", ")))
        })
    }

    fn device(args: &DeviceArgs) -> Result<CpuDevice, Failure> {
        match args.device.as_deref() {
            None | Some("cpu") => {}
            Some(other) if other.starts_with("cuda") || other.starts_with("emulator") => {
                return Err(Failure::new(Kind::Device, "device", format!("{other:?} is not built in yet: use cpu")));
            }
            Some(other) => {
                return Err(Failure::new(Kind::Usage, "device", format!("unknown device {other:?}: cpu")));
            }
        }
        let cores = available_parallelism().map_or(1, usize::from);
        Ok(CpuDevice::new(args.threads.map_or(cores, usize::from))?)
    }

    /// The facts of a device.
    pub(crate) fn spec(&self, args: &DeviceArgs) -> Result<Arc<DeviceSpec>, Failure> {
        Ok(Self::device(args)?.spec().clone())
    }

    /// The facts of a device with its peak rates measured.
    pub(crate) fn measured_spec(&self, args: &DeviceArgs) -> Result<Arc<DeviceSpec>, Failure> {
        Ok(Self::device(args)?.with_peaks().spec().clone())
    }

    /// Runs programs for their results.
    pub(crate) fn executor(&self, args: &DeviceArgs) -> Result<Box<dyn Executor>, Failure> {
        Ok(Box::new(Self::device(args)?))
    }

    /// Times configurations.
    pub(crate) fn measure(&self, args: &DeviceArgs) -> Result<Box<dyn Measure>, Failure> {
        Ok(Box::new(HostMeasure::new(Self::device(args)?)))
    }

    /// Fixes device and input, and refuses what would not fit into memory before anything is allocated.
    pub(crate) fn problem(
        &self,
        kernel: &dyn AnyKernel,
        spec: &Arc<DeviceSpec>,
        words: &Config,
    ) -> Result<Box<dyn Problem>, Failure> {
        let problem = kernel.problem(spec, words)?;
        let need = problem.work().bytes;
        match spec.fact("memory_bytes") {
            Some(have) if need > have as f64 => Err(Failure::new(
                Kind::Input,
                "m n k",
                format!("the operands take {need:.0} bytes; this device has {have}"),
            )),
            _ => Ok(problem),
        }
    }

    /// The kinds of models that profiles may hold.
    pub(crate) fn trainer(&self) -> &'static dyn Trainer {
        &MlpTrainer
    }

    /// The named profile, or the stored one that fits kernel, device and input best; none if none is stored.
    pub(crate) fn profile(
        &self,
        named: Option<&Path>,
        kernel: &dyn AnyKernel,
        spec: &DeviceSpec,
        words: &Config,
    ) -> Result<Option<Box<dyn Predictor>>, Failure> {
        let schema = kernel.schema();
        let found = match named {
            Some(path) => Some((path.to_path_buf(), Profile::read(path).map_err(RuntimeError::from)?)),
            None => {
                let store = ProfileStore::new(home()?.profiles());
                store.find(&kernel.id(), spec, words).map_err(RuntimeError::from)?
            }
        };
        let Some((path, profile)) = found else { return Ok(None) };
        profile.expect(&path, &kernel.id(), spec, &schema).map_err(RuntimeError::from)?;
        let named = |e| Failure { field: path.display().to_string(), ..Failure::from(RuntimeError::from(e)) };
        self.trainer().load(&profile.model, &schema).map(Some).map_err(named)
    }
}

/// Where profiles, plans and logs are kept.
pub(crate) fn home() -> Result<Home, Failure> {
    Home::from_environment().map_err(|e| RuntimeError::from(e).into())
}
