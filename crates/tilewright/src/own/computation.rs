//! The computation of a described kernel.

use super::{Before, Reference};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::RangeInclusive;
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, Expected, ExpectedBuffer, Filling, Role, Workload};
use tilewright_core::computation::{Computation, InputError, InputLimits, Work, size_field};
use tilewright_core::dtype::DType;
use tilewright_core::expr::{Compiled, Expr, Val, Value};
use tilewright_core::feature::Feature;
use tilewright_core::id::ComputationId;
use tilewright_core::program::{DeviceError, ScalarSpec};
use tilewright_core::space::Config;

/// The largest size of an input.
pub(super) const MOST: u64 = 1 << 40;

/// The most bytes of one buffer.
const MOST_BYTES: u64 = 1 << 46;

/// Shares of drawn inputs that are one short of what was drawn, and that are the least that there is.
const ONE_SHORT: f64 = 0.25;
const LEAST: f64 = 0.15;

/// The sizes of an input, in the order of their description.
pub type Sizes = Vec<u64>;

/// A size that the caller gives.
pub(super) struct Size {
    pub(super) name: String,
    pub(super) range: RangeInclusive<u64>,
}

/// A number that follows from the inputs.
pub(super) struct Length(Compiled);

impl Length {
    pub(super) fn new(text: &str, inputs: &[&str]) -> Result<Self, String> {
        let expr: Expr = text.parse().map_err(|e: tilewright_core::expr::ParseError| e.to_string())?;
        let unknown =
            |e: tilewright_core::expr::UnknownName| format!("{:?} is none of the inputs {}", e.0, inputs.join(", "));
        expr.compile(inputs).map(Self).map_err(unknown)
    }

    /// The number, where it is none below zero.
    fn of(&self, sizes: &[u64]) -> Option<f64> {
        let slots: Vec<Val<'_>> = sizes.iter().map(|s| Val::Int(*s as i64)).collect();
        self.0.eval(&slots).ok()?.as_f64().filter(|x| x.is_finite() && *x >= 0.0)
    }
}

/// What a described kernel computes.
pub struct OwnComputation {
    pub(super) name: String,
    pub(super) sizes: Vec<Size>,
    /// The buffers, with their lengths apart.
    pub(super) buffers: Vec<(BufferSpec, Length)>,
    pub(super) scalars: Vec<ScalarSpec>,
    pub(super) flops: Length,
    pub(super) tolerance: Option<f64>,
    pub(super) reference: Box<Reference>,
}

impl OwnComputation {
    /// The buffers of an input.
    pub(super) fn specs(&self, input: &[u64]) -> Vec<BufferSpec> {
        let spec = |(spec, len): &(BufferSpec, Length)| BufferSpec {
            len: len.of(input).map_or(0, |len| len as usize),
            ..spec.clone()
        };
        self.buffers.iter().map(spec).collect()
    }

