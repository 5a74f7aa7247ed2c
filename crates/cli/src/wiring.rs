//! Kernels, devices and stored files, as commands ask for them.

use crate::args::DeviceArgs;
use crate::device::{Opened, expect_clock, named, opened};
use crate::failure::Failure;
use crate::output::note;
use tilewright::kernels::Kernels;
use tilewright_core::problem::AnyKernel;
use tilewright_runtime::store::Home;
use tilewright_runtime::{Live, RuntimeError};

/// The kernels, found by the name of their computation on the command line and by the device.
pub(crate) struct Wiring {
    pub(crate) kernels: Kernels,
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
            Err(error) => note(format_args!("nothing was recorded for other devices: {error}")),
        }
    }

    /// The kernel that a computation has on the device, or a kernel by its own name.
    pub(crate) fn kernel(&self, name: &str, device: &DeviceArgs) -> Result<&dyn AnyKernel, Failure> {
        Ok(&**self.kernels.variant(name, None, named(device)?.kind())?)
    }
}

/// Opens the device of a command. Once: it may be a process with its own share of a device's memory.
pub(crate) fn open(args: &DeviceArgs) -> Result<Opened, Failure> {
    Ok(Live::new(opened(&named(args)?, args.threads)?))
}

/// Opens a device that has a clock.
pub(crate) fn measure(args: &DeviceArgs) -> Result<Opened, Failure> {
    expect_clock(&named(args)?)?;
    open(args)
}

/// Where profiles, plans and logs are kept.
pub(crate) fn home() -> Result<Home, Failure> {
    Home::from_environment().map_err(|e| RuntimeError::from(e).into())
}
