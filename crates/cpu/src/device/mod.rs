//! The host CPU as a device.

mod caches;
mod host_gemm;
mod peak;
mod spec;
mod tiles;

pub(crate) use host_gemm::{GemmCheck, HostGemm, scale};
pub(crate) use spec::{generates, vec_max};
pub(crate) use tiles::has_tiles;

use std::sync::Arc;
use std::time::Instant;
use tilewright_core::buffer::Buffers;
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceSpec, HostDevice};
use tilewright_core::measurement::{Measurement, Timing};
use tilewright_core::problem::MeasureError;
use tilewright_core::program::{DeviceError, Program};

/// The host CPU with a number of threads. The number is a fact of the device: plans and profiles for one thread are not
/// those for two.
pub struct CpuDevice {
    inner: HostDevice<Instant>,
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
        Ok(Self { inner: HostDevice::new(Arc::new(spec::host(threads)), Instant::now()) })
    }

    /// The same with peak rates measured (about a quarter of a second, once per process and number of threads):
    /// `peak_flops_f32`, `peak_flops_f64` in flop/s and `l1_bytes_per_s` ... `memory_bytes_per_s` in byte/s.
    #[must_use]
    pub fn with_peaks(self) -> Self {
        let mut spec = (**self.spec()).clone();
        spec.measured = peak::measured(&spec);
        Self { inner: HostDevice::new(Arc::new(spec), Instant::now()) }
    }

    /// Its facts.
    pub fn spec(&self) -> &Arc<DeviceSpec> {
        self.inner.spec()
    }
}

impl Device for CpuDevice {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.inner.spec()
    }

    fn upload(&mut self, data: &Data) -> Result<(), DeviceError> {
        self.inner.upload(data)
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        self.inner.run(program)
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        self.inner.read()
    }

    fn time(&mut self, program: &Program, timing: &Timing) -> Result<Measurement, MeasureError> {
        self.inner.time(program, timing)
    }
}
