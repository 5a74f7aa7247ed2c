//! Where programs run, seen as one thing: data are put down, programs run and are timed on them.
//!
//! A [`Station`] is a device of this process ([`HostStation`] on any executor, `cuda::CudaDevice`) or of another one
//! ([`crate::worker::Isolated`]), where a program that faults or hangs harms nobody else. [`Shared`] makes an
//! [`Executor`](tilewright_core::problem::Executor) and a [`Measure`](tilewright_core::problem::Measure) of it.

mod data;
mod host;
mod shared;

pub use data::{Data, noise};
pub use host::HostStation;
pub use shared::Shared;

use std::sync::Arc;
use tilewright_core::buffer::Buffers;
use tilewright_core::device::DeviceSpec;
use tilewright_core::measurement::{Measurement, Timing};
use tilewright_core::problem::MeasureError;
use tilewright_core::program::{DeviceError, LibraryCall, Program};

/// Runs and times programs on data that it holds. One thing at a time.
pub trait Station: Send {
    /// The device's facts.
    fn spec(&self) -> &Arc<DeviceSpec>;

    /// How many programs are best announced at once. See [`Station::expect`].
    fn ahead(&self) -> usize {
        1
    }

    /// Announces programs that will be run or timed soon: their code is compiled in the meantime, in parallel. Code that
    /// cannot be compiled is reported by the run.
    fn expect(&mut self, programs: &[Program]) {
        let _ = programs;
    }

    /// Puts data down, instead of what was there.
    ///
    /// # Errors
    /// Memory that runs out.
    fn hold(&mut self, data: &Data) -> Result<(), DeviceError>;

    /// Runs a program once on the data.
    ///
    /// # Errors
    /// Code that does not load, or what the run reports.
    fn run(&mut self, program: &Program) -> Result<(), DeviceError>;

    /// Copies the data out.
    ///
    /// # Errors
    /// What the device reports.
    fn read(&mut self) -> Result<Buffers, DeviceError>;

    /// Times a program on the data, which it may change.
    ///
    /// # Errors
    /// A failed program, or a failed device.
    fn time(&mut self, program: &Program, policy: &Timing) -> Result<Measurement, MeasureError>;

    /// How many implementations a library offers for an input, best first by its own word; the first is what it takes by
    /// default.
    ///
    /// # Errors
    /// There is no such library here.
    fn options(&mut self, call: &LibraryCall) -> Result<u32, DeviceError> {
        let device = self.spec().id.clone();
        Err(DeviceError::Unsupported { device, feature: format!("the library {}", call.library) })
    }
}

impl<S: Station + ?Sized> Station for Box<S> {
    fn spec(&self) -> &Arc<DeviceSpec> {
        (**self).spec()
    }

    fn ahead(&self) -> usize {
        (**self).ahead()
    }

    fn expect(&mut self, programs: &[Program]) {
        (**self).expect(programs);
    }

    fn hold(&mut self, data: &Data) -> Result<(), DeviceError> {
        (**self).hold(data)
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        (**self).run(program)
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        (**self).read()
    }

    fn time(&mut self, program: &Program, policy: &Timing) -> Result<Measurement, MeasureError> {
        (**self).time(program, policy)
    }

    fn options(&mut self, call: &LibraryCall) -> Result<u32, DeviceError> {
        (**self).options(call)
    }
}

#[cfg(test)]
mod tests;
