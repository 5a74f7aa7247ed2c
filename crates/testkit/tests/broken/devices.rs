//! Every check of the executor and measure suites can fail: one deliberate fault each.

use crate::assert_breaks;
use std::sync::Arc;
use std::time::Duration;
use tilewright_core::buffer::{Buffer, Buffers, Workload};
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::measurement::{Failure, FailureKind, Measurement, Timing};
use tilewright_core::problem::{Executor, Loaded, Measure, MeasureError, Problem};
use tilewright_core::program::{Code, DeviceError, HostArgs, Program, Step};
use tilewright_core::space::Point;
use tilewright_testkit::toy::{AnalyticMeasure, HostExecutor, device, device_with, problem};
use tilewright_testkit::{try_executor, try_host_executor, try_measure};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    ForgetsWrites,
    AcceptsAnyShape,
    AcceptsAnyScalars,
    SharesMemory,
    SpoilsResult,
    ChangesSpec,
    NeverRuns,
    RunsTwice,
    NoWorkspace,
    FillsOnce,
    FillsBackwards,
    ScalarsLost,
    SwallowsErrors,
    AcceptsForeign,
    FillsAnywhere,
    Refuses,
}

struct BrokenExecutor {
    inner: HostExecutor,
    spec: Arc<DeviceSpec>,
    shared: Arc<std::sync::Mutex<Buffers>>,
    fault: Fault,
}

impl BrokenExecutor {
    fn new(fault: Fault) -> Self {
        Self { inner: HostExecutor::default(), spec: device(), shared: Arc::default(), fault }
    }
}

/// A loaded program that does what the fault says.
struct BrokenLoaded {
    inner: Box<dyn Loaded>,
    program: Program,
    work: Workload,
    shared: Arc<std::sync::Mutex<Buffers>>,
    fault: Fault,
}

impl Executor for BrokenExecutor {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.spec
    }

    fn prepare(&mut self, program: &Program, work: &Workload) -> Result<Box<dyn Loaded>, DeviceError> {
        let mut program = program.clone();
        match self.fault {
            Fault::Refuses => return Err(DeviceError::Load("no".into())),
            Fault::ChangesSpec => self.spec = device_with(31),
            Fault::FillsBackwards if program.steps.len() == 3 => program.steps.swap(0, 1),
            Fault::NoWorkspace => {
                program.workspace = 0;
                program.steps.retain(|s| !matches!(s, Step::FillWorkspace { .. }));
            }
            Fault::AcceptsForeign => {
                program.steps.retain(|s| !matches!(s, Step::Launch { code: Code::Ptx { .. }, .. }));
            }
            Fault::AcceptsAnyScalars => program.scalars = None,
            Fault::FillsAnywhere if program.steps.len() == 1 => program.workspace += 1,
            _ => {}
        }
        let mut work = work.clone();
        if self.fault == Fault::ScalarsLost {
            work.scalars.clear();
        }
        *self.shared.lock().unwrap() = work.buffers.clone();
        let inner = self.inner.prepare(&program, &work)?;
        Ok(Box::new(BrokenLoaded { inner, program, work, shared: self.shared.clone(), fault: self.fault }))
    }
}

impl BrokenLoaded {
    /// Runs the code without the fills before it.
    fn launch_only(&mut self) -> Result<(), DeviceError> {
        let mut workspace = Buffer::zeroed(DType::I8, self.program.workspace as usize);
        for step in &self.program.steps {
            if let Step::Launch { code: Code::Host(code), .. } = step {
                let buffers = &mut self.work.buffers;
                code.run(&mut HostArgs { buffers, scalars: &self.work.scalars, workspace: &mut workspace })?;
            }
        }
        Ok(())
    }
}

impl Loaded for BrokenLoaded {
    fn run(&mut self) -> Result<(), DeviceError> {
        match self.fault {
            Fault::NeverRuns => return Ok(()),
            Fault::RunsTwice => self.inner.run()?,
            Fault::FillsOnce => return self.launch_only(),
            Fault::SwallowsErrors => return self.inner.run().or(Ok(())),
            _ => {}
        }
        self.inner.run()
    }

    fn write(&mut self, buffers: &Buffers) -> Result<(), DeviceError> {
        match self.fault {
            Fault::ForgetsWrites => Ok(()),
            Fault::AcceptsAnyShape => self.inner.write(buffers).or(Ok(())),
            Fault::SharesMemory => {
                *self.shared.lock().unwrap() = buffers.clone();
                self.inner.write(buffers)
            }
            _ => self.inner.write(buffers),
        }
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        let mut buffers = self.inner.read()?;
        match self.fault {
            Fault::SpoilsResult if !buffers[1].get_f64(0).is_nan() => buffers[1].set_f64(0, 7.0),
            // The inputs of whatever was loaded last, beside one's own results.
            Fault::SharesMemory if !buffers[1].get_f64(0).is_nan() => {
                let last = self.shared.lock().unwrap();
                if last[0].bytes() != buffers[0].bytes() {
                    return Ok(last.clone());
                }
            }
            _ => {}
        }
        Ok(buffers)
    }
}

