//! A station on any executor of this process.

use super::{Data, Station};
use crate::host_measure::{classify, last_level_bytes};
use crate::timing::{Clock, Evictor, HostClock, measure_runs};
use std::sync::Arc;
use tilewright_core::buffer::{Buffers, Workload};
use tilewright_core::device::DeviceSpec;
use tilewright_core::measurement::{CachePolicy, Measurement, Timing};
use tilewright_core::problem::{Executor, Loaded, MeasureError};
use tilewright_core::program::{DeviceError, Program};

/// A station on an executor, timed by a clock of the host.
pub struct HostStation<E, C = HostClock> {
    executor: E,
    clock: C,
    evictor: Option<Evictor>,
    work: Option<Arc<Workload>>,
    loaded: Option<Box<dyn Loaded>>,
}

impl<E: Executor> HostStation<E> {
    /// Times with the clock of the host.
    pub fn new(executor: E) -> Self {
        Self::with_clock(executor, HostClock::start())
    }
}

impl<E: Executor, C: Clock> HostStation<E, C> {
    /// Times with another clock.
    pub fn with_clock(executor: E, clock: C) -> Self {
        Self { executor, clock, evictor: None, work: None, loaded: None }
    }

    /// The data with this program on it.
    fn load(&mut self, program: &Program) -> Result<&mut Box<dyn Loaded>, DeviceError> {
        let work = self.work.as_ref().ok_or_else(|| DeviceError::Run("there are no data to run on".into()))?;
        match self.loaded.as_mut().map(|loaded| loaded.replace(program)) {
            Some(Ok(())) => {}
            Some(Err(DeviceError::Unsupported { .. })) | None => {
                // What earlier runs changed stays, as it does where programs are replaced.
                let buffers = self.loaded.as_mut().map(|loaded| loaded.read()).transpose()?;
                self.loaded = None;
                let mut loaded = self.executor.prepare(program, work)?;
                if let Some(buffers) = buffers {
                    loaded.write(&buffers)?;
                }
                self.loaded = Some(loaded);
            }
            Some(Err(error)) => return Err(error),
        }
        self.loaded.as_mut().ok_or_else(|| DeviceError::Load("nothing was loaded".into()))
    }
}

impl<E: Executor, C: Clock + Send> Station for HostStation<E, C> {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.executor.spec()
    }

    fn hold(&mut self, data: &Data) -> Result<(), DeviceError> {
        // The old data go first: both may not fit.
        (self.loaded, self.work) = (None, None);
        self.work = Some(data.workload());
        Ok(())
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        self.load(program)?.run()
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        match (&mut self.loaded, &self.work) {
            (Some(loaded), _) => loaded.read(),
            (None, Some(work)) => Ok(work.buffers.clone()),
            (None, None) => Err(DeviceError::Run("there are no data to read".into())),
        }
    }

    fn time(&mut self, program: &Program, policy: &Timing) -> Result<Measurement, MeasureError> {
        if policy.cache == CachePolicy::Cold && self.evictor.is_none() {
            self.evictor = Some(Evictor::new(last_level_bytes(self.executor.spec())));
        }
        self.load(program).map_err(classify)?;
        let (Some(loaded), evictor) = (&mut self.loaded, &mut self.evictor) else {
            return Err(DeviceError::Load("nothing was loaded".into()).into());
        };
        let mut evict = || evictor.iter_mut().for_each(Evictor::evict);
        measure_runs(&self.clock, policy, &mut || loaded.run(), &mut evict).map_err(|error| match error {
            MeasureError::Device(e) => classify(e),
            failed @ MeasureError::Failed(_) => failed,
        })
    }
}
