//! The kernel.

use super::driver::Blueprint;
use super::space::{self, Config, description};
use crate::exec::parts::HostParts;
use std::sync::Arc;
use tilewright_core::computation::InputError;
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::gemm::{Gemm, GemmInput};

/// The kernel `gemm.cpu-amx`.
#[derive(Debug, Default)]
pub struct CpuAmx(());

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct AmxPlan {
    pub(super) blueprint: Blueprint,
}

/// What it computes: sums of bfloat16 have 32 bits, also where fewer are asked for.
pub(super) const TYPES: [ElementTypes; 4] = [
    ElementTypes { operand: DType::Bf16, accumulator: DType::F32, output: DType::F32 },
    ElementTypes { operand: DType::Bf16, accumulator: DType::F32, output: DType::Bf16 },
    ElementTypes::all(DType::Bf16),
    ElementTypes::of(DType::I8),
];

/// Bytes of vectors that every host with tiles has.
const VEC: usize = 64;

impl CpuAmx {
    /// The kernel with its space.
    pub fn new() -> Self {
        Self(())
    }
}

/// Whether a device has tiles for these operands.
fn has_tiles(device: &DeviceSpec, operand: DType) -> bool {
    device.fact(if operand == DType::I8 { "amx_int8" } else { "amx_bf16" }) == Some(1)
}

impl Kernel for CpuAmx {
    type Of = Gemm;
    type Plan = AmxPlan;

    fn id(&self) -> KernelId {
        KernelId::new("gemm.cpu-amx.2")
    }

    fn computation(&self) -> &Gemm {
        &Gemm
    }

    fn space(&self) -> &ParamSpace {
        &description().space
    }

    /// Single products of bfloat16 and of 8-bit integers.
    fn accepts(&self, input: &GemmInput) -> Result<(), InputError> {
        input.only(&TYPES)?;
        if input.batch.count > 1 {
            let message = format!("{} products at once: there is code for one", input.batch.count);
            return Err(InputError::new("batch", message));
        }
        Ok(())
    }

    fn symbols(&self, device: &DeviceSpec, input: &GemmInput) -> Symbols {
        let mut symbols = input.symbols(device);
        symbols.set("amx", has_tiles(device, input.dtype()));
        symbols
    }

    fn derivations(&self) -> Vec<(&'static str, String)> {
        GemmInput::derivations()
    }

    fn plan(&self, _: &DeviceSpec, input: &GemmInput, at: &Legal<'_>) -> AmxPlan {
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        let config = Config::of(at).unwrap_or_else(|| unreachable!("{at:?} is no legal point of gemm.cpu-amx"));
        AmxPlan { blueprint: Blueprint::new(input.clone(), config) }
    }

    fn generate(&self, plan: &AmxPlan) -> Program {
        Program::host(Arc::new(HostParts::new(&plan.blueprint.input, VEC, plan.blueprint.clone())), 0)
    }

    fn feature_names(&self) -> Vec<Feature> {
        description().feature_names()
    }

    fn features(&self, _: &DeviceSpec, _: &GemmInput, at: &Values<'_>, out: &mut Vec<f32>) {
        description().features(at, out);
    }

    /// Where there are tiles they multiply several times as fast as vectors do.
    fn suits(&self, device: &DeviceSpec, input: &GemmInput) -> f64 {
        if has_tiles(device, input.dtype()) { 2.0 } else { 0.0 }
    }

    fn default_point(&self, _: &DeviceSpec, _: &GemmInput, space: &BoundSpace) -> Option<Point> {
        space::default_point(space)
    }
}
