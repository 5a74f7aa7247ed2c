//! Convolution of several channels (ISAAC, section 3.3), and both of its gradients.
//!
//! `y[n, k, p, q] = sum over c, r, s of x[n, c, p * stride - pad + r * dilation, ...] * f[k, c, r, s]`, what lies outside of an
//! image being zero. Not mirrored: what the field calls convolution is a correlation. With `groups`, outputs of a group see the
//! channels of that group only.
//!
//! The directions are one computation on the same three tensors: an input has the sizes of the forward pass whatever its
//! direction, and the direction says which tensor is written.

mod awkward;
mod correlation;
mod draw;
mod epilogue;
mod input;
mod product;
mod reference;
mod tensor;
pub mod winograd;
mod workload;

pub use crate::activation::Activation;
pub use correlation::{Correlation, Dim, Group, Strides, Tap};
pub use epilogue::Epilogue;
pub use input::{ConvInput, Direction, Layout};
pub use tensor::Tensors;
pub use workload::{BIAS, F, RESIDUAL, X, Y};

use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, Expected, Filling, Verdict, Workload};
use tilewright_core::computation::{Computation, InputError, InputLimits, Work};
use tilewright_core::data::Data;
use tilewright_core::dtype::DType;
use tilewright_core::feature::Feature;
use tilewright_core::id::ComputationId;
use tilewright_core::program::{DeviceError, ScalarSpec};
use tilewright_core::space::Config;

/// The computation `conv`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conv;

/// Of each kind one: speech, vision early and late, deep and narrow, pointwise, strided, depthwise.
const REPRESENTATIVE: [&str; 7] = [
    "n=4,c=1,h=161,w=700,k=32,r=5,s=20,stride=2",
    "n=1,c=64,h=56,w=56,k=64,r=3,s=3,pad=1",
    "n=8,c=128,h=27,w=27,k=128,r=3,s=3,pad=1",
    "n=8,c=512,h=14,w=14,k=48,r=5,s=5,pad=2",
    "n=8,c=512,h=7,w=7,k=2048,r=1,s=1",
    "n=4,c=64,h=57,w=57,k=96,r=3,s=3,stride=2",
    "n=4,c=96,h=28,w=28,k=96,r=3,s=3,pad=1,groups=96",
];

impl Computation for Conv {
    type Input = ConvInput;

    fn id(&self) -> ComputationId {
        ComputationId::new("conv")
    }

    fn parse(&self, fields: &Config) -> Result<ConvInput, InputError> {
        ConvInput::parse(fields)
    }

    fn fields(&self, input: &ConvInput) -> Config {
        input.fields()
    }

    /// Taps that fall outside of an image are counted, as everybody does.
    fn work(&self, input: &ConvInput) -> Work {
        let [p, q] = input.output();
        let outputs = (input.n * input.k * p * q) as f64;
        let taps = (input.c / input.groups * input.r * input.s) as f64;
        let bytes = |spec: &BufferSpec| spec.bytes() as f64;
        Work { flops: 2.0 * outputs * taps, bytes: workload::specs(input).iter().map(bytes).sum() }
    }

    fn workload(&self, input: &ConvInput, filling: Filling, seed: u64) -> Workload {
        workload::make(input, filling, seed)
    }

    fn data(&self, input: &ConvInput, seed: u64) -> Data {
        Data::Noise { specs: workload::specs(input), scalars: Vec::new(), seed }
    }

    fn buffers(&self, input: &ConvInput) -> Vec<BufferSpec> {
        workload::specs(input)
    }

    fn scalars(&self, _: &ConvInput) -> Vec<ScalarSpec> {
        Vec::new()
    }

    fn reference(&self, input: &ConvInput, before: &Buffers, _: &[f64]) -> Result<Expected, DeviceError> {
        Ok(reference::compute(input, before))
    }

    fn compare(
        &self,
        input: &ConvInput,
        before: &Buffers,
        _: &[f64],
        after: &[Buffer],
    ) -> Result<Verdict, DeviceError> {
        Ok(reference::compare(input, before, after))
    }

    fn feature_names(&self) -> Vec<Feature> {
        let sizes = ["n", "c", "h", "w", "k", "r", "s", "p", "q", "groups", "stride", "npq", "crs"].map(Feature::size);
        let flags = ["f64", "half", "nhwc", "data", "filter", "padded", "strided", "dilated", "pointwise", "depthwise"];
        sizes.into_iter().chain(flags.map(Feature::flag)).collect()
    }

    fn features(&self, input: &ConvInput, out: &mut Vec<f32>) {
        let [p, q] = input.output();
        let crs = input.c / input.groups * input.r * input.s;
        let sizes = [input.n, input.c, input.h, input.w, input.k, input.r, input.s, p, q, input.groups];
        out.extend(
            sizes.into_iter().chain([input.stride[0] * input.stride[1], input.n * p * q, crs]).map(|x| x as f32),
        );
        let flags = [
            input.dtype() == DType::F64,
            input.dtype().size() == 2,
            input.layout == Layout::Nhwc,
            input.direction == Direction::Data,
            input.direction == Direction::Filter,
            input.pad != [0, 0],
            input.stride != [1, 1],
            input.dilation != [1, 1],
            input.is_pointwise(),
            input.is_depthwise(),
        ];
        out.extend(flags.map(|b| f32::from(u8::from(b))));
    }

    fn draw(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<ConvInput, InputError> {
        draw::draw(fixed, limits, uniform)
    }

    fn draw_awkward(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<ConvInput, InputError> {
        awkward::draw(fixed, limits, uniform)
    }

    /// The element types that all kernels have.
    fn classes(&self) -> Vec<Config> {
        [DType::F32, DType::F64].map(|dtype| Config(vec![("dtype".into(), dtype.name().into())])).into()
    }

    fn representative(&self, fixed: &Config) -> Result<Vec<Config>, InputError> {
        let one = |text: &&str| {
            let shown = Config::parse(text).map_err(|e| InputError::new("fields", e.to_string()))?;
            let kept = shown.0.into_iter().filter(|(name, _)| fixed.get(name).is_none());
            Ok(Config(kept.chain(fixed.0.iter().cloned()).collect()))
        };
        REPRESENTATIVE.iter().map(one).collect()
    }

    fn aspects(&self, input: &ConvInput) -> Vec<String> {
        awkward::aspects(input)
    }
}
