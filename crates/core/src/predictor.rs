//! Models that predict the cost of a configuration before it is measured.

use crate::feature::{FeatureSchema, SchemaMismatch};
use crate::problem::Problem;
use crate::training::TrainingSet;

/// Predicts the natural logarithm of the cost (seconds) of feature rows.
pub trait Predictor: Send + Sync {
    /// The columns that the model was fitted on.
    fn schema(&self) -> &FeatureSchema;

    /// What it is, in a word: `mlp`, `linear`.
    fn kind(&self) -> &str {
        "fitted"
    }

    /// Log-costs of full rows (input features, then config features), row-major. Appends one number a row to `out`.
    fn predict(&self, rows: &[f32], out: &mut Vec<f32>);

    /// Fixes the input: its share of the model is computed once.
    ///
    /// # Errors
    /// The problem's features are of another schema.
    fn bind(&self, problem: &dyn Problem) -> Result<Box<dyn Scorer + '_>, SchemaMismatch>;
}

/// A predictor with the input fixed.
pub trait Scorer: Send + Sync {
    /// Log-costs of config-feature rows, row-major, `schema.config.len()` numbers a row, one result per element of
    /// `out`. Results do not depend on how rows are batched.
    fn score(&self, config_rows: &[f32], out: &mut [f32]);

    /// A cheaper model of the same scores, for a search that looks at everything with it first.
    fn screen(&self) -> Option<Screen<'_>> {
        None
    }
}

/// A cheap stand-in for a scorer, and how far it may be trusted.
pub struct Screen<'a> {
    /// The cheap scorer.
    pub scorer: &'a dyn Scorer,
    /// A point whose cheap score exceeds the best cheap score by more than this (in log-cost) is not the best of the
    /// full model, at the confidence that the model was fitted for.
    pub margin: f32,
}

/// Fits a predictor.
pub trait Fit {
    /// What is fitted.
    type Model: Predictor;
    /// Why it could not be.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Fits on the rows. The same rows and seed give the same model.
    ///
    /// # Errors
    /// Too few rows, or rows that cannot be learned from.
    fn fit(&self, data: &TrainingSet, seed: u64) -> Result<Self::Model, Self::Error>;
}
