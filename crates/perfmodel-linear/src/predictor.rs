//! The linear model as a predictor on feature rows whose columns are counts.

use crate::error::LinearError;
use crate::fit::{Form, LinearFit};
use crate::model::LinearModel;
use crate::table::{Part, Property, Row, Table};
use tilewright_core::feature::FeatureSchema;
use tilewright_core::predictor::{BindError, Fit, Predictor, RowPredictor, Scorer, bind_rows};
use tilewright_core::problem::Problem;
use tilewright_core::training::TrainingSet;

/// Part of the least measured time that no prediction is below: weights of either sign can add up to nothing.
const FLOOR: f64 = 0.1;

/// Predicts from feature rows: every column is a count, and one more is 1.
#[derive(Clone, Debug)]
pub struct LinearPredictor {
    schema: FeatureSchema,
    model: LinearModel,
    least_s: f64,
}

impl LinearPredictor {
    fn log_time(&self, row: &[f32]) -> f32 {
        let counts: Vec<f64> = [1.0].into_iter().chain(row.iter().map(|x| f64::from(*x))).collect();
        let seconds = self.model.predict(&counts, 1.0).seconds;
        (if seconds > self.least_s { seconds } else { self.least_s }).ln() as f32
    }
}

impl RowPredictor for LinearPredictor {
    fn schema(&self) -> &FeatureSchema {
        &self.schema
    }

    fn predict(&self, rows: &[f32], out: &mut Vec<f32>) {
        out.extend(rows.chunks_exact(self.schema.width().max(1)).map(|row| self.log_time(row)));
    }
}

impl Predictor for LinearPredictor {
    fn kind(&self) -> &str {
        "linear"
    }

    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        bind_rows(self, problem)
    }
}

/// Fits [`LinearPredictor`]s.
#[derive(Clone, Copy, Debug)]
pub struct PredictorFit {
    /// How.
    pub fit: LinearFit,
}

impl Default for PredictorFit {
    fn default() -> Self {
        Self { fit: LinearFit { form: Form::NonNegative, ridge: 1e-9, ..LinearFit::default() } }
    }
}

impl Fit for PredictorFit {
    type Model = LinearPredictor;
    type Error = LinearError;

    fn fit(&self, data: &TrainingSet, _seed: u64) -> Result<LinearPredictor, LinearError> {
        let property = |name: &str, part| Property { name: name.to_owned(), part };
        let columns = data.schema.iter().map(|f| property(&f.name, Part::Arithmetic));
        let properties = [property("constant", Part::Overhead)].into_iter().chain(columns).collect();
        let mut table = Table::new(properties, 0.0);
        for i in 0..data.len() {
            let counts = [1.0].into_iter().chain(data.row(i).iter().map(|x| f64::from(*x))).collect();
            let row = Row { name: format!("row {i}"), counts, quantised: 1.0, time_s: data.costs[i] };
            table.push(row).map_err(|rejected| match rejected {
                crate::table::Rejected::Invalid(error) => error,
                other => LinearError::Numeric(other.to_string()),
            })?;
        }
        let model = self.fit.fit(&table, "")?;
        let least_s = FLOOR * data.costs.iter().copied().fold(f64::INFINITY, f64::min);
        Ok(LinearPredictor { schema: data.schema.clone(), model, least_s: least_s.max(f64::MIN_POSITIVE) })
    }
}
