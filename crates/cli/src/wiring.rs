//! Kernels, devices and what is known of them, as commands ask for them.

use crate::args::{DeviceArgs, ModelKind};
use crate::device::{DeviceName, Named as _, Opened};
use crate::failure::{Failure, Kind};
use std::path::Path;
use std::sync::Arc;
use tilewright::kernels::Kernels;
use tilewright::known::{Known, trainers};
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::problem::{AnyKernel, Measure, Problem};
use tilewright_core::space::Config;
use tilewright_runtime::store::Home;
use tilewright_runtime::trainer::Trainers;
use tilewright_runtime::{Live, RuntimeError};

/// What ranks the configurations of a kernel.
pub(crate) type Adviser<'w> = Known<'w>;

/// The kernels, found by the name of their computation on the command line and by the device.
#[derive(Default)]
pub(crate) struct Wiring {
    kernels: Kernels,
}

impl Wiring {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The kernel that a computation has on the device, or a kernel by its own name.
    pub(crate) fn kernel(&self, name: &str, device: &DeviceArgs) -> Result<&dyn AnyKernel, Failure> {
        self.variant(name, None, DeviceName::of(device)?.kind())
    }

    /// All kernels that a computation has on a kind of device, or the one of this name.
    pub(crate) fn variants(&self, name: &str, on: DeviceKind) -> Result<Vec<&dyn AnyKernel>, Failure> {
        Ok(self.kernels.variants(name, on)?.into_iter().map(|kernel| &**kernel).collect())
    }

    /// One of the kernels of a computation on a kind of device: the named one, or the first.
    pub(crate) fn variant(&self, name: &str, variant: Option<&str>, on: DeviceKind) -> Result<&dyn AnyKernel, Failure> {
        Ok(&**self.kernels.variant(name, variant, on)?)
    }

    /// Opens the device of a command. Once: it may be a process with its own share of a device's memory.
    pub(crate) fn open(&self, args: &DeviceArgs) -> Result<Opened, Failure> {
        Ok(Live::new(DeviceName::of(args)?.opened(args.threads)?))
    }

    /// Opens a device that has a clock.
    pub(crate) fn measure(&self, args: &DeviceArgs) -> Result<Opened, Failure> {
        DeviceName::of(args)?.expect_clock()?;
        self.open(args)
    }

    /// The facts of a device.
    pub(crate) fn spec(&self, args: &DeviceArgs) -> Result<Arc<DeviceSpec>, Failure> {
        Ok(self.open(args)?.spec().clone())
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

    /// The kinds of models that profiles may hold. Only what is fitted over the linear model needs the weights of the device.
    pub(crate) fn trainers(&self, kind: &str, spec: &DeviceSpec) -> Result<Trainers, Failure> {
        Ok(trainers(&home()?, kind, spec)?)
    }

    /// What ranks the configurations of a kernel: the model that is asked for; else a profile; else, where the kernel was never
    /// measured on this device, the device's linear model.
    pub(crate) fn adviser<'w>(
        &self,
        (model, named): (Option<ModelKind>, Option<&Path>),
        kernel: &'w dyn AnyKernel,
        spec: &DeviceSpec,
        words: &Config,
    ) -> Result<Adviser<'w>, Failure> {
        Ok(Known::find(&home()?, (model.map(ModelKind::name), named), kernel, spec, words)?)
    }
}

/// Where profiles, plans and logs are kept.
pub(crate) fn home() -> Result<Home, Failure> {
    Home::from_environment().map_err(|e| RuntimeError::from(e).into())
}
