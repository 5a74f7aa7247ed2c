//! The kernel, and its plans as code that the host runs.

use super::super::driver::Call;
use super::super::host::{finish_empty, operands};
use super::blueprint::Blueprint;
use super::driver::run;
use super::space::{self, Config, description};
use crate::device::vec_max;
use crate::exec::scratch;
use crate::scalar::Float;
use std::sync::Arc;
use tilewright_core::buffer::BufferSpec;
use tilewright_core::computation::{Computation, InputError};
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::{DeviceError, HostArgs, HostCode, Program, check_buffers};
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::conv::{Conv, ConvInput, Correlation, Direction, Layout};

/// The kernel `conv.cpu-depthwise`.
#[derive(Debug, Default)]
pub struct CpuDepthwise(());

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct DepthwisePlan {
    input: ConvInput,
    blueprints: Vec<Blueprint>,
    /// Correlations that sum nothing.
    empty: Vec<Correlation>,
}

impl CpuDepthwise {
    /// The kernel with its space.
    pub fn new() -> Self {
        Self(())
    }
}

impl Kernel for CpuDepthwise {
    type Of = Conv;
    type Plan = DepthwisePlan;

    fn id(&self) -> KernelId {
        KernelId::new("conv.cpu-depthwise.1")
    }

    fn computation(&self) -> &Conv {
        &Conv
    }

    fn space(&self) -> &ParamSpace {
        &description().space
    }

    fn accepts(&self, input: &ConvInput) -> Result<(), InputError> {
        input.only(&ConvInput::PLAIN)?;
        let only = |field: &str, what: &str| Err(InputError::new(field, format!("there is code for {what} only")));
        match input {
            ConvInput { direction: Direction::Filter, .. } => only("direction", "forward and data"),
            ConvInput { c, k, groups, .. } if (c, k) != (groups, groups) => {
                only("groups", "as many groups as channels and as output channels")
            }
            _ => Ok(()),
        }
    }

    fn symbols(&self, device: &DeviceSpec, input: &ConvInput) -> Symbols {
        space::symbols(device, input)
    }

    fn plan(&self, _: &DeviceSpec, input: &ConvInput, at: &Legal<'_>) -> DepthwisePlan {
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        let config = Config::of(at).unwrap_or_else(|| unreachable!("{at:?} is no legal point of conv.cpu-depthwise"));
        let all = Correlation::all(input).into_iter().filter(|of| of.images.count * of.positions() > 0);
        let (sums, empty): (Vec<_>, Vec<_>) = all.partition(|of| of.depth() > 0);
        let (float, channels_first) = (Float::of(input.dtype()), input.layout == Layout::Nhwc);
        let blueprint = |of| Blueprint::new(of, config.clone(), float, channels_first);
        DepthwisePlan { input: input.clone(), blueprints: sums.into_iter().map(blueprint).collect(), empty }
    }

    fn generate(&self, plan: &DepthwisePlan) -> Program {
        let code = HostDepthwise { buffers: Conv.buffers(&plan.input), plan: plan.clone() };
        Program::host(Arc::new(code), 0)
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

/// A plan, ready to be called.
struct HostDepthwise {
    buffers: Vec<BufferSpec>,
    plan: DepthwisePlan,
}

impl HostCode for HostDepthwise {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        check_buffers(&self.buffers, args.buffers)?;
        let DepthwisePlan { input, blueprints, empty } = &self.plan;
        let vec = blueprints.iter().map(|b| b.config.vec).max().unwrap_or(0);
        if vec as i64 > vec_max() {
            let feature = format!("vectors of {vec} bytes");
            return Err(DeviceError::Unsupported { device: "cpu".into(), feature });
        }
        empty.iter().for_each(|of| finish_empty(input, of, args.buffers));
        let bytes = blueprints.iter().map(Blueprint::workspace).max().unwrap_or(0);
        scratch::with(bytes, |workspace| {
            let (gathered, filter, result, finish) = operands(input, args.buffers);
            let call = Call { gathered, filter, result, workspace, finish };
            for blueprint in blueprints {
                // SAFETY: the lengths of the tensors, that the result may be written, and that the host has the vectors were
                // established above; tensors are aligned as their elements are; the result is borrowed mutably for the whole
                // call, and the scratch memory is this call's.
                unsafe { run(blueprint, &call) };
            }
        })
        .map_err(|e| DeviceError::Run(format!("{bytes} bytes for filters and rows: {e}")))
    }
}
