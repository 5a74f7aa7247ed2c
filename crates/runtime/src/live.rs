//! Measuring configurations on a device.

use crate::programs::Programs;
use std::sync::Arc;
use tilewright_core::device::{Device, DeviceSpec};
use tilewright_core::id::ComputationId;
use tilewright_core::measurement::{Measurement, Timing};
use tilewright_core::problem::{Measure, MeasureError, Problem};
use tilewright_core::program::Program;
use tilewright_core::space::{Config, Point};

/// Generated programs that are kept, so that interleaved rounds do not generate them again.
const PROGRAMS_KEPT: usize = 256;

/// [`Measure`] on a [`Device`].
///
/// The data of an input are put down once and serve every configuration of it, as long as the inputs come one after the
/// other. Buffers that are read and written keep what earlier runs left in them: times do not depend on it, results
/// are judged by [`crate::verify`] on fresh data.
pub struct Live<D> {
    device: D,
    seed: u64,
    /// The input that the device holds data of.
    held: Option<(ComputationId, Config)>,
    programs: Programs,
}

impl<D: Device> Live<D> {
    /// Measures on a device; a reference to one will do.
    pub fn new(device: D) -> Self {
        Self { device, seed: 0, held: None, programs: Programs::keeping(PROGRAMS_KEPT) }
    }

    /// The seed of the data that is timed on.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The device, for other uses. Its data are put down anew before the next time is taken.
    pub fn device(&mut self) -> &mut D {
        self.held = None;
        &mut self.device
    }
}

impl<D: Device> Measure for Live<D> {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.device.spec()
    }

    fn measure(&mut self, problem: &dyn Problem, at: &Point, timing: &Timing) -> Result<Measurement, MeasureError> {
        let program = self.programs.get(problem, at)?;
        let wanted = (problem.computation(), problem.input());
        if self.held.as_ref() != Some(&wanted) {
            self.held = None;
            self.programs.keep_only(&wanted.1);
            self.device.upload(&problem.data(self.seed))?;
            self.held = Some(wanted);
        }
        self.device.time(&program, timing)
    }

    fn ahead(&self) -> usize {
        self.device.ahead()
    }

    fn expect(&mut self, problem: &dyn Problem, points: &[Point]) {
        let programs: Vec<Program> = points.iter().filter_map(|p| self.programs.get(problem, p).ok()).collect();
        self.device.precompile(&programs);
    }

    fn device(&mut self) -> Option<&mut dyn Device> {
        Some(Self::device(self))
    }
}

#[cfg(test)]
mod tests;
