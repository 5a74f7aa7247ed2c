//! Winograd's convolution on the host CPU as a tunable kernel.

use super::blueprint::Blueprint;
use super::host::HostWinograd;
use super::space::{self, Config, description};
use crate::scalar::Float;
use std::sync::Arc;
use tilewright_core::buffer::Filling;
use tilewright_core::computation::InputError;
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::conv::{Conv, ConvInput, Correlation, winograd};

/// The kernel `conv.cpu-winograd`.
#[derive(Debug, Default)]
pub struct CpuWinograd(());

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct WinogradPlan {
    pub(super) input: ConvInput,
    /// None where there is no output.
    pub(super) blueprint: Option<Blueprint>,
}

impl CpuWinograd {
    /// The kernel with its space.
    pub fn new() -> Self {
        Self(())
    }
}

impl Kernel for CpuWinograd {
    type Of = Conv;
    type Plan = WinogradPlan;

    fn id(&self) -> KernelId {
        KernelId::new("conv.cpu-winograd.2")
    }

    fn computation(&self) -> &Conv {
        &Conv
    }

    fn space(&self) -> &ParamSpace {
        &description().space
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

    fn plan(&self, _: &DeviceSpec, input: &ConvInput, at: &Legal<'_>) -> WinogradPlan {
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        let config = Config::of(at).unwrap_or_else(|| unreachable!("{at:?} is no legal point of conv.cpu-winograd"));
        let all = Correlation::all(input).into_iter().next().filter(|of| of.images.count * of.positions() > 0);
        let blueprint = all.map(|of| Blueprint::new(of, config, Float::of(input.dtype())));
        WinogradPlan { input: input.clone(), blueprint }
    }

    fn generate(&self, plan: &WinogradPlan) -> Program {
        Program::host(Arc::new(HostWinograd::new(plan)), 0)
    }

    fn feature_names(&self) -> Vec<Feature> {
        description().feature_names()
    }

    fn features(&self, _: &DeviceSpec, _: &ConvInput, at: &Values<'_>, out: &mut Vec<f32>) {
        description().features(at, out);
    }

    fn default_point(&self, _: &DeviceSpec, _: &ConvInput, space: &BoundSpace) -> Option<Point> {
        space::default_point(space)
    }
}
