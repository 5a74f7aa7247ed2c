//! Kernels, devices and what is known of them, as commands ask for them.

use crate::args::{DeviceArgs, ModelKind};
use crate::device::{DeviceName, Named as _, Opened};
use crate::failure::Failure;
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

/// The kernels, found by the name of their computation on the command line and by the device.
pub(crate) struct Wiring {
    kernels: Kernels,
    /// Where devices record for each other, where it was said.
    repository: Option<String>,
}

impl Wiring {
    pub(crate) fn new(repository: Option<String>) -> Self {
        Self { kernels: Kernels::default().with_libraries(tilewright_baselines::kernels), repository }
    }

    /// Where files are kept, with the repository that was named.
    pub(crate) fn home(&self) -> Result<Home, Failure> {
        let home = home()?;
        Ok(match &self.repository {
            Some(place) => home.with_repository(place),
            None => home,
        })
    }

    /// Records what a campaign measured of kernels, for other devices; says so where it cannot.
    pub(crate) fn record(&self, recorded: impl FnOnce(&Home) -> Result<usize, tilewright::Error>) {
        let recorded = self.home().and_then(|home| Ok(recorded(&home)?));
        match recorded {
            Ok(added) => tracing::info!(added, "configurations recorded for other devices"),
            Err(error) => eprintln!("nothing was recorded for other devices: {error}"),
        }
    }

    /// The kernel that a computation has on the device, or a kernel by its own name.
    pub(crate) fn kernel(&self, name: &str, device: &DeviceArgs) -> Result<&dyn AnyKernel, Failure> {
        self.variant(name, None, DeviceName::of(device)?.kind())
    }

    /// The kernels that compete for the inputs of a computation, or the one of this name. See [`Kernels::competing`].
    pub(crate) fn competing(
        &self,
        name: &str,
        device: &DeviceSpec,
        with_libraries: bool,
    ) -> Result<Vec<Arc<dyn AnyKernel>>, Failure> {
        Ok(self.kernels.competing(name, device, with_libraries)?)
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
        fields: &Config,
    ) -> Result<Box<dyn Problem>, Failure> {
        Ok(tilewright::planning::problem(kernel, spec, fields)?)
    }

    /// The kinds of models that profiles may hold. Only what is fitted over the linear model needs the weights of the device.
    pub(crate) fn trainers(&self, kind: &str, spec: &DeviceSpec) -> Result<Trainers, Failure> {
        Ok(trainers(&home()?, kind, spec)?)
    }

    /// What ranks the configurations of a kernel: see [`Known::find`].
    pub(crate) fn known<'w>(
        &self,
        (model, named): (Option<ModelKind>, Option<&Path>),
        kernel: &'w dyn AnyKernel,
        spec: &DeviceSpec,
        fields: &Config,
    ) -> Result<Known<'w>, Failure> {
        Ok(Known::find(&self.home()?, (model.map(ModelKind::name), named), kernel, spec, fields)?)
    }
}

/// Where profiles, plans and logs are kept.
pub(crate) fn home() -> Result<Home, Failure> {
    Home::from_environment().map_err(|e| RuntimeError::from(e).into())
}
