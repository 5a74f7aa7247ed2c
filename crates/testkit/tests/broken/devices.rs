//! Every check of the device and measure suites can fail: one deliberate fault each.

use crate::assert_breaks;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilewright_core::buffer::{Buffers, Workload};
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceSpec, HostDevice};
use tilewright_core::measurement::{Failure, FailureKind, Measurement, Timing};
use tilewright_core::problem::{Measure, MeasureError, Problem};
use tilewright_core::program::{DeviceError, Program, Step};
use tilewright_core::space::Point;
use tilewright_testkit::toy::{AnalyticMeasure, device, device_with, host_device, host_device_with, problem};
use tilewright_testkit::{self as testkit, measure};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    KeepsOldData,
    AcceptsAnyShape,
    AcceptsAnyBuffers,
    AcceptsAnyScalars,
    ForgetsResults,
    SpoilsResult,
    OwnNoise,
    RunsOnNothing,
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

struct BrokenDevice {
    inner: HostDevice<Instant>,
    spec: Arc<DeviceSpec>,
    data: Option<Data>,
    latest: Option<Program>,
    fault: Fault,
}

impl BrokenDevice {
    fn new(fault: Fault) -> Self {
        Self { inner: host_device(), spec: device(), data: None, latest: None, fault }
    }

    /// Runs the code without the fills before it.
    fn launch_only(&mut self, program: &Program) -> Result<(), DeviceError> {
        let steps = program.steps.iter().filter(|s| !matches!(s, Step::Fill { .. })).cloned().collect();
        self.inner.run(&Program { steps, ..program.clone() })
    }
}

/// The data with what the fault makes of them.
fn taken(data: &Data, fault: Fault) -> Data {
    match (data, fault) {
        (Data::Given(work), Fault::ScalarsLost) => {
            Data::Given(Arc::new(Workload { scalars: Vec::new(), ..(**work).clone() }))
        }
        (Data::Given(work), Fault::AcceptsAnyShape) => {
            let mut work = (**work).clone();
            work.specs.iter_mut().zip(&work.buffers).for_each(|(spec, buffer)| spec.len = buffer.len());
            Data::Given(Arc::new(work))
        }
        (Data::Noise { specs, scalars, seed }, Fault::OwnNoise) => {
            Data::Noise { specs: specs.clone(), scalars: scalars.clone(), seed: seed + 1 }
        }
        _ => data.clone(),
    }
}

impl Device for BrokenDevice {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.spec
    }

    fn upload(&mut self, data: &Data) -> Result<(), DeviceError> {
        if self.fault == Fault::KeepsOldData && self.data.is_some() && data.check().is_ok() {
            return Ok(());
        }
        self.inner.upload(&taken(data, self.fault))?;
        self.data = Some(data.clone());
        Ok(())
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        let mut program = program.clone();
        if self.fault == Fault::RunsOnNothing && self.data.is_none() {
            return Ok(());
        }
        if let (Fault::ForgetsResults, Some(data)) = (self.fault, &self.data) {
            // Its data come back with every other program, an element spoilt.
            let text = |p: &Program| format!("{:?}", p.steps.iter().map(listing).collect::<Vec<_>>());
            if self.latest.as_ref().is_some_and(|latest| text(latest) != text(&program)) {
                self.inner.upload(data)?;
                self.latest = Some(program);
                return Ok(());
            }
            self.latest = Some(program.clone());
        }
        match self.fault {
            Fault::Refuses if self.data.is_some() => return Err(DeviceError::Load("no".into())),
            Fault::ChangesSpec => self.spec = device_with(31),
            Fault::FillsBackwards if program.steps.len() == 3 => program.steps.swap(0, 1),
            Fault::NoWorkspace => {
                program.workspace = 0;
                program.steps.retain(|s| !matches!(s, Step::Fill { .. }));
            }
            Fault::AcceptsForeign => program.steps.retain(|s| !matches!(s, Step::Launch(_))),
            Fault::AcceptsAnyBuffers => program.buffers = None,
            Fault::AcceptsAnyScalars => program.scalars = None,
            Fault::FillsAnywhere if program.steps.len() == 1 => program.workspace += 1,
            Fault::NeverRuns if self.data.is_some() => return Ok(()),
            Fault::RunsTwice => self.inner.run(&program)?,
            Fault::FillsOnce => return self.launch_only(&program),
            // Those of the code: what was refused before it ran is still told.
            Fault::SwallowsErrors => {
                return match self.inner.run(&program) {
                    Err(DeviceError::Run(_)) if self.data.is_some() => Ok(()),
                    other => other,
                };
            }
            _ => {}
        }
        self.inner.run(&program)
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        let mut buffers = self.inner.read()?;
        if self.fault == Fault::SpoilsResult && !buffers[1].get_f64(0).is_nan() {
            buffers[1].set_f64(0, 7.0);
        }
        Ok(buffers)
    }

    fn time(&mut self, program: &Program, timing: &Timing) -> Result<Measurement, MeasureError> {
        self.inner.time(program, timing)
    }
}

/// What tells the code of one step from another's.
fn listing(step: &Step) -> Option<String> {
    match step {
        Step::Host(code) => code.listing(),
        _ => None,
    }
}

#[test]
fn every_fault_of_a_device_is_seen() {
    for (fault, check) in [
        (Fault::KeepsOldData, "data-read-back"),
        (Fault::AcceptsAnyShape, "other-shapes-refused"),
        (Fault::AcceptsAnyBuffers, "other-buffers-refused"),
        (Fault::AcceptsAnyScalars, "other-scalars-refused"),
        (Fault::ForgetsResults, "data-stay"),
        (Fault::SpoilsResult, "result-is-right"),
        (Fault::OwnNoise, "noise-is-seeded"),
        (Fault::RunsOnNothing, "data-are-needed"),
        (Fault::NeverRuns, "result-is-right"),
        (Fault::ChangesSpec, "spec-is-stable"),
        (Fault::Refuses, "runs"),
    ] {
        assert_breaks(testkit::device(&mut BrokenDevice::new(fault), &problem(500)), check);
    }
    assert_breaks(testkit::device(&mut host_device_with(device_with(64)), &problem(500)), "same-device");
}

#[test]
fn every_fault_of_a_host_device_is_seen() {
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
        assert_breaks(testkit::host_device(&mut BrokenDevice::new(fault)), check);
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
        assert_breaks(measure(&mut broken, &problem(500)), check);
    }
}
