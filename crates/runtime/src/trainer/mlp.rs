//! The perceptron.

use super::{TrainError, Trained, Trainer};
use serde_json::Value;
use tilewright_core::feature::FeatureSchema;
use tilewright_core::predictor::{Fit, Predictor, RowPredictor};
use tilewright_core::training::TrainingSet;
use tilewright_perfmodel_mlp::{Mlp, MlpFit, ScreenSettings, Settings};

/// ISAAC's multi-layer perceptron with a distilled screen.
#[derive(Clone, Copy, Debug, Default)]
pub struct MlpTrainer;

const KIND: &str = "mlp";

/// Networks whose mean is the model: on the host's GEMM the choices of three lose a sixth less than those of one, those of four
/// hardly less than that.
const MEMBERS: usize = 3;

impl Trainer for MlpTrainer {
    fn kind(&self) -> &str {
        KIND
    }

    fn train(&self, data: &TrainingSet, seed: u64) -> Result<Trained, TrainError> {
        let settings = Settings { members: MEMBERS, ..Settings::default() };
        let fit = MlpFit { settings, screen: Some(ScreenSettings::default()) };
        Ok(trained(fit.fit(data, seed).map_err(|e| TrainError::new(KIND, e))?))
    }

    fn fixing(&self, model: &Value, last: &[f32]) -> Result<Trained, TrainError> {
        let model = Mlp::from_value(model.clone()).map_err(|e| TrainError::new(KIND, e))?;
        Ok(trained(model.fixing(last).map_err(|e| TrainError::new(KIND, e))?))
    }

    fn load(&self, model: &Value, schema: &FeatureSchema) -> Result<Box<dyn Predictor>, TrainError> {
        let model = Mlp::from_value(model.clone()).map_err(|e| TrainError::new(KIND, e))?;
        schema.expect(model.schema()).map_err(|e| TrainError::new(KIND, e))?;
        Ok(Box::new(model))
    }
}

fn trained(model: Mlp) -> Trained {
    // Of inputs that neither training nor the choice of the epoch saw; what a model was stored with, where it lacks that.
    let report = model.report();
    let cv_mse = Some(report.unseen_mse.unwrap_or_else(|| report.best_mse()));
    Trained { model: model.to_value(), cv_mse, predictor: Box::new(model) }
}
