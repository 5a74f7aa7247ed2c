//! Measuring configurations on a device.

use crate::contest::settle;
use crate::programs::Programs;
use std::sync::Arc;
use std::time::Duration;
use tilewright_core::device::{Device, DeviceKind, DeviceSpec};
use tilewright_core::id::{ComputationId, KernelId};
use tilewright_core::measurement::{Measurement, Timing};
use tilewright_core::problem::{Measure, MeasureError, Problem};
use tilewright_core::program::{Program, Step};
use tilewright_core::space::{Config, Point};

/// Generated programs that are kept, so that interleaved rounds do not generate them again.
const PROGRAMS_KEPT: usize = 256;

/// How often, and how long, a kernel runs behind another one, or on data that were just put down, before it is timed.
const AWAKE: (u32, Duration) = (100, Duration::from_millis(1));

/// [`Measure`] on a [`Device`].
///
/// The data of an input are put down once and serve every configuration of it, as long as the inputs come one after the
/// other. Buffers that are read and written keep what earlier runs left in them: times do not depend on it, results
/// are judged by [`crate::verify`] on fresh data.
pub struct Live<D> {
    device: D,
    seed: u64,
    /// The input that was measured last.
    latest: Option<(ComputationId, Config)>,
    /// Whether the device holds its data, and whether nothing has run on them yet.
    is_held: bool,
    is_untouched: bool,
    /// The kernel that was measured last, and whether its threads may still spin.
    before: Option<(KernelId, bool)>,
    programs: Programs,
}

impl<D: Device> Live<D> {
    /// Measures on a device; a reference to one will do.
    pub fn new(device: D) -> Self {
        let (latest, before, programs) = (None, None, Programs::keeping(PROGRAMS_KEPT));
        Self { device, seed: 0, latest, is_held: false, is_untouched: false, before, programs }
    }

    /// The seed of the data that is timed on.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The device, for other uses. Its data are put down anew before the next time is taken.
    pub fn device(&mut self) -> &mut D {
        self.is_held = false;
        &mut self.device
    }
}

impl<D: Device> Live<D> {
    /// Whether it is another kernel that was measured last, behind whose threads, which may still spin, those of this one may be asleep.
    /// Spinning is waited for.
    fn changes_over(&mut self, kernel: KernelId, program: &Program) -> bool {
        let spins = program.steps.iter().any(|step| matches!(step, Step::Host(code) if code.leaves_threads_spinning()));
        let before = self.before.replace((kernel.clone(), spins));
        let spec = self.device.spec();
        let is_shared = spec.kind == DeviceKind::Cpu && spec.fact("threads").is_some_and(|threads| threads > 1);
        let Some((other, was_spinning)) = before.filter(|(other, _)| is_shared && *other != kernel) else {
            return false;
        };
        tracing::trace!(%other, %kernel, "another kernel");
        if was_spinning {
            settle();
        }
        true
    }

    /// Runs without counting: a run that takes longer than the moment is the last. What takes too long is judged when it is timed.
    fn run_for_a_moment(&mut self, program: &Program, timing: &Timing) -> Result<(), MeasureError> {
        let (max_repeats, max_time) = AWAKE;
        let (rough_beyond, cut_off) = (Some(max_time), None);
        let calm = Timing { min_repeats: 1, max_repeats, max_time, relative_error: 0.0, batch: None, ..timing.clone() };
        self.device.time(program, &Timing { rough_beyond, cut_off, ..calm }).map(drop)
    }
}

impl<D: Device> Measure for Live<D> {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.device.spec()
    }

    fn measure(&mut self, problem: &dyn Problem, at: &Point, timing: &Timing) -> Result<Measurement, MeasureError> {
        let program = self.programs.get(problem, at)?;
        let wanted = (problem.computation(), problem.input());
        if self.latest.as_ref() != Some(&wanted) {
            self.is_held = false;
            // Those of the next input may have been announced already.
            if let Some((_, before)) = self.latest.replace(wanted) {
                self.programs.forget(&before);
            }
        }
        if !self.is_held {
            self.device.upload(&problem.data(self.seed))?;
            self.is_held = true;
            // Caches and page tables know nothing of the data: whatever is timed first, often the default, would seem slower than it is.
            self.is_untouched = self.device.spec().kind == DeviceKind::Cpu;
        }
        // Where no untimed run is asked for, none is made: a contest does so for calls that are long beside the waking of threads.
        let wakes = self.changes_over(problem.kernel(), &program) && timing.warmup > 0;
        if wakes || self.is_untouched {
            self.run_for_a_moment(&program, timing)?;
            self.is_untouched = false;
        }
        self.device.time(&program, timing)
    }

    fn ahead(&self) -> usize {
        self.device.ahead()
    }

    fn expect(&mut self, problem: &dyn Problem, points: &[Point]) {
        self.device.precompile(&self.programs.get_all(problem, points));
    }

    fn abandon(&mut self) {
        self.device.abandon();
    }

    fn device(&mut self) -> Option<&mut dyn Device> {
        Some(Self::device(self))
    }
}

#[cfg(test)]
mod tests;
