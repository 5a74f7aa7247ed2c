//! Host code: programs of it ready to run, and the device of this process that runs them.

use super::{Device, DeviceSpec, classify, no_data};
use crate::buffer::{Buffer, BufferSpec, Buffers, View, views};
use crate::data::Data;
use crate::dtype::DType;
use crate::measurement::{CachePolicy, Measurement, Timing};
use crate::problem::MeasureError;
use crate::program::{DeviceError, HostArgs, HostCode, Program, Scalars, Step, buffers_fit, check_buffers};
use crate::timing::{Clock, Evictor, measure_runs};
use std::ops::Range;
use std::sync::Arc;

/// A program of host code, checked, without its workspace.
pub struct HostProgram {
    steps: Vec<HostStep>,
    /// The one step, where it is a call and there are no others.
    only: Option<Arc<dyn HostCode>>,
    workspace: usize,
    /// The buffers that it runs on, where the program says so.
    buffers: Option<Box<[BufferSpec]>>,
    /// Whether they are checked before the code runs: not where all of it does so itself.
    checks_buffers: bool,
    /// The scalars that it takes, where the program says so.
    scalars: Option<Scalars>,
}

enum HostStep {
    Fill { range: Range<usize>, value: u8 },
    Call(Arc<dyn HostCode>),
}

impl HostProgram {
    /// Takes a program over.
    ///
    /// # Errors
    /// Steps that are not for the host, or that reach beyond the workspace.
    pub fn new(program: &Program) -> Result<Self, DeviceError> {
        let need = program.workspace;
        let workspace = usize::try_from(need).map_err(|_| DeviceError::OutOfMemory { need, have: None })?;
        let steps = program.steps.iter().map(|s| HostStep::new(s, workspace)).collect::<Result<Vec<_>, _>>()?;
        let scalars = program.scalars.as_deref().map(Scalars::new);
        let buffers = program.buffers.clone().map(Vec::into_boxed_slice);
        let only = match &steps[..] {
            [HostStep::Call(code)] => Some(code.clone()),
            _ => None,
        };
        let checks_buffers = buffers.is_some() && only.as_ref().is_none_or(|code| !code.checks_buffers());
        Ok(Self { steps, only, workspace, buffers, checks_buffers, scalars })
    }

    /// The buffers that it runs on, in order; None where the program does not say.
    pub fn buffers(&self) -> Option<&[BufferSpec]> {
        self.buffers.as_deref()
    }

    /// Bytes of workspace that a run needs.
    pub fn workspace(&self) -> usize {
        self.workspace
    }

