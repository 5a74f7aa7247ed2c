//! Timing on any executor whose runs block the host.

use crate::programs::Programs;
use crate::timing::{Clock, Evictor, HostClock, measure_runs};
use std::sync::Arc;
use tilewright_core::buffer::{Filling, Workload};
use tilewright_core::device::DeviceSpec;
use tilewright_core::id::ComputationId;
use tilewright_core::measurement::{CachePolicy, Failure, FailureKind, Measurement, Timing};
use tilewright_core::problem::{Executor, Loaded, Measure, MeasureError, Problem};
use tilewright_core::program::{DeviceError, Program};
use tilewright_core::space::{Config, Point};

/// Generated programs that are kept for the current input, so that interleaved rounds do not generate them again.
const PROGRAMS_KEPT: usize = 64;

/// Assumed size of the last-level cache where the device does not say.
const ASSUMED_CACHE_BYTES: u64 = 64 << 20;

/// [`Measure`] on top of an [`Executor`].
///
/// The data of an input is made once and serves every configuration of it, as long as the inputs come one after the
/// other. Buffers that are read and written keep what earlier runs left in them: times do not depend on it, results
/// are judged by [`crate::verify`] on fresh data.
pub struct HostMeasure<E, C = HostClock> {
    executor: E,
    clock: C,
    seed: u64,
    evictor: Option<Evictor>,
    current: Option<Current>,
}

/// The input that data and programs are held for.
struct Current {
    computation: ComputationId,
    input: Config,
    work: Workload,
    loaded: Option<Box<dyn Loaded>>,
    programs: Programs,
}

impl<E: Executor> HostMeasure<E> {
    /// Times with the clock of the host.
    pub fn new(executor: E) -> Self {
        Self::with_clock(executor, HostClock::start())
    }
}

impl<E: Executor, C: Clock + Send> HostMeasure<E, C> {
    /// Times with another clock.
    pub fn with_clock(executor: E, clock: C) -> Self {
        Self { executor, clock, seed: 0, evictor: None, current: None }
    }

    /// The seed of the data that is timed on.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The executor, for results.
    pub fn executor(&mut self) -> &mut E {
        &mut self.executor
    }

    /// Frees the data and the programs of the current input.
    pub fn release(&mut self) {
        self.current = None;
    }

    fn select(&mut self, problem: &dyn Problem) {
        let (computation, input) = (problem.computation(), problem.input());
        if self.current.as_ref().is_some_and(|c| c.computation == computation && c.input == input) {
            return;
        }
        // The old data goes first: both may not fit.
        self.current = None;
        let work = problem.workload(Filling::Real, self.seed);
        self.current =
            Some(Current { computation, input, work, loaded: None, programs: Programs::keeping(PROGRAMS_KEPT) });
    }
}

impl Current {
    /// The data with this program on it.
    fn load(&mut self, executor: &mut dyn Executor, program: &Program) -> Result<&mut Box<dyn Loaded>, DeviceError> {
        let replaced = self.loaded.as_mut().map(|loaded| loaded.replace(program));
        match replaced {
            Some(Ok(())) => {}
            None | Some(Err(DeviceError::Unsupported { .. })) => {
                self.loaded = None;
                self.loaded = Some(executor.prepare(program, &self.work)?);
            }
            Some(Err(error)) => return Err(error),
        }
        self.loaded.as_mut().ok_or_else(|| DeviceError::Load("nothing was loaded".into()))
    }
}

impl<E: Executor, C: Clock + Send> Measure for HostMeasure<E, C> {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.executor.spec()
    }

    fn measure(&mut self, problem: &dyn Problem, at: &Point, policy: &Timing) -> Result<Measurement, MeasureError> {
        self.select(problem);
        if policy.cache == CachePolicy::Cold && self.evictor.is_none() {
            self.evictor = Some(Evictor::new(last_level_bytes(self.executor.spec())));
        }
        let Some(current) = &mut self.current else {
            return Err(DeviceError::Load("no input is selected".into()).into());
        };
        let program = current.programs.get(problem, at)?;
        let loaded = current.load(&mut self.executor, &program).map_err(classify)?;
        let evictor = &mut self.evictor;
        let mut evict = || {
            if let Some(e) = evictor {
                e.evict();
            }
        };
        measure_runs(&self.clock, policy, &mut || loaded.run(), &mut evict).map_err(|error| match error {
            MeasureError::Device(e) => classify(e),
            failed @ MeasureError::Failed(_) => failed,
        })
    }
}

/// Tells what only this configuration suffers from what ends all measuring.
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

/// Size of the largest cache that the device's facts name.
pub(crate) fn last_level_bytes(spec: &DeviceSpec) -> u64 {
    let of_cache = |name: &str| name.starts_with('l') && name.ends_with("_bytes");
    let sizes = spec.facts.iter().filter(|(name, _)| of_cache(name)).map(|(_, bytes)| *bytes);
    sizes.max().and_then(|b| u64::try_from(b).ok()).filter(|b| *b > 0).unwrap_or(ASSUMED_CACHE_BYTES)
}

#[cfg(test)]
mod tests;
