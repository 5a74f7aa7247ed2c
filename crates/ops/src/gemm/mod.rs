//! GEMM: `C = activation(alpha * op(A) * op(B) + beta * C + bias)`, column-major as in BLAS.
//!
//! Operands are real or complex numbers of any precision, or 8-bit integers; an operand may be transposed or, where it is complex,
//! transposed and conjugated. Sums and results have types of their own. `alpha` and `beta` are real numbers.

mod accuracy;
mod awkward;
mod batch;
mod draw;
mod epilogue;
mod input;
mod layout;
mod reference;
mod workload;

pub use crate::activation::Activation;
pub use accuracy::Accuracy;
pub use batch::Batch;
pub use epilogue::{Bias, Epilogue};
pub use input::{GemmInput, ScalarClass};
pub use layout::Layout;
pub use workload::{A, ALPHA, B, BETA, BIAS, C};

use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, Expected, Filling, Verdict, Workload};
use tilewright_core::computation::{Computation, InputError, InputLimits, Work};
use tilewright_core::data::Data;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::feature::Feature;
use tilewright_core::id::ComputationId;
use tilewright_core::program::{DeviceError, ScalarSpec};
use tilewright_core::space::Config;

/// The computation `gemm`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gemm;

/// Square, tall, skinny, deep, flat and awkward: one of each kind that people have.
const REPRESENTATIVE: [(usize, usize, usize, Layout); 7] = [
    (768, 768, 768, Layout::Nn),
    (1200, 1200, 1200, Layout::Nt),
    (2000, 24, 2000, Layout::Nn),
    (2000, 24, 2000, Layout::Tn),
    (48, 48, 40_000, Layout::Nt),
    (1800, 1800, 40, Layout::Nt),
    (251, 509, 1021, Layout::Tt),
];

impl Computation for Gemm {
    type Input = GemmInput;

    fn id(&self) -> ComputationId {
        ComputationId::new("gemm")
    }

    fn parse(&self, fields: &Config) -> Result<GemmInput, InputError> {
        GemmInput::parse(fields)
    }

    fn fields(&self, input: &GemmInput) -> Config {
        input.fields()
    }

    fn work(&self, input: &GemmInput) -> Work {
        let (m, n, k) = (input.m as f64, input.n as f64, input.k as f64);
        let read_c = if input.beta == ScalarClass::Zero { 0.0 } else { m * n };
        let read_ab = if input.multiplies() { m * k + k * n } else { 0.0 };
        let products = f64::from(input.batch.count);
        let [read, _, written] = input.operand_types().map(|dtype| dtype.size() as f64);
        let flops = input.flops_of_one();
        Work {
            flops: products * if input.multiplies() { flops * m * n * k } else { flops / 2.0 * m * n },
            bytes: products * (read_ab * read + (read_c + m * n) * written) + input.bias_len() as f64 * written,
        }
    }

    fn workload(&self, input: &GemmInput, filling: Filling, seed: u64) -> Workload {
        workload::make(input, filling, seed)
    }

    fn data(&self, input: &GemmInput, seed: u64) -> Data {
        Data::Noise { specs: workload::specs(input), scalars: workload::scalars(input), seed }
    }

    fn buffers(&self, input: &GemmInput) -> Vec<BufferSpec> {
        workload::specs(input)
    }

    fn scalars(&self, input: &GemmInput) -> Vec<ScalarSpec> {
        vec![
            ScalarSpec { name: "alpha", class: input.alpha.values() },
            ScalarSpec { name: "beta", class: input.beta.values() },
        ]
    }

    fn reference(&self, input: &GemmInput, before: &Buffers, scalars: &[f64]) -> Result<Expected, DeviceError> {
        Ok(reference::compute(input, before, scalars))
    }

    fn compare(
        &self,
        input: &GemmInput,
        before: &Buffers,
        scalars: &[f64],
        after: &[Buffer],
    ) -> Result<Verdict, DeviceError> {
        Ok(reference::compare(input, before, scalars, after))
    }

    fn feature_names(&self) -> Vec<Feature> {
        // Bytes of an element tell all types apart with what is said of complex numbers and of the two of equal width.
        let sizes = ["m", "n", "k", "operand_bytes", "accumulator_bytes", "output_bytes"].map(Feature::size);
        let flags = [
            "complex",
            "bf16",
            "tf32",
            "a_transposed",
            "b_transposed",
            "lda_aliases",
            "ldb_aliases",
            "ldc_aliases",
            "beta_zero",
        ];
        sizes.into_iter().chain(flags.map(Feature::flag)).collect()
    }

    fn features(&self, input: &GemmInput, out: &mut Vec<f32>) {
        // Columns that lie a multiple of the page size apart share cache sets: what makes packing pay.
        let aliases = |ld: usize| (ld * input.dtype().size()).is_multiple_of(4096);
        let ElementTypes { operand, accumulator, output } = input.types;
        out.extend([input.m, input.n, input.k].map(|x| x as f32));
        out.extend([operand, accumulator, output].map(|of| of.size() as f32));
        let flags = [
            operand.is_complex(),
            operand == DType::Bf16,
            operand == DType::Tf32,
            input.layout.a_transposed(),
            input.layout.b_transposed(),
            aliases(input.lda),
            aliases(input.ldb),
            aliases(input.ldc),
            input.beta == ScalarClass::Zero,
        ];
        out.extend(flags.map(|b| f32::from(u8::from(b))));
    }

    fn draw(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<GemmInput, InputError> {
        draw::draw(fixed, limits, uniform)
    }

    fn draw_awkward(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<GemmInput, InputError> {
        awkward::draw(fixed, limits, uniform)
    }

    /// The element types that all kernels have.
    fn classes(&self) -> Vec<Config> {
        [DType::F32, DType::F64].map(|dtype| Config(vec![("dtype".into(), dtype.name().into())])).into()
    }

    fn representative(&self, fixed: &Config) -> Result<Vec<Config>, InputError> {
        let dtype = Accuracy::fixed(fixed).own_types().first().copied().unwrap_or(DType::F32);
        // A type that is not the usual one is said.
        let shown = |name: &String| {
            let is_said = ["m", "n", "k", "layout"].contains(&name.as_str()) || name == "dtype" && dtype != DType::F32;
            is_said || fixed.get(name).is_some()
        };
        let one = |&(m, n, k, layout): &(usize, usize, usize, Layout)| {
            let input = draw::with_fixed(GemmInput::new(m, n, k, dtype, layout), fixed, &["ld"])?;
            Ok(Config(input.fields().0.into_iter().filter(|(name, _)| shown(name)).collect()))
        };
        REPRESENTATIVE.iter().map(one).collect()
    }

    fn aspects(&self, input: &GemmInput) -> Vec<String> {
        awkward::aspects(input)
    }
}
