//! `y = a * x`.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, Expected, ExpectedBuffer, Filling, Role, Workload};
use tilewright_core::computation::{Computation, InputError, InputLimits, Work, size_field};
use tilewright_core::dtype::DType;
use tilewright_core::expr::Value;
use tilewright_core::feature::Feature;
use tilewright_core::id::ComputationId;
use tilewright_core::program::{DeviceError, ScalarClass, ScalarSpec};
use tilewright_core::space::Config;

/// Largest accepted length.
const MAX_N: u64 = 1 << 28;

/// Scales a vector: `y = a * x`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scale;

/// Length and element type (f32 or f64).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScaleInput {
    /// Number of elements.
    pub n: usize,
    /// Element type of both vectors.
    pub dtype: DType,
}

impl Scale {
    fn dtype(fields: &Config) -> Result<DType, InputError> {
        let Some(value) = fields.get("dtype") else { return Ok(DType::F32) };
        match value.as_str().map(str::parse::<DType>) {
            Some(Ok(dtype @ (DType::F32 | DType::F64))) => Ok(dtype),
            _ => Err(InputError::new("dtype", format!("{value} is not one of f32, f64"))),
        }
    }

    fn known(fields: &Config) -> Result<(), InputError> {
        match fields.0.iter().find(|(name, _)| !["n", "dtype"].contains(&name.as_str())) {
            Some((name, _)) => Err(InputError::new(name, "unknown word: expected n, dtype")),
            None => Ok(()),
        }
    }
}

impl Computation for Scale {
    type Input = ScaleInput;

    fn id(&self) -> ComputationId {
        ComputationId::new("scale")
    }

    fn parse(&self, fields: &Config) -> Result<ScaleInput, InputError> {
        Self::known(fields)?;
        let n = size_field(fields, "n", 0, MAX_N, None)?;
        Ok(ScaleInput { n: n as usize, dtype: Self::dtype(fields)? })
    }

    fn fields(&self, input: &ScaleInput) -> Config {
        Config(vec![("n".into(), Value::from(input.n)), ("dtype".into(), Value::from(input.dtype.name()))])
    }

    fn work(&self, input: &ScaleInput) -> Work {
        Work { flops: input.n as f64, bytes: 2.0 * (input.n * input.dtype.size()) as f64 }
    }

    fn workload(&self, input: &ScaleInput, filling: Filling, seed: u64) -> Workload {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut x = Buffer::zeroed(input.dtype, input.n);
        let mut y = Buffer::zeroed(input.dtype, input.n);
        for i in 0..input.n {
            let drawn = match filling {
                Filling::Exact => f64::from(rng.random_range(-8i32..=8)),
                Filling::Special if rng.random_range(0..8) == 0 => {
                    [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][rng.random_range(0..3)]
                }
                _ => rng.random_range(-1.0..1.0),
            };
            x.set_f64(i, drawn);
            y.set_f64(i, f64::NAN);
        }
        let a = if filling == Filling::Exact { 3.0 } else { -0.75 };
        Workload { specs: self.buffers(input), buffers: vec![x, y], scalars: vec![a] }
    }

    fn buffers(&self, input: &ScaleInput) -> Vec<BufferSpec> {
        let spec = |name, role| BufferSpec { name, dtype: input.dtype, len: input.n, role };
        vec![spec("x", Role::In), spec("y", Role::Out)]
    }

    fn scalars(&self, _: &ScaleInput) -> Vec<ScalarSpec> {
        vec![ScalarSpec { name: "a", class: ScalarClass::Any }]
    }

    fn reference(&self, _: &ScaleInput, before: &Buffers, scalars: &[f64]) -> Result<Expected, DeviceError> {
        let x = &before[0];
        let values: Vec<f64> = (0..x.len()).map(|i| scalars[0] * x.get_f64(i)).collect();
        let round = x.dtype().unit_roundoff();
        let bound = |v: &f64| if v.is_finite() { (v.abs() * round) as f32 + f32::MIN_POSITIVE } else { 0.0 };
        let bounds = values.iter().map(bound).collect();
        Ok(Expected { buffers: vec![ExpectedBuffer { index: 1, values, bounds }] })
    }

    fn feature_names(&self) -> Vec<Feature> {
        vec![Feature::size("n"), Feature::size("element_bytes")]
    }

    fn features(&self, input: &ScaleInput, out: &mut Vec<f32>) {
        out.extend([input.n as f32, input.dtype.size() as f32]);
    }

    fn draw(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<ScaleInput, InputError> {
        Self::known(fixed)?;
        let dtype = Self::dtype(fixed)?;
        let most = limits.max_flops.min(limits.max_bytes / (2 * dtype.size()) as f64).clamp(1.0, MAX_N as f64);
        let drawn = most.powf(uniform()).floor();
        // One in four is one short of what was drawn, so that lengths are not only the round ones.
        let awkward = if uniform() < 0.25 { 1.0 } else { 0.0 };
        let n =
            if fixed.get("n").is_some() { size_field(fixed, "n", 0, MAX_N, None)? } else { (drawn - awkward) as u64 };
        Ok(ScaleInput { n: n as usize, dtype })
    }
}
