//! The object-safe view of (kernel, device, input) that everything outside a kernel crate sees.

use crate::buffer::{Buffer, Buffers, Expected, Filling, Verdict, Workload, Written};
use crate::computation::{Computation, InputError, InputLimits, Work};
use crate::counts::Counts;
use crate::data::Data;
use crate::device::{Device, DeviceSpec};
use crate::feature::FeatureSchema;
use crate::id::{ComputationId, KernelId};
use crate::kernel::{InputOf, Kernel};
use crate::measurement::{Failure, FailureKind, Measurement, Timing};
use crate::operations::Operations;
use crate::program::{DeviceError, Program};
use crate::space::{BoundSpace, Config, Illegal, Legal, ParamSpace, Point, SpaceError};
use std::sync::Arc;

/// One kernel, on one device, for one input.
pub trait Problem: Send + Sync {
    /// Which kernel.
    fn kernel(&self) -> KernelId;
    /// Which computation.
    fn computation(&self) -> ComputationId;
    /// Which device.
    fn device(&self) -> &DeviceSpec;
    /// The input's fields, complete and in a fixed order.
    fn input(&self) -> Config;
    /// The space with this device and input fixed.
    fn space(&self) -> &BoundSpace;
    /// The floor.
    fn work(&self) -> Work;
    /// Bytes of the buffers that it runs on. As much as it must move where a problem does not say.
    fn footprint(&self) -> u64 {
        self.work().bytes as u64
    }
    /// The columns of feature rows.
    fn schema(&self) -> &FeatureSchema;
    /// The input's features.
    fn input_features(&self, out: &mut Vec<f32>);
    /// What the input's features cost. See [`Computation::features_seconds`].
    fn features_seconds(&self) -> Option<f64> {
        None
    }
    /// The features of a legal point, appended to `out`; not checked, and NaN for what is no point at all.
    fn config_features(&self, point: &[u16], out: &mut Vec<f32>);
    /// The code of a point.
    ///
    /// # Panics
    /// If the point was checked in another space than [`Problem::space`] or a clone of it.
    fn program(&self, at: &Legal<'_>) -> Program;
    /// The symbolic counts of a point, in sizes that are fields of [`Problem::input`]. See [`Kernel::counts`].
    ///
    /// # Panics
    /// As [`Problem::program`].
    fn counts(&self, at: &Legal<'_>) -> Option<Counts> {
        let _ = at;
        None
    }
    /// How often the program of a point does what takes time. See [`Kernel::operations`].
    ///
    /// # Panics
    /// As [`Problem::program`].
    fn operations(&self, at: &Legal<'_>) -> Option<Operations> {
        let fields = self.input();
        Operations::of(&self.counts(at)?, |size| fields.get(size)?.as_int())
    }
    /// The kind of data that results are checked on where this kind is wanted: real data where the reference foretells no others
    /// for this kernel ([`Kernel::fillings`]).
    fn checked_on(&self, wanted: Filling) -> Filling {
        wanted
    }
    /// Data to run on.
    fn workload(&self, filling: Filling, seed: u64) -> Workload;
    /// Data to time on. See [`Computation::data`].
    fn data(&self, seed: u64) -> Data {
        Data::Given(Arc::new(self.workload(Filling::Real, seed)))
    }
    /// What the data must become.
    ///
    /// # Errors
    /// A reference that is itself a program, and fails.
    fn reference(&self, before: &Buffers, scalars: &[f64]) -> Result<Expected, DeviceError>;
    /// What the part of the data must become that a part of a program wrote. See [`Computation::reference_near`].
    ///
    /// # Errors
    /// As [`Problem::reference`].
    fn reference_near(
        &self,
        before: &Buffers,
        scalars: &[f64],
        written: &Written<'_>,
    ) -> Result<Expected, DeviceError> {
        let _ = written;
        self.reference(before, scalars)
    }
    /// The data moved by about their rounding. See [`Computation::nudged`].
    fn nudged(&self, before: &Buffers, seed: u64) -> Option<Buffers> {
        let _ = (before, seed);
        None
    }
    /// How the data after a run compare with that. See [`Computation::compare`].
    ///
    /// # Errors
    /// As [`Problem::reference`].
    fn compare(&self, before: &Buffers, scalars: &[f64], after: &[Buffer]) -> Result<Verdict, DeviceError> {
        Ok(self.reference(before, scalars)?.compare(after))
    }
    /// The point that runs before anything is tuned.
    fn default_point(&self) -> Option<Point>;
    /// How well that suits the input, beside other kernels' defaults. See [`Kernel::suits`].
    fn suits(&self) -> f64 {
        0.0
    }
    /// What the input is an example of. See [`Computation::aspects`].
    fn aspects(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A kernel of any type, as command line and files name it.
pub trait AnyKernel: Send + Sync {
    /// Which kernel.
    fn id(&self) -> KernelId;
    /// Which computation.
    fn computation(&self) -> ComputationId;
    /// Parameters and rules.
    fn space(&self) -> &ParamSpace;
    /// The columns of feature rows.
    fn schema(&self) -> FeatureSchema;
    /// How names in rules follow from fields of the input. See [`Kernel::derivations`].
    fn derivations(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    /// Fixes device and input.
    ///
    /// # Errors
    /// Fields that describe no input.
    fn problem(&self, device: &Arc<DeviceSpec>, input: &Config) -> Result<Box<dyn Problem>, ProblemError>;
    /// The fields of an input as caches are keyed by them and files record them. See [`Computation::fields`].
    ///
    /// # Errors
    /// Fields that describe no input.
    fn fields(&self, input: &Config) -> Result<Config, InputError> {
        Ok(input.clone())
    }
    /// Bytes of the buffers of an input, told before anything is made for it; none where a kernel does not say. See
    /// [`Computation::footprint`].
    ///
    /// # Errors
    /// Fields that describe no input.
    fn footprint(&self, input: &Config) -> Result<Option<u64>, InputError> {
        let _ = input;
        Ok(None)
    }
    /// Draws a training input, fields in `fixed` kept. See [`Computation::draw`].
    ///
    /// # Errors
    /// A fixed field that is unknown or out of range.
    fn draw(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Config, InputError>;
    /// Draws an input for checking results, fields in `fixed` kept. See [`Computation::draw_awkward`].
    ///
    /// # Errors
    /// A fixed field that is unknown or out of range.
    fn draw_awkward(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Config, InputError> {
        self.draw(fixed, limits, uniform)
    }
    /// Classes of inputs that are worth being verified apart. See [`Computation::classes`].
    fn classes(&self) -> Vec<Config> {
        vec![Config::default()]
    }
    /// Inputs that stand for what people have, fields in `fixed` kept. See [`Computation::representative`].
    ///
    /// # Errors
    /// A fixed field that is unknown or out of range.
    fn representative(&self, fixed: &Config) -> Result<Vec<Config>, InputError> {
        let _ = fixed;
        Ok(Vec::new())
    }
}

/// Why there is no problem to solve.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProblemError {
    /// The fields describe no input.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The kernel's rules name something that neither device nor input has.
    #[error("device lacks what the kernel's rules need: {0}")]
    Space(#[from] SpaceError),
}

/// [`Problem`] of a kernel type.
pub struct Bound<K: Kernel> {
    kernel: Arc<K>,
    device: Arc<DeviceSpec>,
    input: InputOf<K>,
    space: BoundSpace,
    schema: FeatureSchema,
}

impl<K: Kernel> Bound<K> {
    /// Fixes device and input.
    ///
    /// # Errors
    /// An input that the kernel does not accept, or a rule that names what neither device nor input has.
    pub fn new(kernel: Arc<K>, device: Arc<DeviceSpec>, input: InputOf<K>) -> Result<Self, ProblemError> {
        kernel.accepts(&input)?;
        let space = kernel.space().bind(&kernel.symbols(&device, &input))?;
        let schema = schema(&*kernel);
        Ok(Self { kernel, device, input, space, schema })
    }

    /// The kernel.
    pub fn kernel_ref(&self) -> &K {
        &self.kernel
    }

    /// The input, typed.
    pub fn input_ref(&self) -> &InputOf<K> {
        &self.input
    }

    /// The plan of a point.
    ///
    /// # Panics
    /// If the point was checked in another space than this problem's or a clone of it: other rules prove nothing here.
    pub fn plan(&self, at: &Legal<'_>) -> K::Plan {
        assert!(
            at.space().is_clone_of(&self.space),
            "the point {at:?} was checked in another space than that of {} for {}",
            self.kernel.id(),
            self.input()
        );
        self.kernel.plan(&self.device, &self.input, at)
    }
}

fn schema<K: Kernel>(kernel: &K) -> FeatureSchema {
    FeatureSchema { input: kernel.computation().feature_names(), config: kernel.feature_names() }
}

impl<K: Kernel> Problem for Bound<K> {
    fn kernel(&self) -> KernelId {
        self.kernel.id()
    }

    fn computation(&self) -> ComputationId {
        self.kernel.computation().id()
    }

    fn device(&self) -> &DeviceSpec {
        &self.device
    }

    fn input(&self) -> Config {
        self.kernel.computation().fields(&self.input)
    }

    fn space(&self) -> &BoundSpace {
        &self.space
    }

    fn work(&self) -> Work {
        self.kernel.computation().work(&self.input)
    }

    fn footprint(&self) -> u64 {
        self.kernel.computation().footprint(&self.input)
    }

    fn schema(&self) -> &FeatureSchema {
        &self.schema
    }

    fn input_features(&self, out: &mut Vec<f32>) {
        self.kernel.computation().features(&self.input, out);
    }

    fn features_seconds(&self) -> Option<f64> {
        self.kernel.computation().features_seconds(&self.input)
    }

    fn config_features(&self, point: &[u16], out: &mut Vec<f32>) {
        match self.space.at(point) {
            Some(at) => self.kernel.features(&self.device, &self.input, &at, out),
            None => out.resize(out.len() + self.schema.config.len(), f32::NAN),
        }
    }

    fn program(&self, at: &Legal<'_>) -> Program {
        let of = self.kernel.computation();
        self.kernel.generate(&self.plan(at)).on(of.buffers(&self.input)).taking(of.scalars(&self.input))
    }

    fn counts(&self, at: &Legal<'_>) -> Option<Counts> {
        self.kernel.counts(&self.plan(at))
    }

    fn operations(&self, at: &Legal<'_>) -> Option<Operations> {
        self.kernel.operations(&self.device, &self.input, &self.plan(at))
    }

    fn checked_on(&self, wanted: Filling) -> Filling {
        if self.kernel.fillings().contains(&wanted) { wanted } else { Filling::Real }
    }

    fn workload(&self, filling: Filling, seed: u64) -> Workload {
        self.kernel.computation().workload(&self.input, self.checked_on(filling), seed)
    }

    fn data(&self, seed: u64) -> Data {
        self.kernel.computation().data(&self.input, seed)
    }

    fn reference(&self, before: &Buffers, scalars: &[f64]) -> Result<Expected, DeviceError> {
        self.kernel.computation().reference(&self.input, before, scalars)
    }

    fn reference_near(
        &self,
        before: &Buffers,
        scalars: &[f64],
        written: &Written<'_>,
    ) -> Result<Expected, DeviceError> {
        self.kernel.computation().reference_near(&self.input, before, scalars, written)
    }

    fn nudged(&self, before: &Buffers, seed: u64) -> Option<Buffers> {
        self.kernel.computation().nudged(&self.input, before, seed)
    }

    fn compare(&self, before: &Buffers, scalars: &[f64], after: &[Buffer]) -> Result<Verdict, DeviceError> {
        self.kernel.computation().compare(&self.input, before, scalars, after)
    }

    fn default_point(&self) -> Option<Point> {
        self.kernel.default_point(&self.device, &self.input, &self.space)
    }

    fn suits(&self) -> f64 {
        self.kernel.suits(&self.device, &self.input)
    }

    fn aspects(&self) -> Vec<String> {
        self.kernel.computation().aspects(&self.input)
    }
}

/// [`AnyKernel`] of a kernel type.
pub struct Erased<K: Kernel>(Arc<K>);

impl<K: Kernel> Erased<K> {
    /// Hides the type of a kernel.
    pub fn new(kernel: K) -> Self {
        Self(Arc::new(kernel))
    }
}

impl<K: Kernel> AnyKernel for Erased<K> {
    fn id(&self) -> KernelId {
        self.0.id()
    }

    fn computation(&self) -> ComputationId {
        self.0.computation().id()
    }

    fn space(&self) -> &ParamSpace {
        self.0.space()
    }

    fn schema(&self) -> FeatureSchema {
        schema(&*self.0)
    }

    fn derivations(&self) -> Vec<(&'static str, String)> {
        self.0.derivations()
    }

    fn problem(&self, device: &Arc<DeviceSpec>, input: &Config) -> Result<Box<dyn Problem>, ProblemError> {
        let input = self.0.computation().parse(input)?;
        Ok(Box::new(Bound::new(self.0.clone(), device.clone(), input)?))
    }

    fn fields(&self, input: &Config) -> Result<Config, InputError> {
        let computation = self.0.computation();
        Ok(computation.fields(&computation.parse(input)?))
    }

    fn footprint(&self, input: &Config) -> Result<Option<u64>, InputError> {
        let computation = self.0.computation();
        Ok(Some(computation.footprint(&computation.parse(input)?)))
    }

    fn draw(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Config, InputError> {
        let computation = self.0.computation();
        computation.draw(fixed, limits, uniform).map(|input| computation.fields(&input))
    }

    fn draw_awkward(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Config, InputError> {
        let computation = self.0.computation();
        computation.draw_awkward(fixed, limits, uniform).map(|input| computation.fields(&input))
    }

    fn classes(&self) -> Vec<Config> {
        self.0.computation().classes()
    }

    fn representative(&self, fixed: &Config) -> Result<Vec<Config>, InputError> {
        self.0.computation().representative(fixed)
    }
}

/// Why there is no measurement.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MeasureError {
    /// This configuration has none; others may.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The device itself failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl From<Illegal> for MeasureError {
    fn from(illegal: Illegal) -> Self {
        Self::Failed(Failure { kind: FailureKind::Illegal, message: illegal.to_string() })
    }
}

/// Times configurations.
pub trait Measure: Send {
    /// The device's facts.
    fn spec(&self) -> &Arc<DeviceSpec>;

    /// Times one point.
    ///
    /// # Errors
    /// A failed configuration, or a failed device.
    fn measure(&mut self, problem: &dyn Problem, at: &Point, policy: &Timing) -> Result<Measurement, MeasureError>;

    /// How many points are best announced at once; 1 where nothing is gained by announcing.
    fn ahead(&self) -> usize {
        1
    }

    /// Announces points that will be measured soon, so that their code can be compiled in the meantime. Changes no result.
    fn expect(&mut self, problem: &dyn Problem, points: &[Point]) {
        let _ = (problem, points);
    }

    /// Nothing that was announced and is not compiled yet is wanted any more: what is announced next need not wait for it.
    fn abandon(&mut self) {}

    /// The device that is measured on, to check results on it; recordings have none. Its data are put down anew before the
    /// next time is taken.
    fn device(&mut self) -> Option<&mut dyn Device> {
        None
    }
}