    /// Runs once, in place.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] with the buffer that has another type, is too short, or is written and was lent to be read,
    /// or the scalar that the program was not made for: code for one value of a scalar has that value built in.
    ///
    /// # Panics
    /// If the workspace is shorter than [`HostProgram::workspace`].
    #[inline]
    pub fn run(&self, buffers: &mut [View<'_>], scalars: &[f64], workspace: &mut Buffer) -> Result<(), DeviceError> {
        if !self.fit(buffers, scalars) {
            return self.refuse(buffers, scalars);
        }
        self.start(buffers, scalars, workspace)
    }

    /// Runs once on each of several sets of buffers, all with the same scalars, which are looked at once. Those before the first
    /// set that does not fit have run.
    ///
    /// # Errors
    /// As [`HostProgram::run`].
    ///
    /// # Panics
    /// As [`HostProgram::run`].
    pub fn run_each<'v, const N: usize>(
        &self,
        all: impl IntoIterator<Item = [View<'v>; N]>,
        scalars: &[f64],
        workspace: &mut Buffer,
    ) -> Result<(), DeviceError> {
        if let Some(taken) = self.scalars.as_ref().filter(|taken| !taken.fit(scalars)) {
            return taken.check(scalars);
        }
        for mut buffers in all {
            if !self.buffers_fit(&buffers) {
                return self.refuse(&buffers, scalars);
            }
            self.start(&mut buffers, scalars, workspace)?;
        }
        Ok(())
    }

    #[inline]
    fn start(&self, buffers: &mut [View<'_>], scalars: &[f64], workspace: &mut Buffer) -> Result<(), DeviceError> {
        match &self.only {
            Some(code) => code.run(&mut HostArgs { buffers, scalars, workspace }),
            None => self.run_steps(buffers, scalars, workspace),
        }
    }

    /// Whether the program was made for these data, as far as its code does not ask itself.
    #[inline]
    fn fit(&self, buffers: &[View<'_>], scalars: &[f64]) -> bool {
        self.buffers_fit(buffers) && self.scalars.as_ref().is_none_or(|taken| taken.fit(scalars))
    }

    #[inline]
    fn buffers_fit(&self, buffers: &[View<'_>]) -> bool {
        !self.checks_buffers || self.buffers.as_ref().is_none_or(|specs| buffers_fit(specs, buffers))
    }

    fn run_steps(&self, buffers: &mut [View<'_>], scalars: &[f64], workspace: &mut Buffer) -> Result<(), DeviceError> {
        for step in &self.steps {
            match step {
                HostStep::Fill { range, value } => workspace.bytes_mut()[range.clone()].fill(*value),
                HostStep::Call(code) => code.run(&mut HostArgs { buffers, scalars, workspace })?,
            }
        }
        Ok(())
    }

    /// Apart from the check, which stands before every call.
    #[cold]
    fn refuse(&self, buffers: &[View<'_>], scalars: &[f64]) -> Result<(), DeviceError> {
        self.buffers.as_ref().map_or(Ok(()), |specs| check_buffers(specs, buffers))?;
        self.scalars.as_ref().map_or(Ok(()), |taken| taken.check(scalars))
    }
}

impl HostStep {
    fn new(step: &Step, workspace: usize) -> Result<Self, DeviceError> {
        match step {
            Step::Host(code) => Ok(Self::Call(code.clone())),
            Step::Launch(_) | Step::Library(_) => {
                Err(DeviceError::Unsupported { device: "cpu".into(), feature: format!("running {}", step.kind()) })
            }
            Step::Fill { offset, bytes, value } => {
                let beyond = || DeviceError::Argument {
                    name: "workspace".into(),
                    message: format!("{bytes} bytes at {offset} are beyond its {workspace}"),
                };
                let end = offset.checked_add(*bytes).and_then(|e| usize::try_from(e).ok());
                let end = end.filter(|e| *e <= workspace).ok_or_else(beyond)?;
                Ok(Self::Fill { range: *offset as usize..end, value: *value })
            }
        }
    }
}

/// A device of this process that runs host code and is timed by a clock of the host.
pub struct HostDevice<C> {
    spec: Arc<DeviceSpec>,
    clock: C,
    evictor: Option<Evictor>,
    held: Option<Held>,
}

/// Data, and the largest workspace that a program has needed on them.
struct Held {
    buffers: Buffers,
    scalars: Vec<f64>,
    workspace: Buffer,
}

impl<C: Clock> HostDevice<C> {
    /// A device with these facts. The largest cache that they name (`l*_bytes`) is what cold runs overwrite.
    pub fn new(spec: Arc<DeviceSpec>, clock: C) -> Self {
        Self { spec, clock, evictor: None, held: None }
    }

    /// Replaces what emptying the caches overwrites.
    #[must_use]
    pub fn with_evictor(mut self, evictor: Evictor) -> Self {
        self.evictor = Some(evictor);
        self
    }
}

impl Held {
    /// The program, with a workspace that is long enough for it.
    fn load(&mut self, program: &Program) -> Result<HostProgram, DeviceError> {
        let program = HostProgram::new(program)?;
        if program.workspace() > self.workspace.len() {
            self.workspace = Buffer::try_zeroed(DType::I8, program.workspace())?;
        }
        Ok(program)
    }

    /// What runs the program, as often as asked.
    fn runs<'a>(&'a mut self, program: &'a HostProgram) -> impl FnMut() -> Result<(), DeviceError> + 'a {
        let Self { buffers, scalars, workspace } = self;
        let mut views = views(buffers);
        move || program.run(&mut views, scalars, workspace)
    }
}

impl<C: Clock + Send> Device for HostDevice<C> {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.spec
    }

    fn upload(&mut self, data: &Data) -> Result<(), DeviceError> {
        // The old data go first: both may not fit.
        self.held = None;
        let buffers = data.buffers()?;
        self.held = Some(Held { buffers, scalars: data.scalars().to_vec(), workspace: Buffer::zeroed(DType::I8, 0) });
        Ok(())
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        let held = self.held.as_mut().ok_or_else(no_data)?;
        let program = held.load(program)?;
        held.runs(&program)()
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        self.held.as_ref().ok_or_else(no_data)?.buffers.iter().map(Buffer::try_clone).collect()
    }

    fn time(&mut self, program: &Program, timing: &Timing) -> Result<Measurement, MeasureError> {
        let held = self.held.as_mut().ok_or_else(no_data)?;
        let program = held.load(program).map_err(classify)?;
        if timing.cache == CachePolicy::Cold && self.evictor.is_none() {
            self.evictor = Some(Evictor::of(&self.spec));
        }
        let evictor = &mut self.evictor;
        let mut evict = || evictor.iter_mut().for_each(Evictor::evict);
        measure_runs(&self.clock, timing, &mut held.runs(&program), &mut evict).map_err(|error| match error {
            MeasureError::Device(e) => classify(e),
            failed @ MeasureError::Failed(_) => failed,
        })
    }
}