#[test]
fn every_fault_of_an_executor_is_seen() {
    for (fault, check) in [
        (Fault::ForgetsWrites, "memory-reads-back"),
        (Fault::AcceptsAnyShape, "other-shapes-refused"),
        (Fault::AcceptsAnyScalars, "other-scalars-refused"),
        (Fault::SharesMemory, "programs-are-independent"),
        (Fault::SpoilsResult, "result-is-right"),
        (Fault::NeverRuns, "result-is-right"),
        (Fault::ChangesSpec, "spec-is-stable"),
        (Fault::Refuses, "runs"),
    ] {
        assert_breaks(try_executor(&mut BrokenExecutor::new(fault), &problem(500)), check);
    }
    let mut other = HostExecutor::new(device_with(64));
    assert_breaks(try_executor(&mut other, &problem(500)), "same-device");
}

#[test]
fn every_fault_of_a_host_executor_is_seen() {
    for (fault, check) in [
        (Fault::NeverRuns, "runs-once"),
        (Fault::RunsTwice, "runs-once"),
        (Fault::NoWorkspace, "workspace-is-there"),
        (Fault::FillsOnce, "workspace-is-filled"),
        (Fault::FillsBackwards, "workspace-is-filled"),
        (Fault::ScalarsLost, "scalars-are-passed"),
        (Fault::SwallowsErrors, "errors-are-passed-on"),
        (Fault::AcceptsForeign, "foreign-code-refused"),
        (Fault::FillsAnywhere, "fills-stay-inside"),
    ] {
        assert_breaks(try_host_executor(&mut BrokenExecutor::new(fault)), check);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    NegativeTime,
    InfiniteTime,
    TooManyRepeats,
    NoError,
    TimesIllegal,
    WrongKind,
    Panics,
    IgnoresCutOff,
    AlwaysCutsOff,
    DiesAfterFailure,
    NothingRuns,
    DeviceGone,
    ChangesSpec,
}

struct BrokenMeasure {
    inner: AnalyticMeasure,
    spec: Arc<DeviceSpec>,
    mistake: Mistake,
    dead: bool,
}

impl Measure for BrokenMeasure {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.spec
    }

    fn measure(&mut self, problem: &dyn Problem, at: &Point, policy: &Timing) -> Result<Measurement, MeasureError> {
        let failure = |kind| MeasureError::Failed(Failure { kind, message: "broken".into() });
        let fine = Measurement::recorded(1.0);
        let mut policy = policy.clone();
        match self.mistake {
            Mistake::TimesIllegal => return Ok(fine),
            Mistake::Panics if at.len() != problem.space().params().len() => panic!("index out of bounds"),
            Mistake::IgnoresCutOff => policy.cut_off = None,
            Mistake::AlwaysCutsOff if policy.cut_off.is_some() => policy.cut_off = Some(Duration::ZERO),
            Mistake::NothingRuns => return Err(failure(FailureKind::Launch)),
            Mistake::DeviceGone => return Err(DeviceError::Run("gone".into()).into()),
            Mistake::DiesAfterFailure if self.dead => return Err(failure(FailureKind::Launch)),
            Mistake::ChangesSpec => self.spec = device_with(31),
            _ => {}
        }
        let mut result = self.inner.measure(problem, at, &policy);
        self.dead = result.is_err();
        match (self.mistake, &mut result) {
            (Mistake::WrongKind, Err(MeasureError::Failed(f))) => f.kind = FailureKind::Launch,
            (Mistake::NegativeTime, Ok(m)) => m.time_s = -m.time_s,
            (Mistake::InfiniteTime, Ok(m)) => m.time_s = f64::INFINITY,
            (Mistake::TooManyRepeats, Ok(m)) => m.repeats = 1 + policy.max_repeats,
            (Mistake::NoError, Ok(m)) => m.relative_error = f64::NAN,
            _ => {}
        }
        result
    }
}

#[test]
fn every_fault_of_a_measuring_device_is_seen() {
    for (mistake, check) in [
        (Mistake::NegativeTime, "times-are-positive"),
        (Mistake::InfiniteTime, "times-are-positive"),
        (Mistake::TooManyRepeats, "repeats-follow-policy"),
        (Mistake::NoError, "error-is-stated"),
        (Mistake::TimesIllegal, "illegal-points-fail"),
        (Mistake::WrongKind, "illegal-points-fail"),
        (Mistake::Panics, "outside-points-fail"),
        (Mistake::IgnoresCutOff, "cut-off-is-kept"),
        (Mistake::AlwaysCutsOff, "cut-off-is-kept"),
        (Mistake::DiesAfterFailure, "failures-are-survived"),
        (Mistake::NothingRuns, "legal-points-run"),
        (Mistake::DeviceGone, "legal-points-run"),
        (Mistake::ChangesSpec, "spec-is-stable"),
    ] {
        let inner = AnalyticMeasure::new(device());
        let mut broken = BrokenMeasure { inner, spec: device(), mistake, dead: false };
        assert_breaks(try_measure(&mut broken, &problem(500)), check);
    }
}