    /// The inputs by name.
    pub(super) fn named<'a>(&'a self, input: &'a [u64]) -> impl Iterator<Item = (&'a str, u64)> {
        self.sizes.iter().map(|s| s.name.as_str()).zip(input.iter().copied())
    }

    fn known(&self, words: &Config) -> Result<(), InputError> {
        let unknown = words.0.iter().find(|(name, _)| self.sizes.iter().all(|s| s.name != *name));
        unknown.map_or(Ok(()), |(name, _)| {
            let known = self.sizes.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(" ");
            Err(InputError::new(name, format!("unknown key: an input of {} has {known}", self.name)))
        })
    }

    /// Refuses an input whose buffers have no lengths, or too large ones.
    fn check(&self, input: &[u64]) -> Result<(), InputError> {
        for (spec, len) in &self.buffers {
            let refuse = |message| Err(InputError::new(spec.name, message));
            match len.of(input) {
                None => return refuse("its length is no number of 0 or more".to_owned()),
                Some(len) if len * spec.dtype.size() as f64 > MOST_BYTES as f64 => {
                    return refuse(format!("{len} elements of {} are more than {MOST_BYTES} bytes", spec.dtype));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn value(filling: Filling, dtype: DType, rng: &mut ChaCha8Rng) -> f64 {
        if filling == Filling::Exact || dtype.unit_roundoff() == 0.0 {
            return f64::from(rng.random_range(-8i32..=8));
        }
        if filling == Filling::Special && rng.random_range(0..8) == 0 {
            return [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][rng.random_range(0..3)];
        }
        rng.random_range(-1.0..1.0)
    }

    /// The largest error of an element of a buffer.
    fn bound(&self, dtype: DType, largest: f64) -> f32 {
        let relative = match dtype {
            DType::F32 => self.tolerance.unwrap_or(1e-5),
            DType::F64 => self.tolerance.unwrap_or(1e-13),
            _ => 0.0,
        };
        (relative * largest) as f32
    }

    /// A size within its range, on a logarithmic scale.
    fn drawn(range: &RangeInclusive<u64>, uniform: &mut dyn FnMut() -> f64) -> u64 {
        let (least, most) = (*range.start(), *range.end());
        let (low, high) = ((least.max(1) as f64).ln(), (most.max(1) as f64).ln());
        let drawn = (low + (high - low) * uniform()).exp() as u64;
        let short = u64::from(uniform() < ONE_SHORT);
        drawn.saturating_sub(short).clamp(least, most)
    }

    /// Halves the largest sizes that are not fixed until the input keeps the limits.
    fn shrink(&self, input: &mut Sizes, fixed: &[bool], limits: &InputLimits) {
        loop {
            let work = self.work(input);
            if self.check(input).is_ok() && work.flops <= limits.max_flops && work.bytes <= limits.max_bytes {
                return;
            }
            let free = (0..input.len()).filter(|&i| !fixed[i] && input[i] > *self.sizes[i].range.start());
            let Some(largest) = free.max_by_key(|&i| input[i]) else { return };
            input[largest] = (input[largest] / 2).max(*self.sizes[largest].range.start());
        }
    }

    fn read(&self, words: &Config, size: &Size) -> Result<u64, InputError> {
        size_field(words, &size.name, *size.range.start(), *size.range.end(), None)
    }
}

impl Computation for OwnComputation {
    type Input = Sizes;

    fn id(&self) -> ComputationId {
        self.name.clone().into()
    }

    fn parse(&self, words: &Config) -> Result<Sizes, InputError> {
        self.known(words)?;
        let input = self.sizes.iter().map(|size| self.read(words, size)).collect::<Result<Sizes, _>>()?;
        self.check(&input)?;
        Ok(input)
    }

    fn fields(&self, input: &Sizes) -> Config {
        Config(self.named(input).map(|(name, size)| (name.to_owned(), Value::Int(size as i64))).collect())
    }

    fn work(&self, input: &Sizes) -> Work {
        let bytes = self.specs(input).into_iter().map(|spec| {
            let times = if spec.role == Role::InOut { 2 } else { 1 };
            (times * spec.dtype.size()) as f64 * spec.len as f64
        });
        Work { flops: self.flops.of(input).unwrap_or(0.0), bytes: bytes.sum() }
    }

    fn workload(&self, input: &Sizes, filling: Filling, seed: u64) -> Workload {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let specs = self.specs(input);
        let mut buffers = Buffers::new();
        for spec in &specs {
            let mut buffer = Buffer::zeroed(spec.dtype, spec.len);
            for i in 0..spec.len {
                let is_read = spec.role != Role::Out;
                buffer.set_f64(i, if is_read { Self::value(filling, spec.dtype, &mut rng) } else { f64::NAN });
            }
            buffers.push(buffer);
        }
        let scalar = if filling == Filling::Exact { 3.0 } else { -0.75 };
        Workload { specs, buffers, scalars: vec![scalar; self.scalars.len()] }
    }

    fn buffers(&self, input: &Sizes) -> Vec<BufferSpec> {
        self.specs(input)
    }

    fn scalars(&self, _: &Sizes) -> Vec<ScalarSpec> {
        self.scalars.clone()
    }

    fn reference(&self, input: &Sizes, before: &Buffers, scalars: &[f64]) -> Result<Expected, DeviceError> {
        let specs = self.specs(input);
        let sizes = self.named(input).map(|(name, size)| (name, size as usize)).collect();
        let seen = Before { sizes, specs: &specs, buffers: before, scalars: (&self.scalars, scalars) };
        let mut values = (self.reference)(&seen).into_iter();
        let read = specs.iter().zip(before).filter(|(spec, _)| spec.role != Role::Out);
        let data = read.flat_map(|(_, buffer)| (0..buffer.len()).map(|i| buffer.get_f64(i)));
        let largest = |of: f64, x: f64| if x.is_finite() { of.max(x.abs()) } else { of };
        let of_data = data.fold(f64::from(f32::MIN_POSITIVE), largest);
        let written = specs.iter().enumerate().filter(|(_, spec)| spec.role != Role::In);
        let buffers = written.map(|(index, spec)| {
            let mut values = values.next().unwrap_or_default();
            // What the reference leaves out is wrong whatever stands there.
            values.resize(spec.len, f64::NAN);
            let bound = self.bound(spec.dtype, values.iter().copied().fold(of_data, largest));
            ExpectedBuffer { index, bounds: vec![bound; spec.len], values }
        });
        Ok(Expected { buffers: buffers.collect() })
    }

    fn feature_names(&self) -> Vec<Feature> {
        self.sizes.iter().map(|size| Feature::size(&size.name)).collect()
    }

    fn features(&self, input: &Sizes, out: &mut Vec<f32>) {
        out.extend(input.iter().map(|size| *size as f32));
    }

    fn draw(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Sizes, InputError> {
        self.known(fixed)?;
        let (mut input, mut is_fixed) = (Sizes::new(), Vec::new());
        for size in &self.sizes {
            let drawn = Self::drawn(&size.range, uniform);
            is_fixed.push(fixed.get(&size.name).is_some());
            input.push(if fixed.get(&size.name).is_some() { self.read(fixed, size)? } else { drawn });
        }
        self.shrink(&mut input, &is_fixed, limits);
        self.check(&input)?;
        Ok(input)
    }

    fn draw_awkward(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Sizes, InputError> {
        let mut input = self.draw(fixed, limits, uniform)?;
        for (drawn, size) in input.iter_mut().zip(&self.sizes) {
            if fixed.get(&size.name).is_none() && uniform() < LEAST {
                *drawn = *size.range.start();
            }
        }
        self.check(&input)?;
        Ok(input)
    }
}
