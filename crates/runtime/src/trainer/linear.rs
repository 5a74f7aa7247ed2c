//! A model of any kind over the linear model of a device.

use super::{TrainError, Trained, Trainer};
use serde_json::{Value, json};
use tilewright_core::feature::FeatureSchema;
use tilewright_core::predictor::Predictor;
use tilewright_core::prior::WithPrior;
use tilewright_core::training::TrainingSet;
use tilewright_perfmodel_linear::LinearModel;

/// Fits a model of another kind with the linear model of the device as its prior; both are stored. Of `mlp`, the kind is
/// `mlp-over-linear`.
pub struct OverLinear<T> {
    kind: String,
    trainer: T,
    prior: Option<LinearModel>,
}

impl<T: Trainer> OverLinear<T> {
    /// Fits over the weights of a device.
    pub fn new(trainer: T, prior: LinearModel) -> Self {
        Self { prior: Some(prior), ..Self::reading(trainer) }
    }

    /// Only reads back: without weights nothing can be fitted.
    pub fn reading(trainer: T) -> Self {
        Self { kind: format!("{}-over-linear", trainer.kind()), trainer, prior: None }
    }

    fn error(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TrainError {
        TrainError::new(&self.kind, source)
    }
}

impl<T: Trainer> Trainer for OverLinear<T> {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn prior(&self) -> Option<&dyn Predictor> {
        self.prior.as_ref().map(|prior| prior as &dyn Predictor)
    }

    fn train(&self, data: &TrainingSet, seed: u64) -> Result<Trained, TrainError> {
        let Some(prior) = self.prior.clone() else { return Err(self.error("the device has no linear model yet")) };
        let over = self.trainer.train(data, seed)?;
        let model = json!({ "prior": prior.to_value().map_err(|e| self.error(e))?, "model": over.model });
        Ok(Trained { predictor: Box::new(WithPrior::new(prior, over.predictor)), model, cv_mse: over.cv_mse })
    }

    fn load(&self, model: &Value, schema: &FeatureSchema) -> Result<Box<dyn Predictor>, TrainError> {
        let prior = LinearModel::from_value(model["prior"].clone()).map_err(|e| self.error(e))?;
        Ok(Box::new(WithPrior::new(prior, self.trainer.load(&model["model"], schema)?)))
    }
}
