//! Fitting and reading back models of any kind, without knowing which.

#[cfg(feature = "linear")]
mod linear;
#[cfg(feature = "mlp")]
mod mlp;

#[cfg(feature = "linear")]
pub use linear::OverLinear;
#[cfg(feature = "mlp")]
pub use mlp::MlpTrainer;

use crate::store::Profile;
use tilewright_core::feature::FeatureSchema;
use tilewright_core::predictor::Predictor;
use tilewright_core::training::TrainingSet;

/// Fits one kind of model, and reads back what it fitted.
pub trait Trainer: Send + Sync {
    /// The kind, as profiles record it: `mlp`.
    fn kind(&self) -> &str;

    /// A model whose word the fitted one only corrects: the rows to train on then have costs over what it expects. See
    /// [`rows`](crate::tune::rows).
    fn prior(&self) -> Option<&dyn Predictor> {
        None
    }

    /// Fits a model. The same rows and seed give the same model.
    ///
    /// # Errors
    /// Rows that cannot be learned from.
    fn train(&self, data: &TrainingSet, seed: u64) -> Result<Trained, TrainError>;

    /// What a model that was trained on rows with more input columns says of rows without the last ones, which have these values from
    /// now on: of one device, where it was trained on several.
    ///
    /// # Errors
    /// A kind that cannot; a model that is not of this kind, or has no such columns.
    fn fixing(&self, model: &serde_json::Value, last: &[f32]) -> Result<Trained, TrainError> {
        let _ = (model, last);
        Err(TrainError::new(self.kind(), "it cannot be fixed to one device"))
    }

    /// Reads back [`Trained::model`].
    ///
    /// # Errors
    /// It is not of this kind, damaged, or of another schema.
    fn load(&self, model: &serde_json::Value, schema: &FeatureSchema) -> Result<Box<dyn Predictor>, TrainError>;
}

/// The kinds of models that profiles may hold, by name.
#[derive(Default)]
pub struct Trainers(Vec<Box<dyn Trainer>>);

impl Trainers {
    /// Those that this package was built with: `mlp`, and `mlp-over-linear` for profiles that hold such a model.
    pub fn standard() -> Self {
        let all = Self::default();
        #[cfg(feature = "mlp")]
        let all = all.with(MlpTrainer);
        #[cfg(all(feature = "mlp", feature = "linear"))]
        let all = all.with(OverLinear::reading(MlpTrainer));
        all
    }

    /// One kind more, in the place of another one of its name.
    #[must_use]
    pub fn with(mut self, trainer: impl Trainer + 'static) -> Self {
        self.0.retain(|known| known.kind() != trainer.kind());
        self.0.push(Box::new(trainer));
        self
    }

    /// The names, in the order in which they were added.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|trainer| trainer.kind())
    }

    /// The trainer of a kind.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn get(&self, kind: &str) -> Result<&dyn Trainer, UnknownKind> {
        let known = || self.kinds().collect::<Vec<_>>().join(", ");
        let found = self.0.iter().find(|trainer| trainer.kind() == kind);
        found.map(|trainer| &**trainer).ok_or_else(|| UnknownKind { kind: kind.to_owned(), known: known() })
    }

    /// Reads back the model of a profile, whatever its kind.
    ///
    /// # Errors
    /// A kind that is not among these; and as [`Trainer::load`].
    pub fn load(&self, profile: &Profile, schema: &FeatureSchema) -> Result<Box<dyn Predictor>, TrainError> {
        let kind = &profile.header.model_kind;
        self.get(kind).map_err(|e| TrainError::new(kind, e))?.load(&profile.model, schema)
    }
}

/// No trainer has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of model {kind:?}: it is one of {known}")]
pub struct UnknownKind {
    /// What was asked for.
    pub kind: String,
    /// What there is.
    pub known: String,
}

/// A fitted model.
pub struct Trained {
    /// To predict with.
    pub predictor: Box<dyn Predictor>,
    /// To store.
    pub model: serde_json::Value,
    /// Mean squared error of the log-time of inputs that chose nothing of the model; None where the kind has none. Of the perceptron:
    /// inputs set aside in two halves, each at the epoch that is best for the other.
    pub cv_mse: Option<f64>,
}

/// Why there is no model.
#[derive(Debug, thiserror::Error)]
#[error("model {kind:?}: {source}")]
pub struct TrainError {
    /// The kind of model.
    pub kind: String,
    /// What its own crate reports.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl TrainError {
    /// Wraps what a model's crate reports.
    pub fn new(kind: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { kind: kind.to_owned(), source: source.into() }
    }
}
