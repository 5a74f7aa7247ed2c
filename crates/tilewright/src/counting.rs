//! Counts of described kernels, by emulating a part of their blocks.

use crate::device::compilers;
use std::sync::{Arc, Mutex, PoisonError};
use tilewright_compile::Compiling;
use tilewright_core::buffer::Workload;
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceSpec};
use tilewright_core::operations::Operations;
use tilewright_core::program::Program;
use tilewright_emulator::{EmulatorDevice, Log, properties};
use tilewright_user::Counter;

/// Thread instructions that are emulated of each launch: some blocks of most kernels, and a few milliseconds.
const SAMPLE: u64 = 1 << 20;

/// Runs a sample of the blocks of every launch on an emulated device with the facts of the real one, and counts for all what those did.
///
/// Sources are compiled for it, as they would be before they are timed; what was compiled is kept.
#[derive(Default)]
pub struct ByEmulator {
    /// Those that nobody uses, with data in their memory.
    devices: Mutex<Vec<Emulated>>,
}

struct Emulated {
    device: Compiling<EmulatorDevice>,
    data: Arc<Workload>,
    log: Log,
}

impl Emulated {
    fn new(spec: &DeviceSpec, data: &Arc<Workload>) -> Option<Self> {
        let device = EmulatorDevice::new(Arc::new(spec.clone())).ok()?.counting(SAMPLE, 0);
        let log = device.log();
        let mut device = Compiling::new(device, compilers());
        device.upload(&Data::Given(data.clone())).ok()?;
        Some(Self { device, data: data.clone(), log })
    }
}

impl ByEmulator {
    /// One that holds the data.
    fn take(&self, data: &Arc<Workload>) -> Option<Emulated> {
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        // Data of another input are not asked for again.
        devices.retain(|held| Arc::ptr_eq(&held.data, data));
        devices.pop()
    }
}

impl Counter for ByEmulator {
    fn count(&self, spec: &DeviceSpec, program: &Program, data: &Arc<Workload>) -> Option<Operations> {
        let mut emulated = self.take(data).or_else(|| Emulated::new(spec, data))?;
        emulated.log.take();
        let ran = emulated.device.run(&program.clone().on(data.specs.clone()));
        let reports = emulated.log.take();
        self.devices.lock().unwrap_or_else(PoisonError::into_inner).push(emulated);
        ran.ok()?;
        let named = properties(&reports).into_iter().map(|(property, n)| (property.to_string().into(), n as f64));
        Some(Operations { phases: vec![named.collect()] })
    }
}
