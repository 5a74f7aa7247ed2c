//! One model as a feature of another: a kernel whose features end with the time that somebody else expects.
//!
//! [`Hinted`] has the space, the plans and the code of its kernel, and one feature more. A model that is fitted on it learns how
//! far the hint may be trusted; [`HintAlone`] trusts it and nothing else, where nothing was measured yet.

use crate::device::DeviceSpec;
use crate::feature::{Feature, FeatureSchema};
use crate::id::KernelId;
use crate::kernel::{InputOf, Kernel};
use crate::predictor::{BindError, Predictor, RowPredictor, Scorer, bind_rows};
use crate::problem::Problem;
use crate::program::Program;
use crate::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};

/// Expects times of legal configurations.
pub trait Hint<K: Kernel>: Send + Sync + 'static {
    /// The name of the feature, such as `linear.seconds`.
    fn name(&self) -> &str;

    /// Seconds that a legal configuration is expected to take, finite and above zero. Called for each configuration that a search
    /// looks at.
    fn seconds(&self, kernel: &K, device: &DeviceSpec, input: &InputOf<K>, at: &Values<'_>) -> f64;
}

/// A kernel with a hint as its last feature.
#[derive(Debug)]
pub struct Hinted<K, H> {
    kernel: K,
    hint: H,
}

impl<K: Kernel, H: Hint<K>> Hinted<K, H> {
    /// Adds the hint to the features of the kernel.
    pub fn new(kernel: K, hint: H) -> Self {
        Self { kernel, hint }
    }
}

/// All but the features are the kernel's own, its name included: the same times are measured for both.
impl<K: Kernel, H: Hint<K>> Kernel for Hinted<K, H> {
    type Of = K::Of;
    type Plan = K::Plan;

    fn id(&self) -> KernelId {
        self.kernel.id()
    }

    fn computation(&self) -> &K::Of {
        self.kernel.computation()
    }

    fn space(&self) -> &ParamSpace {
        self.kernel.space()
    }

    fn symbols(&self, device: &DeviceSpec, input: &InputOf<K>) -> Symbols {
        self.kernel.symbols(device, input)
    }

    fn plan(&self, device: &DeviceSpec, input: &InputOf<K>, at: &Legal<'_>) -> K::Plan {
        self.kernel.plan(device, input, at)
    }

    fn generate(&self, plan: &K::Plan) -> Program {
        self.kernel.generate(plan)
    }

    fn counts(&self, plan: &K::Plan) -> Option<crate::counts::Counts> {
        self.kernel.counts(plan)
    }

    fn feature_names(&self) -> Vec<Feature> {
        let mut names = self.kernel.feature_names();
        names.push(Feature::size(self.hint.name()));
        names
    }

    fn features(&self, device: &DeviceSpec, input: &InputOf<K>, at: &Values<'_>, out: &mut Vec<f32>) {
        self.kernel.features(device, input, at, out);
        out.push(self.hint.seconds(&self.kernel, device, input, at) as f32);
    }

    fn hints(&self) -> usize {
        self.kernel.hints() + 1
    }

    fn default_point(&self, device: &DeviceSpec, input: &InputOf<K>, space: &BoundSpace) -> Option<Point> {
        self.kernel.default_point(device, input, space)
    }
}

/// Predicts what the last feature says: for devices on which nothing was measured.
#[derive(Clone, Debug)]
pub struct HintAlone {
    schema: FeatureSchema,
}

impl HintAlone {
    /// For rows of this schema, whose last feature is a hint; `None` where configurations have no features.
    pub fn new(schema: FeatureSchema) -> Option<Self> {
        (!schema.config.is_empty()).then_some(Self { schema })
    }
}

impl RowPredictor for HintAlone {
    fn schema(&self) -> &FeatureSchema {
        &self.schema
    }

    fn predict(&self, rows: &[f32], out: &mut Vec<f32>) {
        out.extend(rows.chunks_exact(self.schema.width()).filter_map(|row| row.last()).map(|seconds| seconds.ln()));
    }
}

impl Predictor for HintAlone {
    /// Of `linear.seconds`, `linear`.
    fn kind(&self) -> &str {
        let name = self.schema.config.last().map_or("hint", |f| f.name.as_str());
        name.split_once('.').map_or(name, |(kind, _)| kind)
    }

    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        bind_rows(self, problem)
    }
}
