//! What is computed, apart from how.

use crate::buffer::{Buffer, BufferSpec, Buffers, Expected, Filling, Verdict, Workload, Written};
use crate::data::{Data, SplitMix};
use crate::expr::Value;
use crate::feature::Feature;
use crate::id::ComputationId;
use crate::program::{DeviceError, ScalarSpec};
use crate::space::Config;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

/// The floor of an input: what any implementation must do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Floating-point operations, a fused multiply-add counted as two.
    pub flops: f64,
    /// Bytes that must cross memory once: inputs read, outputs written.
    pub bytes: f64,
}

/// Input fields that describe no input. Names the field and the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct InputError {
    /// The key that is wrong or missing.
    pub field: String,
    /// What is wrong, with the limit.
    pub message: String,
}

impl InputError {
    /// Names the field and says what is wrong with it.
    pub fn new(field: &str, message: impl Into<String>) -> Self {
        Self { field: field.to_owned(), message: message.into() }
    }

    /// A value that is not what the field takes: `an integer within 0..=9`, say. Of `m=` it says that no value is there.
    pub fn not(field: &str, value: &Value, expected: &str) -> Self {
        let message = match value {
            Value::Str(text) if text.is_empty() => format!("no value is given: {expected} is expected"),
            other => format!("{other} is not {expected}"),
        };
        Self::new(field, message)
    }
}

/// Limits on drawn inputs, so that one measurement stays short.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputLimits {
    /// Most floating-point operations.
    pub max_flops: f64,
    /// Most bytes over all buffers.
    pub max_bytes: f64,
}

