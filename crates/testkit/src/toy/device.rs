//! A device that runs host code, and one that times by formula.

use super::cost::cost_s;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilewright_core::buffer::{Buffer, Buffers, Workload};
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::dtype::DType;
use tilewright_core::measurement::{Failure, FailureKind, Measurement, Timing};
use tilewright_core::problem::{Executor, Loaded, Measure, MeasureError, Problem};
use tilewright_core::program::{Code, DeviceError, HostArgs, Program, Step};
use tilewright_core::space::Point;

/// The toy device: 32 registers.
pub fn device() -> Arc<DeviceSpec> {
    device_with(32)
}

/// A toy device with that many registers.
pub fn device_with(registers: i64) -> Arc<DeviceSpec> {
    Arc::new(DeviceSpec {
        id: "toy".into(),
        name: "toy device".into(),
        kind: DeviceKind::Cpu,
        driver: "1".into(),
        facts: BTreeMap::from([("registers".to_owned(), registers)]),
        measured: BTreeMap::new(),
    })
}

/// Runs programs of host code.
#[derive(Clone, Debug)]
pub struct HostExecutor {
    spec: Arc<DeviceSpec>,
}

impl HostExecutor {
    /// An executor with these facts.
    pub fn new(spec: Arc<DeviceSpec>) -> Self {
        Self { spec }
    }
}

impl Default for HostExecutor {
    fn default() -> Self {
        Self::new(device())
    }
}

struct HostProgram {
    program: Program,
    buffers: Buffers,
    scalars: Vec<f64>,
    workspace: Buffer,
}

impl Executor for HostExecutor {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.spec
    }

    fn prepare(&mut self, program: &Program, work: &Workload) -> Result<Box<dyn Loaded>, DeviceError> {
        program.expect_scalars(&work.scalars)?;
        for step in &program.steps {
            let feature = match step {
                Step::Launch { code: Code::Ptx { .. }, .. } => "PTX",
                Step::Launch { code: Code::CudaC { .. }, .. } => "CUDA C",
                Step::FillWorkspace { offset, bytes, .. }
                    if offset.checked_add(*bytes).is_none_or(|end| end > program.workspace) =>
                {
                    return Err(DeviceError::Argument {
                        name: "workspace".into(),
                        message: format!("filling {bytes} bytes at {offset} of {}", program.workspace),
                    });
                }
                _ => continue,
            };
            return Err(DeviceError::Unsupported { device: self.spec.id.clone(), feature: feature.into() });
        }
        let bytes = usize::try_from(program.workspace)
            .map_err(|_| DeviceError::OutOfMemory { need: program.workspace, have: None })?;
        Ok(Box::new(HostProgram {
            program: program.clone(),
            buffers: work.buffers.clone(),
            scalars: work.scalars.clone(),
            workspace: Buffer::zeroed(DType::I8, bytes),
        }))
    }
}

impl Loaded for HostProgram {
    fn run(&mut self) -> Result<(), DeviceError> {
        for step in &self.program.steps {
            match step {
                Step::FillWorkspace { offset, bytes, value } => {
                    // Within bounds: `prepare` has checked.
                    let range = *offset as usize..(offset + bytes) as usize;
                    self.workspace.bytes_mut()[range].fill(*value);
                }
                Step::Launch { code: Code::Host(code), .. } => code.run(&mut HostArgs {
                    buffers: &mut self.buffers,
                    scalars: &self.scalars,
                    workspace: &mut self.workspace,
                })?,
                Step::Launch { code, .. } => return Err(DeviceError::Run(format!("{code:?} is not host code"))),
            }
        }
        Ok(())
    }

    fn write(&mut self, buffers: &Buffers) -> Result<(), DeviceError> {
        let shape = |b: &Buffers| b.iter().map(|b| (b.dtype(), b.len())).collect::<Vec<_>>();
        if shape(buffers) != shape(&self.buffers) {
            let message = format!("{buffers:?} written over {:?}", self.buffers);
            return Err(DeviceError::Argument { name: "buffers".into(), message });
        }
        self.buffers.clone_from(buffers);
        Ok(())
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        Ok(self.buffers.clone())
    }
}

/// Times points of the toy kernel by [`cost_s`]: exact, repeatable and instant.
#[derive(Clone)]
pub struct AnalyticMeasure {
    spec: Arc<DeviceSpec>,
    fails: fn(&[u16]) -> bool,
    /// How many points were timed, failed ones included.
    pub calls: u64,
}

impl AnalyticMeasure {
    /// A device on which every legal point runs.
    pub fn new(spec: Arc<DeviceSpec>) -> Self {
        Self { spec, fails: |_| false, calls: 0 }
    }

    /// The same, with a launch failure for some points.
    #[must_use]
    pub fn failing(mut self, fails: fn(&[u16]) -> bool) -> Self {
        self.fails = fails;
        self
    }
}

impl Measure for AnalyticMeasure {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.spec
    }

    fn measure(&mut self, problem: &dyn Problem, at: &Point, policy: &Timing) -> Result<Measurement, MeasureError> {
        self.calls += 1;
        let failed = |kind, message| Err(MeasureError::Failed(Failure { kind, message }));
        let space = problem.space();
        space.check(at)?;
        if (self.fails)(at) {
            return failed(FailureKind::Launch, "made to fail".into());
        }
        let time_s = cost_s(problem, at);
        match policy.cut_off {
            Some(limit) if time_s > limit.as_secs_f64() => {
                failed(FailureKind::CutOff, format!("cut off after {:e} s", limit.as_secs_f64()))
            }
            _ => Ok(Measurement::recorded(time_s)),
        }
    }
}
