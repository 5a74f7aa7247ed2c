//! Calling what was planned.

use crate::error::Error;
use crate::tuner::Opened;
use bytemuck::Pod;
use std::fmt;
use std::sync::{Arc, PoisonError};
use tilewright_core::buffer::{Buffer, BufferSpec, Role, Workload};
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceKind};
use tilewright_core::dtype::DType;
use tilewright_core::problem::Problem;
use tilewright_core::program::Program;
use tilewright_core::space::Config;
use tilewright_runtime::plan::Planned;
use tilewright_runtime::table::HostPlan;

/// A Rust type that is an element type of buffers.
pub trait Element: Pod {
    /// Which.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($t:ty => $d:ident),*) => { $(impl Element for $t { const DTYPE: DType = DType::$d; })* };
}

elements!(f32 => F32, f64 => F64, i8 => I8, i32 => I32);

/// A decided plan, ready to be called on the caller's own memory.
pub struct Callable {
    planned: Planned,
    specs: Vec<BufferSpec>,
    runs: Runs,
}

/// Where it runs.
enum Runs {
    Here(HostPlan),
    On(Arc<Opened>, Program),
}

impl fmt::Debug for Callable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callable").field("planned", &self.planned).field("specs", &self.specs).finish_non_exhaustive()
    }
}

impl Callable {
    pub(crate) fn new(problem: &dyn Problem, planned: Planned, device: &Arc<Opened>) -> Result<Self, Error> {
        let legal = problem.space().check(&planned.point);
        let legal = legal.map_err(|e| Error::Argument { name: e.rule.clone(), message: e.to_string() })?;
        let program = problem.program(&legal);
        let specs = problem.data(0).specs().to_vec();
        let runs = match problem.device().kind {
            DeviceKind::Cpu => Runs::Here(HostPlan::new(&program)?),
            _ => Runs::On(device.clone(), program),
        };
        Ok(Self { planned, specs, runs })
    }

    /// What was decided, and why.
    pub fn planned(&self) -> &Planned {
        &self.planned
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.planned.config
    }

    /// The buffers of a call in the order of the program: their names, element types and shortest lengths, and what becomes of
    /// them.
    pub fn buffers(&self) -> &[BufferSpec] {
        &self.specs
    }

    /// Computes once: `inputs` are the buffers that are only read, `outputs` those that are written, both in the order of
    /// [`Callable::buffers`]; scalars as the computation names them. A buffer may be longer than it needs to be.
    ///
    /// # Errors
    /// [`Error::Argument`] with the buffer that is missing, too short, or of another type, or the scalar that the plan was not made
    /// for; and what a device reports.
    pub fn call<T: Element>(
        &mut self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
        scalars: &[f64],
    ) -> Result<(), Error> {
        let is_read = |spec: &&BufferSpec| spec.role == Role::In;
        count("inputs", inputs.len(), self.specs.iter().filter(is_read))?;
        count("outputs", outputs.len(), self.specs.iter().filter(|s| !is_read(s)))?;
        let (mut read, mut written) = (inputs.iter(), outputs.iter());
        for spec in &self.specs {
            let len = if is_read(&spec) { read.next().map(|x| x.len()) } else { written.next().map(|x| x.len()) };
            expect::<T>(spec, len.unwrap_or(0))?;
        }
        self.run(inputs, outputs, scalars)
    }

    /// Runs on arguments that fit.
    fn run<T: Element>(&mut self, inputs: &[&[T]], outputs: &mut [&mut [T]], scalars: &[f64]) -> Result<(), Error> {
        let (mut read, mut written) = (inputs.iter(), outputs.iter());
        let mut buffers = Vec::with_capacity(self.specs.len());
        for spec in &self.specs {
            let mut buffer = Buffer::zeroed(spec.dtype, spec.len);
            let from = if spec.role == Role::In { read.next().copied() } else { written.next().map(|x| &**x) };
            buffer.as_mut_slice::<T>().copy_from_slice(&from.unwrap_or(&[])[..spec.len]);
            buffers.push(buffer);
        }
        let after = match &mut self.runs {
            Runs::Here(plan) => {
                plan.call(&mut buffers, scalars)?;
                buffers
            }
            Runs::On(device, program) => {
                program.expect_scalars(scalars)?;
                let work = Workload { specs: self.specs.clone(), buffers, scalars: scalars.to_vec() };
                let mut held = device.lock().unwrap_or_else(PoisonError::into_inner);
                let device = held.device();
                device.upload(&Data::Given(Arc::new(work)))?;
                device.run(program)?;
                device.read()?
            }
        };
        let written = self.specs.iter().zip(&after).filter(|(spec, _)| spec.role != Role::In);
        for (to, (spec, buffer)) in outputs.iter_mut().zip(written) {
            to[..spec.len].copy_from_slice(buffer.as_slice());
        }
        Ok(())
    }
}

fn count<'s>(what: &str, given: usize, specs: impl Iterator<Item = &'s BufferSpec>) -> Result<(), Error> {
    let names: Vec<&str> = specs.map(|s| s.name).collect();
    if given == names.len() {
        return Ok(());
    }
    let message = format!("{given} are given, {} are needed: {}", names.len(), names.join(", "));
    Err(Error::Argument { name: what.to_owned(), message })
}

fn expect<T: Element>(spec: &BufferSpec, len: usize) -> Result<(), Error> {
    let refuse = |message| Err(Error::Argument { name: spec.name.to_owned(), message });
    if spec.dtype != T::DTYPE {
        return refuse(format!("elements of {} are given, {} are needed", T::DTYPE, spec.dtype));
    }
    if len < spec.len {
        return refuse(format!("{len} elements of {} are given, at least {} are needed", spec.dtype, spec.len));
    }
    Ok(())
}
