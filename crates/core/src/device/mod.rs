//! Devices: their facts, and how programs run and are timed on them.
//!
//! A [`Device`] lives in this process ([`HostDevice`] for host code, or one of another crate for its own code) or behind another
//! one. Whoever uses it sees the same thing.

mod environment;
mod host;
mod part;
mod spec;

pub use environment::{Environment, FoundLibrary, MissingLibrary};
pub use host::{HostDevice, HostProgram};
pub use part::GridPart;
pub use spec::{DeviceKind, DeviceSpec, NOT_ESSENTIAL};

use crate::buffer::Buffers;
use crate::data::Data;
use crate::measurement::{Failure, FailureKind, Measurement, Timing};
use crate::problem::MeasureError;
use crate::program::{DeviceError, Program};
use std::ops::DerefMut;
use std::sync::Arc;

/// Runs and times programs on data that it holds. One thing at a time.
pub trait Device: Send {
    /// Its facts.
    fn spec(&self) -> &Arc<DeviceSpec>;

    /// What it is used with, as far as it tells.
    fn environment(&self) -> Environment {
        Environment::default()
    }

    /// How many programs are best announced at once. See [`Device::precompile`].
    fn ahead(&self) -> usize {
        1
    }

    /// Announces programs that will be run or timed soon: their code is compiled in the meantime, in parallel. Code that
    /// cannot be compiled is reported by the run.
    fn precompile(&mut self, programs: &[Program]) {
        let _ = programs;
    }

    /// Nothing that was announced and is not compiled yet is wanted any more: what is announced next need not wait for it.
    fn abandon(&mut self) {}

    /// Takes data, instead of what was there. They stay while programs come and go, with what runs make of them.
    ///
    /// # Errors
    /// Memory that runs out, or contents that are not what their specification says.
    fn upload(&mut self, data: &Data) -> Result<(), DeviceError>;

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

    /// Runs at least the blocks that lie in parts of the grid or next to them (see [`GridPart::blocks`]); a device that cannot choose
    /// runs them all.
    ///
    /// # Errors
    /// As [`Device::run`].
    fn run_near(&mut self, program: &Program, parts: &[GridPart], margin: f64) -> Result<(), DeviceError> {
        let _ = (parts, margin);
        self.run(program)
    }

    /// The parts of the grid that the last run ran, where it left blocks out, so that what it did not write says nothing: of a device
    /// that checks samples.
    fn parts(&self) -> Option<Vec<GridPart>> {
        None
    }

    /// Times a program on the data, which it may change.
    ///
    /// # Errors
    /// A failed program, or a failed device; [`DeviceError::Unsupported`] of a device without a clock.
    fn time(&mut self, program: &Program, timing: &Timing) -> Result<Measurement, MeasureError>;
}

/// Boxes, references and guards of devices are devices.
impl<D: DerefMut<Target: Device> + Send> Device for D {
    fn spec(&self) -> &Arc<DeviceSpec> {
        (**self).spec()
    }

    fn environment(&self) -> Environment {
        (**self).environment()
    }

    fn ahead(&self) -> usize {
        (**self).ahead()
    }

    fn precompile(&mut self, programs: &[Program]) {
        (**self).precompile(programs);
    }

    fn abandon(&mut self) {
        (**self).abandon();
    }

    fn upload(&mut self, data: &Data) -> Result<(), DeviceError> {
        (**self).upload(data)
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        (**self).run(program)
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        (**self).read()
    }

    fn run_near(&mut self, program: &Program, parts: &[GridPart], margin: f64) -> Result<(), DeviceError> {
        (**self).run_near(program, parts, margin)
    }

    fn parts(&self) -> Option<Vec<GridPart>> {
        (**self).parts()
    }

    fn time(&mut self, program: &Program, timing: &Timing) -> Result<Measurement, MeasureError> {
        (**self).time(program, timing)
    }
}

/// Tells what only this program suffers from what ends all measuring.
pub fn classify(error: DeviceError) -> MeasureError {
    let kind = match error {
        DeviceError::Missing { .. } | DeviceError::OldDriver { .. } | DeviceError::Run(_) => {
            return MeasureError::Device(error);
        }
        DeviceError::Load(_) => FailureKind::Compile,
        DeviceError::Hang { .. } => FailureKind::Timeout,
        DeviceError::Unsupported { .. }
        | DeviceError::OutOfMemory { .. }
        | DeviceError::Argument { .. }
        | DeviceError::NoResult(_)
        | DeviceError::Fault(_) => FailureKind::Launch,
    };
    Failure { kind, message: error.to_string() }.into()
}

/// The error of a run on a device that holds nothing.
pub fn no_data() -> DeviceError {
    DeviceError::Run("there are no data to run on".into())
}