/// A computation: input, workload, reference in higher precision, features of the input.
///
/// Implementations live in `ops`, or with a user. Kernels of one computation share all of this, so that a selector can
/// choose among them.
pub trait Computation: Send + Sync + 'static {
    /// What a caller has: shapes, element type, layout, scalar classes, alignment. No data and no floats.
    type Input: Clone + Eq + Hash + Debug + Send + Sync;

    /// The name, as on the command line.
    fn id(&self) -> ComputationId;

    /// Reads an input from its fields (`m=2560 n=16 ...`), defaults filled in.
    ///
    /// # Errors
    /// The field that is missing, unknown or out of range.
    fn parse(&self, fields: &Config) -> Result<Self::Input, InputError>;

    /// The fields of an input, complete and in a fixed order: what caches are keyed by and files record.
    fn fields(&self, input: &Self::Input) -> Config;

    /// The floor.
    fn work(&self, input: &Self::Input) -> Work;

    /// Buffers and scalars to run on. The same seed gives the same bytes.
    fn workload(&self, input: &Self::Input, filling: Filling, seed: u64) -> Workload;

    /// Data to time on: by default the workload of reals. A computation whose time does not depend on what the buffers hold
    /// says [`Data::Noise`] with the same buffers and scalars, which costs nothing to make or to send.
    fn data(&self, input: &Self::Input, seed: u64) -> Data {
        Data::Given(Arc::new(self.workload(input, Filling::Real, seed)))
    }

    /// The buffers that a plan of this input runs on: those of its workloads. Programs carry them, and whatever runs a program
    /// refuses others.
    fn buffers(&self, input: &Self::Input) -> Vec<BufferSpec>;

    /// Bytes of the buffers of an input, at least about: asked before anything is allocated, so that what fits into no memory is refused.
    /// A computation that must make data to know its buffers says from the input alone how large they become.
    fn footprint(&self, input: &Self::Input) -> u64 {
        self.buffers(input).iter().map(BufferSpec::bytes).fold(0, u64::saturating_add)
    }

    /// The scalars that a plan of this input takes, by position, with the values that it was made for. Programs carry them,
    /// and whatever runs a program refuses others.
    fn scalars(&self, input: &Self::Input) -> Vec<ScalarSpec>;

    /// What the buffers must hold afterwards, in higher precision, with error bounds.
    ///
    /// # Errors
    /// A reference that is itself a program, and fails.
    fn reference(&self, input: &Self::Input, before: &Buffers, scalars: &[f64]) -> Result<Expected, DeviceError>;

    /// The reference where only a part of a program's blocks ran: right where that part wrote, and anything elsewhere. By default all
    /// of it; a computation whose reference is itself a program runs that in part too.
    ///
    /// # Errors
    /// As [`Computation::reference`].
    fn reference_near(
        &self,
        input: &Self::Input,
        before: &Buffers,
        scalars: &[f64],
        written: &Written<'_>,
    ) -> Result<Expected, DeviceError> {
        let _ = written;
        self.reference(input, before, scalars)
    }

    /// The data moved by about the rounding of their type, by a seed, for computations that may jump there: a kernel that compares
    /// numbers may take two that are equal either way. A result is right too if it lies within what the reference makes of such data.
    /// `None` of computations that are continuous, whose bounds say all.
    fn nudged(&self, input: &Self::Input, before: &Buffers, seed: u64) -> Option<Buffers> {
        let _ = (input, before, seed);
        None
    }

    /// How the buffers after a run compare with the reference. By default all of the reference is made first; a computation whose
    /// reference is several times as large as its buffers compares part by part instead.
    ///
    /// # Errors
    /// As [`Computation::reference`].
    fn compare(
        &self,
        input: &Self::Input,
        before: &Buffers,
        scalars: &[f64],
        after: &[Buffer],
    ) -> Result<Verdict, DeviceError> {
        Ok(self.reference(input, before, scalars)?.compare(after))
    }

    /// Names and kinds of the features of an input.
    fn feature_names(&self) -> Vec<Feature>;

    /// The features of an input, one number per name.
    fn features(&self, input: &Self::Input, out: &mut Vec<f32>);

    /// Seconds that the features of an input took to compute, where they are found in data and were asked for.
    fn features_seconds(&self, input: &Self::Input) -> Option<f64> {
        let _ = input;
        None
    }

    /// Draws an input for training, from uniform numbers in [0, 1): shapes on a logarithmic scale within the limits,
    /// awkward ones (odd, prime, one short of a power of two) among them. Words in `fixed` are kept as given.
    ///
    /// # Errors
    /// A fixed field that is unknown or out of range.
    fn draw(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Self::Input, InputError>;

    /// Draws an input for checking results: every edge that the input type has, whatever [`Computation::draw`] leaves out
    /// because nobody would train on it (empty sizes, padding, weak alignment, every class of scalar). Words in `fixed`
    /// are kept as given. The default draws a training input.
    ///
    /// # Errors
    /// A fixed field that is unknown or out of range.
    fn draw_awkward(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Self::Input, InputError> {
        self.draw(fixed, limits, uniform)
    }

    /// Classes of inputs, each named by the fields that its inputs share, that are worth being verified and compared apart: element
    /// types, for example. All inputs together by default.
    fn classes(&self) -> Vec<Config> {
        vec![Config::default()]
    }

    /// A few inputs that stand for what people have, fields in `fixed` kept: what a table shows that is not about one input. The
    /// default draws some that take moments each, always the same.
    ///
    /// # Errors
    /// A fixed field that is unknown or out of range.
    fn representative(&self, fixed: &Config) -> Result<Vec<Config>, InputError> {
        let limits = InputLimits { max_flops: 1e9, max_bytes: 64e6 };
        let mut noise = SplitMix(0x5eed);
        let mut uniform = || f64::midpoint(noise.real(), 1.0);
        (0..5).map(|_| self.draw(fixed, &limits, &mut uniform).map(|input| self.fields(&input))).collect()
    }

    /// What an input is an example of, as short texts for reports of coverage: `dtype:f32`, `odd m`. The default counts
    /// fields of the input that are no numbers.
    fn aspects(&self, input: &Self::Input) -> Vec<String> {
        let fields = self.fields(input).0.into_iter();
        fields.filter(|(_, value)| value.as_str().is_some()).map(|(name, value)| format!("{name}:{value}")).collect()
    }
}

/// One required, or optional, integer field.
///
/// # Errors
/// Missing, not an integer, or outside `min..=max`.
pub fn size_field(fields: &Config, name: &str, min: u64, max: u64, default: Option<u64>) -> Result<u64, InputError> {
    let wanted = format!("an integer within {min}..={max}");
    let Some(value) = fields.get(name) else {
        return default.ok_or_else(|| InputError::new(name, format!("missing: write {name}=SIZE, {wanted}")));
    };
    match value {
        Value::Int(i) if u64::try_from(*i).is_ok_and(|i| (min..=max).contains(&i)) => Ok(i.unsigned_abs()),
        Value::Int(i) => Err(InputError::new(name, format!("{i} is not within {min}..={max}"))),
        other => Err(InputError::not(name, other, &wanted)),
    }
}
