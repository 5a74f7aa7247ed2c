//! Fitting and reading back models of any kind, without knowing which.

use tilewright_core::feature::FeatureSchema;
use tilewright_core::predictor::Predictor;
use tilewright_core::training::TrainingSet;

/// Fits one kind of model, and reads back what it fitted.
pub trait Trainer: Send + Sync {
    /// The kind, as profiles record it: `mlp`.
    fn kind(&self) -> &str;

    /// Fits a model. The same rows and seed give the same model.
    ///
    /// # Errors
    /// Rows that cannot be learned from.
    fn train(&self, data: &TrainingSet, seed: u64) -> Result<Trained, TrainError>;

    /// Reads back [`Trained::model`].
    ///
    /// # Errors
    /// It is not of this kind, damaged, or of another schema.
    fn load(&self, model: &serde_json::Value, schema: &FeatureSchema) -> Result<Box<dyn Predictor>, TrainError>;
}

/// A fitted model.
pub struct Trained {
    /// To predict with.
    pub predictor: Box<dyn Predictor>,
    /// To store.
    pub model: serde_json::Value,
    /// Cross-validated mean squared error of the log-time, in the model's own (standardised) unit; None where the kind
    /// has none.
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
