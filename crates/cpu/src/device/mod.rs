//! The host CPU as a device.

mod caches;
mod host_gemm;
mod peak;
mod spec;

pub(crate) use host_gemm::HostGemm;
pub(crate) use spec::generates;

use std::sync::Arc;
use tilewright_core::buffer::{Buffer, Buffers, Workload};
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::problem::{Executor, Loaded};
use tilewright_core::program::{Code, DeviceError, HostArgs, HostCode, Program, Step};

/// The host CPU with a number of threads. The number is a fact of the device: plans and profiles for one thread are not
/// those for two.
#[derive(Clone, Debug)]
pub struct CpuDevice {
    spec: Arc<DeviceSpec>,
}

impl CpuDevice {
    /// The host with `threads` threads.
    ///
    /// # Errors
    /// Zero threads.
    pub fn new(threads: usize) -> Result<Self, DeviceError> {
        if threads == 0 {
            let message = "at least one is needed".to_owned();
            return Err(DeviceError::Argument { name: "threads".into(), message });
        }
        Ok(Self { spec: Arc::new(spec::host(threads)) })
    }

    /// The same with peak rates measured (about a quarter of a second, once per process and number of threads):
    /// `peak_flops_f32`, `peak_flops_f64` in flop/s and `l1_bytes_per_s` ... `memory_bytes_per_s` in byte/s.
    #[must_use]
    pub fn with_peaks(self) -> Self {
        let mut spec = (*self.spec).clone();
        spec.measured = peak::measured(&spec);
        Self { spec: Arc::new(spec) }
    }

    /// The facts.
    pub fn spec(&self) -> &Arc<DeviceSpec> {
        &self.spec
    }
}

impl Executor for CpuDevice {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.spec
    }

    fn prepare(&mut self, program: &Program, work: &Workload) -> Result<Box<dyn Loaded>, DeviceError> {
        program.expect_scalars(&work.scalars)?;
        let (steps, workspace) = load(program)?;
        Ok(Box::new(LoadedProgram { steps, workspace, buffers: work.buffers.clone(), scalars: work.scalars.clone() }))
    }
}

enum HostStep {
    Fill { offset: usize, bytes: usize, value: u8 },
    Call(Arc<dyn HostCode>),
}

/// A program with its data in host memory.
struct LoadedProgram {
    steps: Vec<HostStep>,
    workspace: Buffer,
    buffers: Buffers,
    scalars: Vec<f64>,
}

fn load(program: &Program) -> Result<(Vec<HostStep>, Buffer), DeviceError> {
    let size = |x: u64| usize::try_from(x).map_err(|_| DeviceError::OutOfMemory { need: x, have: None });
    let step = |step: &Step| match step {
        Step::FillWorkspace { offset, bytes, value } => {
            Ok(HostStep::Fill { offset: size(*offset)?, bytes: size(*bytes)?, value: *value })
        }
        Step::Launch { code: Code::Host(code), .. } => Ok(HostStep::Call(code.clone())),
        Step::Launch { code, .. } => {
            Err(DeviceError::Unsupported { device: "cpu".into(), feature: format!("running {code:?}") })
        }
    };
    let steps = program.steps.iter().map(step).collect::<Result<_, _>>()?;
    Ok((steps, Buffer::zeroed(DType::I8, size(program.workspace)?)))
}

impl Loaded for LoadedProgram {
    fn run(&mut self) -> Result<(), DeviceError> {
        for step in &self.steps {
            match step {
                HostStep::Fill { offset, bytes, value } => {
                    let range = *offset..offset.saturating_add(*bytes);
                    let outside = || DeviceError::Run(format!("fill of {range:?} is outside of the workspace"));
                    let len = self.workspace.len();
                    let target = self.workspace.bytes_mut().get_mut(range.start..range.end.min(len.max(range.end)));
                    target.ok_or_else(outside)?.fill(*value);
                }
                HostStep::Call(code) => code.run(&mut HostArgs {
                    buffers: &mut self.buffers,
                    scalars: &self.scalars,
                    workspace: &mut self.workspace,
                })?,
            }
        }
        Ok(())
    }

    fn write(&mut self, buffers: &Buffers) -> Result<(), DeviceError> {
        let shapes = |of: &Buffers| of.iter().map(|b| (b.dtype(), b.len())).collect::<Vec<_>>();
        if shapes(&self.buffers) != shapes(buffers) {
            let message = format!("{buffers:?} are not those that were loaded: {:?}", self.buffers);
            return Err(DeviceError::Argument { name: "buffers".into(), message });
        }
        // In place: timed runs must find the same memory.
        for (to, from) in self.buffers.iter_mut().zip(buffers) {
            to.bytes_mut().copy_from_slice(from.bytes());
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        Ok(self.buffers.clone())
    }

    fn replace(&mut self, program: &Program) -> Result<(), DeviceError> {
        program.expect_scalars(&self.scalars)?;
        let (steps, workspace) = load(program)?;
        self.steps = steps;
        if workspace.len() > self.workspace.len() {
            self.workspace = workspace;
        }
        Ok(())
    }
}
