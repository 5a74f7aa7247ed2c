//! Convolution in PTX as a tunable kernel.

use super::plan::ConvPlan;
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
use tilewright_ops::conv::{Conv, ConvInput};

/// What there is code for: operands of 16 bits are summed in binary32.
const TYPES: [ElementTypes; 6] = [
    ElementTypes::all(DType::F32),
    ElementTypes::all(DType::F64),
    half(DType::F16, DType::F16),
    half(DType::F16, DType::F32),
    half(DType::Bf16, DType::Bf16),
    half(DType::Bf16, DType::F32),
];

const fn half(operand: DType, output: DType) -> ElementTypes {
    ElementTypes { operand, accumulator: DType::F32, output }
}

/// The kernel `conv.simt`.
#[derive(Debug, Default)]
pub struct SimtConv(());

impl SimtConv {
    /// The kernel with its space.
    pub fn new() -> Self {
        Self(())
    }
}

impl Kernel for SimtConv {
    type Of = Conv;
    type Plan = ConvPlan;

    fn id(&self) -> KernelId {
        KernelId::new("conv.simt.1")
    }

    fn computation(&self) -> &Conv {
        &Conv
    }

    fn space(&self) -> &ParamSpace {
        &Description::get().space
    }

    fn accepts(&self, input: &ConvInput) -> Result<(), InputError> {
        input.only(&TYPES)
    }

    fn symbols(&self, device: &DeviceSpec, input: &ConvInput) -> Symbols {
        facts::symbols(device, input)
    }

    fn plan(&self, device: &DeviceSpec, input: &ConvInput, at: &Legal<'_>) -> ConvPlan {
        let plan = ConvPlan::new(Target::of(device), input, at);
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        plan.unwrap_or_else(|| unreachable!("{at:?} is no point of conv.simt, or not legal there"))
    }

    fn generate(&self, plan: &ConvPlan) -> Program {
        plan.program()
    }

    fn counts(&self, plan: &ConvPlan) -> Option<Counts> {
        plan.count().ok()
    }

    fn feature_names(&self) -> Vec<Feature> {
        features::names()
    }

    fn features(&self, _: &DeviceSpec, _: &ConvInput, at: &Values<'_>, out: &mut Vec<f32>) {
        features::features(at, out);
    }

    fn default_point(&self, _: &DeviceSpec, _: &ConvInput, space: &BoundSpace) -> Option<Point> {
        default::default_point(space)
    }
}
