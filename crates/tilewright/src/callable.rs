//! Calling what was planned.

use crate::device::compilers;
use crate::error::Error;
use crate::tuner::Opened;
use std::fmt;
use std::sync::{Arc, PoisonError};
use tilewright_compile::in_process;
use tilewright_core::buffer::{Buffer, BufferSpec, Element, Role, View, Workload};
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceKind};
use tilewright_core::problem::Problem;
use tilewright_core::program::{Program, check_buffers};
use tilewright_core::space::Config;
use tilewright_runtime::plan::Planned;
use tilewright_runtime::table::HostPlan;

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
        let specs = program.buffers.clone().unwrap_or_else(|| problem.data(0).specs().to_vec());
        let runs = match problem.device().kind {
            DeviceKind::Cpu => Runs::Here(HostPlan::new(&in_process(&program, &compilers())?)?),
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
    /// [`Callable::buffers`]; scalars as the computation names them. A buffer may be longer than it needs to be. Nothing is
    /// copied on the host.
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
        let (mut read, mut written) = (inputs.iter(), outputs.iter_mut());
        let mut view = |spec: &BufferSpec| match spec.role {
            Role::In => read.next().map(|x| View::from(*x)),
            Role::Out | Role::InOut => written.next().map(|x| View::from(&mut **x)),
        };
        let mut views: Vec<View<'_>> = self.specs.iter().filter_map(&mut view).collect();
        self.call_on(&mut views, scalars)
    }

    /// Once for each A, B and C, of which there are as many; see [`Callable::call_batch`].
    pub(crate) fn call_each<T: Element>(
        &mut self,
        a: &[&[T]],
        b: &[&[T]],
        c: &mut [&mut [T]],
        scalars: &[f64],
    ) -> Result<(), Error> {
        let products = a.iter().zip(b).zip(c).map(|((a, b), c)| [View::from(*a), View::from(*b), View::from(&mut **c)]);
        match &mut self.runs {
            Runs::Here(plan) => Ok(plan.call_each(products, scalars)?),
            Runs::On(..) => {
                for mut views in products {
                    self.call_on(&mut views, scalars)?;
                }
                Ok(())
            }
        }
    }

    /// [`Callable::call`] for buffers of several element types: one view for each of [`Callable::buffers`], in their order.
    ///
    /// # Errors
    /// As [`Callable::call`], and a view that is written and was lent to be read.
    pub fn call_on(&mut self, buffers: &mut [View<'_>], scalars: &[f64]) -> Result<(), Error> {
        match &mut self.runs {
            Runs::Here(plan) => Ok(plan.call(buffers, scalars)?),
            Runs::On(device, program) => {
                check_buffers(&self.specs, buffers)?;
                program.expect(&self.specs, scalars)?;
                let mut held = device.lock().unwrap_or_else(PoisonError::into_inner);
                run(held.device(), program, &self.specs, buffers, scalars)
            }
        }
    }
}

/// Runs on a device with a memory of its own.
fn run(
    device: &mut dyn Device,
    program: &Program,
    specs: &[BufferSpec],
    buffers: &mut [View<'_>],
    scalars: &[f64],
) -> Result<(), Error> {
    let copied = |(spec, view): (&BufferSpec, &View<'_>)| {
        let mut copy = Buffer::zeroed(spec.dtype, spec.len);
        let bytes = copy.bytes().len();
        copy.bytes_mut().copy_from_slice(&view.bytes()[..bytes]);
        copy
    };
    let copies = specs.iter().zip(&*buffers).map(copied).collect();
    let work = Workload { specs: specs.to_vec(), buffers: copies, scalars: scalars.to_vec() };
    device.upload(&Data::Given(Arc::new(work)))?;
    device.run(program)?;
    for ((spec, view), after) in specs.iter().zip(buffers).zip(device.read()?) {
        if let (true, Some(bytes)) = (spec.role != Role::In, view.bytes_mut()) {
            bytes[..after.bytes().len()].copy_from_slice(after.bytes());
        }
    }
    Ok(())
}

fn count<'s>(what: &str, given: usize, specs: impl Iterator<Item = &'s BufferSpec>) -> Result<(), Error> {
    let names: Vec<&str> = specs.map(|s| s.name).collect();
    if given == names.len() {
        return Ok(());
    }
    let message = format!("{given} are given, {} are needed: {}", names.len(), names.join(", "));
    Err(Error::Argument { name: what.to_owned(), message })
}
