//! GEMM in PTX as a tunable kernel.

use super::plan::GemmPlan;
use super::space::Description;
use super::{default, facts, features};
use crate::target::Target;
use tilewright_core::computation::InputError;
use tilewright_core::counts::Counts;
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::gemm::{Gemm, GemmInput};

/// What there is code for: operands of 16 bits are summed in binary32, f16 in f16 too.
const TYPES: [ElementTypes; 10] = [
    ElementTypes::all(DType::F32),
    ElementTypes::all(DType::F64),
    half(DType::F16, DType::F16),
    half(DType::F16, DType::F32),
    ElementTypes::all(DType::F16),
    ElementTypes { operand: DType::F16, accumulator: DType::F16, output: DType::F32 },
    half(DType::Bf16, DType::Bf16),
    half(DType::Bf16, DType::F32),
    ElementTypes::all(DType::C32),
    ElementTypes::all(DType::C64),
];

const fn half(operand: DType, output: DType) -> ElementTypes {
    ElementTypes { operand, accumulator: DType::F32, output }
}

/// Refuses complex numbers that are aligned as their components: both are one access.
///
/// # Errors
/// The field `align`, and how many bytes it must be.
pub(crate) fn whole_numbers(input: &GemmInput) -> Result<(), InputError> {
    let least = input.types.operand.size();
    if input.dtype().is_complex() && input.align < least {
        let message =
            format!("{} is too little: numbers of {} are read whole, {least} bytes", input.align, input.dtype());
        return Err(InputError::new("align", message));
    }
    Ok(())
}

/// The kernel `gemm.simt`.
#[derive(Debug, Default)]
pub struct SimtGemm(());

impl SimtGemm {
    /// The kernel with its space.
    pub fn new() -> Self {
        Self(())
    }
}

impl Kernel for SimtGemm {
    type Of = Gemm;
    type Plan = GemmPlan;

    fn id(&self) -> KernelId {
        KernelId::new("gemm.simt.1")
    }

    fn computation(&self) -> &Gemm {
        &Gemm
    }

    fn space(&self) -> &ParamSpace {
        &Description::get().space
    }

    fn accepts(&self, input: &GemmInput) -> Result<(), InputError> {
        input.only_types(&TYPES)?;
        whole_numbers(input)
    }

    fn symbols(&self, device: &DeviceSpec, input: &GemmInput) -> Symbols {
        facts::symbols(device, input)
    }

    fn derivations(&self) -> Vec<(&'static str, String)> {
        facts::derivations()
    }

    fn plan(&self, device: &DeviceSpec, input: &GemmInput, at: &Legal<'_>) -> GemmPlan {
        let plan = GemmPlan::new(Target::of(device), input, &Description::get().names, at);
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        plan.unwrap_or_else(|| unreachable!("{at:?} is no point of gemm.simt, or not legal there"))
    }

    fn generate(&self, plan: &GemmPlan) -> Program {
        plan.program([0; 3])
    }

    fn counts(&self, plan: &GemmPlan) -> Option<Counts> {
        plan.count().ok()
    }

    fn feature_names(&self) -> Vec<Feature> {
        features::names()
    }

    fn features(&self, _: &DeviceSpec, input: &GemmInput, at: &Values<'_>, out: &mut Vec<f32>) {
        let sizes = [input.m as u32, input.n as u32];
        features::features(sizes, input.batch.count, &Description::get().names, at, out);
    }

    fn default_point(&self, _: &DeviceSpec, _: &GemmInput, space: &BoundSpace) -> Option<Point> {
        default::default_point(space)
    }
}
