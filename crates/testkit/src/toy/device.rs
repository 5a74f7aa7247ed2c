//! A device that runs host code, and one that times by formula.

use super::cost::cost_s;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tilewright_core::device::{Device, DeviceKind, DeviceSpec, HostDevice};
use tilewright_core::measurement::{Failure, FailureKind, Measurement, Timing};
use tilewright_core::problem::{Measure, MeasureError, Problem};
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

/// The toy device as one that runs programs of host code.
pub fn host_device() -> HostDevice<Instant> {
    host_device_with(device())
}

/// A device of host code with these facts.
pub fn host_device_with(spec: Arc<DeviceSpec>) -> HostDevice<Instant> {
    HostDevice::new(spec, Instant::now())
}

/// Times points of the toy kernel by [`cost_s`]: exact, repeatable and instant.
pub struct AnalyticMeasure {
    spec: Arc<DeviceSpec>,
    results: Option<Box<dyn Device>>,
    fails: fn(&[u16]) -> bool,
    /// How many points were timed, failed ones included.
    pub calls: u64,
}

impl AnalyticMeasure {
    /// A device on which every legal point runs.
    pub fn new(spec: Arc<DeviceSpec>) -> Self {
        Self { spec, results: None, fails: |_| false, calls: 0 }
    }

    /// The same, with a device that results are checked on.
    #[must_use]
    pub fn checked_on(mut self, device: impl Device + 'static) -> Self {
        self.results = Some(Box::new(device));
        self
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

    fn device(&mut self) -> Option<&mut dyn Device> {
        self.results.as_mut().map(|device| device as &mut dyn Device)
    }
}
