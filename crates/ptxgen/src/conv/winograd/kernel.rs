//! Winograd's convolution in PTX as a tunable kernel.

use super::features;
use super::plan::WinogradPlan;
use super::space::{self, Description};
use crate::target::Target;
use tilewright_core::buffer::Filling;
use tilewright_core::computation::InputError;
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::conv::{Conv, ConvInput, winograd};

/// The kernel `conv.winograd`.
#[derive(Debug, Default)]
pub struct WinogradConv(());

impl WinogradConv {
    /// The kernel with its space.
    pub fn new() -> Self {
        Self(())
    }
}

impl Kernel for WinogradConv {
    type Of = Conv;
    type Plan = WinogradPlan;

    fn id(&self) -> KernelId {
        KernelId::new("conv.winograd.1")
    }

    fn computation(&self) -> &Conv {
        &Conv
    }

    fn space(&self) -> &ParamSpace {
        &Description::get().space
    }

    fn accepts(&self, input: &ConvInput) -> Result<(), InputError> {
        input.only(&ConvInput::PLAIN)?;
        winograd::accepts(input)
    }

    /// Tiles mix neighbours: what is not finite spreads over its tile, and integers are divided by 6.
    fn fillings(&self) -> &'static [Filling] {
        &[Filling::Real]
    }

    fn symbols(&self, device: &DeviceSpec, input: &ConvInput) -> Symbols {
        space::symbols(device, input)
    }

    fn plan(&self, device: &DeviceSpec, input: &ConvInput, at: &Legal<'_>) -> WinogradPlan {
        let plan = WinogradPlan::new(Target::of(device), input, at);
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        plan.unwrap_or_else(|| unreachable!("{at:?} is no point of conv.winograd, or not legal there"))
    }

    fn generate(&self, plan: &WinogradPlan) -> Program {
        plan.program()
    }

    fn feature_names(&self) -> Vec<Feature> {
        features::names()
    }

    fn features(&self, _: &DeviceSpec, _: &ConvInput, at: &Values<'_>, out: &mut Vec<f32>) {
        features::append(at, out);
    }

    fn default_point(&self, _: &DeviceSpec, _: &ConvInput, space: &BoundSpace) -> Option<Point> {
        space::default_point(space)
    }
}
