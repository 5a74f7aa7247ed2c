//! Convolution in PTX as a tunable kernel.

use super::plan::ConvPlan;
use super::space::Description;
use super::{default, facts, features};
use crate::target::Target;
use tilewright_core::computation::InputError;
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::conv::{Conv, ConvInput};

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
        let types = input.types;
        let plain = |dtype| types.operand == dtype && types.accumulator == dtype && types.output == dtype;
        if plain(DType::F32) || plain(DType::F64) {
            return Ok(());
        }
        let field = match (types.operand, types.accumulator == types.operand) {
            (DType::F32 | DType::F64, true) => "out",
            (DType::F32 | DType::F64, false) => "acc",
            _ => "dtype",
        };
        Err(InputError::new(field, "conv.simt has one element type throughout: f32 or f64"))
    }

    fn symbols(&self, device: &DeviceSpec, input: &ConvInput) -> Symbols {
        facts::symbols(device, input)
    }

    fn plan(&self, device: &DeviceSpec, input: &ConvInput, at: &Legal<'_>) -> ConvPlan {
        // The rule `target` lets no older device pass.
        let target = device.fact("sm").and_then(Target::of_sm).unwrap_or(Target::OLDEST);
        let plan = ConvPlan::new(target, input, at);
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        plan.unwrap_or_else(|| unreachable!("{at:?} is no point of conv.simt, or not legal there"))
    }

    fn generate(&self, plan: &ConvPlan) -> Program {
        plan.program()
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
