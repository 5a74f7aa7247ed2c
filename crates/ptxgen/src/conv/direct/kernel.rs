//! The direct convolution in PTX as a tunable kernel.

use super::features;
use super::plan::DirectPlan;
use super::space::{self, Description, MOST_CHANNELS, MOST_COLUMNS};
use crate::target::Target;
use tilewright_core::computation::InputError;
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::conv::{Conv, ConvInput, Direction};

/// The kernel `conv.direct`.
#[derive(Debug, Default)]
pub struct DirectConv(());

impl DirectConv {
    /// The kernel with its space.
    pub fn new() -> Self {
        Self(())
    }
}

impl Kernel for DirectConv {
    type Of = Conv;
    type Plan = DirectPlan;

    fn id(&self) -> KernelId {
        KernelId::new("conv.direct.1")
    }

    fn computation(&self) -> &Conv {
        &Conv
    }

    fn space(&self) -> &ParamSpace {
        &Description::get().space
    }

    fn accepts(&self, input: &ConvInput) -> Result<(), InputError> {
        input.only(&ConvInput::PLAIN)?;
        let (field, summed) = match input.direction {
            Direction::Forward => ("c", input.c / input.groups),
            Direction::Data => ("k", input.k / input.groups),
            Direction::Filter => return Err(InputError::new("direction", "there is code for forward and data only")),
        };
        if summed > MOST_CHANNELS {
            let message =
                format!("{summed} in a group are summed over; there is code for at most {MOST_CHANNELS} only");
            return Err(InputError::new(field, message));
        }
        if input.s > MOST_COLUMNS {
            let message = format!("there is code for filters of at most {MOST_COLUMNS} columns only");
            return Err(InputError::new("s", message));
        }
        Ok(())
    }

    fn symbols(&self, device: &DeviceSpec, input: &ConvInput) -> Symbols {
        space::symbols(device, input)
    }

    fn plan(&self, device: &DeviceSpec, input: &ConvInput, at: &Legal<'_>) -> DirectPlan {
        let plan = DirectPlan::new(Target::of(device), input, at);
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        plan.unwrap_or_else(|| unreachable!("{at:?} is no point of conv.direct, or not legal there"))
    }

    fn generate(&self, plan: &DirectPlan) -> Program {
        plan.program()
    }

    fn feature_names(&self) -> Vec<Feature> {
        features::names()
    }

    fn features(&self, _: &DeviceSpec, _: &ConvInput, at: &Values<'_>, out: &mut Vec<f32>) {
        features::features(at, out);
    }

    fn default_point(&self, _: &DeviceSpec, _: &ConvInput, space: &BoundSpace) -> Option<Point> {
        space::default_point(space)
    }
}
