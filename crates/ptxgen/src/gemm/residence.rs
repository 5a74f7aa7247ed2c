//! What a multiprocessor holds of a product at a time.

use super::plan::GemmPlan;
use super::registers;
use crate::simt::Load;
use tilewright_core::device::DeviceSpec;

/// Blocks that run at the same time, and what they have requested of memory: the mean over all multiprocessors of a device, the last
/// round of blocks aside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residence {
    /// Blocks of a multiprocessor.
    pub blocks: f64,
    /// Threads of a multiprocessor.
    pub threads: f64,
    /// Bytes of A and B on their way to a multiprocessor.
    pub bytes: f64,
}

impl GemmPlan {
    /// What a multiprocessor of a device holds of the product, if a thread uses as many registers as predicted. A fact that the device
    /// does not have limits nothing.
    pub fn residence(&self, device: &DeviceSpec) -> Residence {
        let bp = self.blueprint();
        let fact = |name: &str| device.fact(name).unwrap_or(i64::MAX);
        let (threads, shared) = (i64::from(bp.threads), i64::from(bp.shared_bytes.max(1)));
        let limits = [
            i64::from(registers::blocks_of(
                fact("registers_per_sm").try_into().unwrap_or(u32::MAX),
                bp.registers(),
                bp.threads,
            )),
            fact("shared_per_sm") / shared,
            fact("threads_per_sm") / threads,
            fact("blocks_per_sm"),
        ];
        let most = limits.into_iter().min().unwrap_or(1).max(1) as f64;
        let grid: f64 = self.grid().map(f64::from).iter().product();
        let multiprocessors = device.fact("multiprocessors").unwrap_or(1).max(1) as f64;
        let blocks = most.min(grid / multiprocessors);
        let config = &bp.config;
        let stage = f64::from((config.m_l + config.n_l) * config.u * bp.arithmetic.bytes());
        // Through registers, or straight there, one stage is ahead of the one that is multiplied.
        let ahead = if config.load == Load::Async { f64::from(config.stages - 1) } else { 1.0 };
        Residence { blocks, threads: blocks * f64::from(bp.threads), bytes: blocks * stage * ahead }
    }
}
