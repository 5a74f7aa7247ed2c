//! Convolution on the host CPU as a tunable kernel.

use super::blueprint::Blueprint;
use super::config::ConvConfig;
use super::host::HostConv;
use super::space::{self, Description};
use super::{default, features};
use crate::scalar::Float;
use std::sync::Arc;
use tilewright_core::computation::InputError;
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::conv::Correlation;
use tilewright_ops::conv::{Conv, ConvInput};

/// The kernel `conv.cpu`.
#[derive(Debug, Default)]
pub struct CpuConv(());

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct ConvPlan {
    pub(crate) input: ConvInput,
    /// One for each correlation that sums anything.
    pub(crate) blueprints: Vec<Blueprint>,
    /// The others: their results are 0, before the epilogue.
    pub(crate) empty: Vec<Correlation>,
}

impl CpuConv {
    /// The kernel with its space.
    pub fn new() -> Self {
        Self(())
    }
}

impl Kernel for CpuConv {
    type Of = Conv;
    type Plan = ConvPlan;

    fn id(&self) -> KernelId {
        KernelId::new("conv.cpu.2")
    }

    fn computation(&self) -> &Conv {
        &Conv
    }

    fn space(&self) -> &ParamSpace {
        &Description::get().space
    }

    fn accepts(&self, input: &ConvInput) -> Result<(), InputError> {
        input.only(&ConvInput::PLAIN)
    }

    fn symbols(&self, device: &DeviceSpec, input: &ConvInput) -> Symbols {
        space::symbols(device, input)
    }

    fn derivations(&self) -> Vec<(&'static str, String)> {
        space::derivations()
    }

    fn plan(&self, _: &DeviceSpec, input: &ConvInput, at: &Legal<'_>) -> ConvPlan {
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        let config = ConvConfig::of(at).unwrap_or_else(|| unreachable!("{at:?} is no legal point of conv.cpu"));
        ConvPlan::new(input, &config)
    }

    fn generate(&self, plan: &ConvPlan) -> Program {
        Program::host(Arc::new(HostConv::new(plan)), 0)
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

impl ConvPlan {
    fn new(input: &ConvInput, config: &ConvConfig) -> Self {
        let float = Float::of(input.dtype());
        let there = |of: &Correlation| of.images.count * of.positions() * of.outs.count > 0;
        let all = Correlation::all(input).into_iter().filter(there);
        let (sums, empty): (Vec<_>, Vec<_>) = all.partition(|of| of.depth() > 0);
        let blueprints = sums.into_iter().map(|of| Blueprint::new(of, config.clone(), float)).collect();
        Self { input: input.clone(), blueprints, empty }
    }
}
