//! One station behind an executor and a measure.

use super::{Data, Station};
use crate::programs::Programs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tilewright_core::buffer::{Buffers, Workload};
use tilewright_core::device::DeviceSpec;
use tilewright_core::id::ComputationId;
use tilewright_core::measurement::{Measurement, Timing};
use tilewright_core::problem::{Executor, Loaded, Measure, MeasureError, Problem};
use tilewright_core::program::{DeviceError, Program};
use tilewright_core::space::{Config, Point};

/// Generated programs that are kept for the current input.
const PROGRAMS_KEPT: usize = 256;

/// A station that several may use, one after the other. Clones share it.
#[derive(Clone)]
pub struct Shared {
    spec: Arc<DeviceSpec>,
    seat: Arc<Mutex<Seat>>,
    seed: u64,
    programs: Programs,
}

struct Seat {
    station: Box<dyn Station>,
    /// The input that it holds noise for.
    held: Option<(ComputationId, Config)>,
}

impl Shared {
    /// Shares a station.
    pub fn new(station: Box<dyn Station>) -> Self {
        let spec = station.spec().clone();
        let seat = Arc::new(Mutex::new(Seat { station, held: None }));
        Self { spec, seat, seed: 0, programs: Programs::keeping(PROGRAMS_KEPT) }
    }

    /// The seed of the data that is timed on.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    fn seat(&self) -> MutexGuard<'_, Seat> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the station itself. What it holds afterwards is put down anew by whoever comes next.
    pub fn with<R>(&self, f: impl FnOnce(&mut dyn Station) -> R) -> R {
        let mut seat = self.seat();
        seat.held = None;
        f(&mut *seat.station)
    }
}

impl Measure for Shared {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.spec
    }

    fn measure(&mut self, problem: &dyn Problem, at: &Point, policy: &Timing) -> Result<Measurement, MeasureError> {
        let program = self.programs.get(problem, at)?;
        let mut seat = self.seat();
        let wanted = (problem.computation(), problem.input());
        if seat.held.as_ref() != Some(&wanted) {
            seat.held = None;
            let (specs, scalars) = problem.shape();
            seat.station.hold(&Data::Noise { specs, scalars, seed: self.seed })?;
            seat.held = Some(wanted);
        }
        seat.station.time(&program, policy)
    }

    fn ahead(&self) -> usize {
        self.seat().station.ahead()
    }

    fn expect(&mut self, problem: &dyn Problem, points: &[Point]) {
        let programs: Vec<Program> = points.iter().filter_map(|p| self.programs.get(problem, p).ok()).collect();
        self.seat().station.expect(&programs);
    }
}

impl Executor for Shared {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.spec
    }

    fn prepare(&mut self, program: &Program, work: &Workload) -> Result<Box<dyn Loaded>, DeviceError> {
        program.expect_scalars(&work.scalars)?;
        let work = Arc::new(work.clone());
        Ok(Box::new(Visit { shared: self.clone(), program: program.clone(), work }))
    }
}

/// A program with its data, put down for each run: others use the station in between.
struct Visit {
    shared: Shared,
    program: Program,
    work: Arc<Workload>,
}

impl Loaded for Visit {
    fn run(&mut self) -> Result<(), DeviceError> {
        let (data, program) = (Data::Given(self.work.clone()), &self.program);
        let buffers = self.shared.with(|station| {
            station.hold(&data)?;
            station.run(program)?;
            station.read()
        })?;
        drop(data);
        Arc::make_mut(&mut self.work).buffers = buffers;
        Ok(())
    }

    fn write(&mut self, buffers: &Buffers) -> Result<(), DeviceError> {
        let shapes = |of: &Buffers| of.iter().map(|b| (b.dtype(), b.len())).collect::<Vec<_>>();
        if shapes(&self.work.buffers) != shapes(buffers) {
            let message = format!("{buffers:?} are not those that were loaded: {:?}", self.work.buffers);
            return Err(DeviceError::Argument { name: "buffers".into(), message });
        }
        Arc::make_mut(&mut self.work).buffers.clone_from(buffers);
        Ok(())
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        Ok(self.work.buffers.clone())
    }

    fn replace(&mut self, program: &Program) -> Result<(), DeviceError> {
        program.expect_scalars(&self.work.scalars)?;
        self.program = program.clone();
        Ok(())
    }
}
