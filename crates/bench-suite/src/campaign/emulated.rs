//! The emulator as a device that measures, for rehearsals. It does not time: it counts, and the counts make a cost.

use std::collections::BTreeMap;
use std::sync::Arc;
use tilewright_core::buffer::Buffers;
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceSpec};
use tilewright_core::measurement::{Failure, FailureKind, Measurement, Timing};
use tilewright_core::problem::MeasureError;
use tilewright_core::program::{DeviceError, Program};
use tilewright_emulator::{EmulatorDevice, Log};

/// Name of the cost among the metrics of a measurement.
pub const EMULATED_COST: &str = "emulated_cost";

/// Stands where a time would, so that nobody takes the cost for one.
pub const NO_TIME: f64 = f64::MIN_POSITIVE;

/// Cost of a memory transaction, in warp instructions.
const TRANSACTION: f64 = 2.0;

/// Cost of a launch, in warp instructions.
const LAUNCH: f64 = 500.0;

/// An emulated device that measures by counting warp instructions and memory transactions.
pub struct Emulated {
    device: EmulatorDevice,
    log: Log,
}

impl Emulated {
    /// Counts on this device.
    pub fn new(device: EmulatorDevice) -> Self {
        let log = device.log();
        Self { device, log }
    }

    /// The cost of everything that ran since the last call.
    fn cost(&self) -> f64 {
        let cost = |report: tilewright_emulator::Report| {
            let traffic = report.counts.traffic_by_class();
            let transactions: u64 = traffic.values().map(|t| t.transactions).sum();
            LAUNCH + report.counts.total().issued as f64 + TRANSACTION * transactions as f64
        };
        self.log.take().into_iter().map(cost).sum()
    }
}

impl Device for Emulated {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.device.spec()
    }

    fn upload(&mut self, data: &Data) -> Result<(), DeviceError> {
        self.device.upload(data)
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        let ran = self.device.run(program);
        self.log.take();
        // Findings are the program's; the emulator goes on.
        ran.map_err(|error| match error {
            DeviceError::Run(message) => DeviceError::Fault(message),
            other => other,
        })
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        self.device.read()
    }

    fn time(&mut self, program: &Program, _: &Timing) -> Result<Measurement, MeasureError> {
        self.log.take();
        if let Err(error) = self.device.run(program) {
            let kind = if matches!(error, DeviceError::Load(_)) { FailureKind::Compile } else { FailureKind::Launch };
            return Err(Failure { kind, message: error.to_string() }.into());
        }
        let metrics = BTreeMap::from([(EMULATED_COST.to_owned(), self.cost())]);
        Ok(Measurement { time_s: NO_TIME, repeats: 1, relative_error: 0.0, metrics })
    }
}
