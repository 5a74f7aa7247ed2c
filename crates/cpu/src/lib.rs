#![doc = include_str!("../README.md")]

mod amx;
mod axpy;
mod blueprint;
mod codegen;
mod config;
mod conv;
mod described;
mod device;
mod dot;
mod exec;
mod geometry;
mod kernel;
#[cfg(all(feature = "loops", target_arch = "x86_64"))]
mod loops;
mod scalar;
mod sets;
mod small;
mod split;

#[cfg(test)]
mod interpreter;
#[cfg(test)]
mod proofs;

pub use amx::{AmxPlan, CpuAmx};
pub use axpy::{AxpyPlan, CpuAxpy};
pub use conv::{ConvPlan, CpuConv, CpuDepthwise, CpuWinograd, DepthwisePlan, WinogradPlan};
pub use device::CpuDevice;
pub use dot::{CpuDot, DotPlan};
pub use kernel::{CpuGemm, GemmPlan};
#[cfg(all(feature = "loops", target_arch = "x86_64"))]
pub use loops::{HostLoops, LowerError, host_program};
pub use small::{CpuSmall, SmallPlan};

/// Bytes of a cache line: of a row as much is fetched, however short it is.
const LINE: usize = 64;
