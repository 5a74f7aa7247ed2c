//! Models that predict the cost of a configuration before it is measured.

use crate::feature::{FeatureSchema, SchemaMismatch};
use crate::id::KernelId;
use crate::problem::Problem;
use crate::space::{Point, Points};
use crate::training::TrainingSet;

/// Predicts the natural logarithm of the cost (seconds) of configurations.
pub trait Predictor: Send + Sync {
    /// What it is, in a word: `mlp`, `linear`.
    fn kind(&self) -> &str {
        "fitted"
    }

    /// Whether its word costs too much to ask for every legal point of a large space: a sample is asked about instead.
    fn is_costly(&self) -> bool {
        false
    }

    /// Whether its word is the cost on the device at hand. Otherwise only the order of its words counts, as those of a model that was
    /// fitted elsewhere.
    fn is_calibrated(&self) -> bool {
        true
    }

    /// Fixes kernel, device and input: their share of the model is computed once.
    ///
    /// # Errors
    /// The model does not speak of this problem.
    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError>;
}

impl<P: Predictor + ?Sized> Predictor for Box<P> {
    fn kind(&self) -> &str {
        (**self).kind()
    }

    fn is_costly(&self) -> bool {
        (**self).is_costly()
    }

    fn is_calibrated(&self) -> bool {
        (**self).is_calibrated()
    }

    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        (**self).bind(problem)
    }
}

/// Why a model has no word for a problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// The model was fitted on other features.
    #[error(transparent)]
    Schema(#[from] SchemaMismatch),
    /// The model needs operation counts, and nothing counts this kernel on this device.
    #[error("the operations of {kernel} are not counted on {device}")]
    Uncounted {
        /// The kernel.
        kernel: KernelId,
        /// The device.
        device: String,
    },
}

/// How well the inputs that a model was fitted on cover another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    /// None of them is near: the model's word is a guess.
    None,
    /// Too few are near for a word that can be relied upon.
    Sparse,
    /// It is one of them, or several are near; or nothing is known of them.
    Full,
}

/// A predictor with the problem fixed.
pub trait Scorer: Send + Sync {
    /// Log-costs of legal points of the problem, one result per element of `out`. Results do not depend on how points are
    /// batched.
    fn score(&self, points: Points<'_>, out: &mut [f32]);

    /// A cheaper model of the same scores, for a search that looks at everything with it first.
    fn screen(&self) -> Option<Screen<'_>> {
        None
    }

    /// How well the inputs that the model was fitted on cover this one. Models that were fitted on the same inputs may well agree where none is
    /// near, and all be wrong.
    fn coverage(&self) -> Coverage {
        Coverage::Full
    }

    /// Log-costs by each of the models whose mean the score is, one after the other; the score itself where there is one model.
    fn opinions(&self, points: Points<'_>) -> Vec<Vec<f32>> {
        let mut out = vec![0.0; points.len()];
        self.score(points, &mut out);
        vec![out]
    }
}

impl dyn Scorer + '_ {
    /// Log-costs of points that are held one by one.
    pub fn score_each<'p>(&self, points: impl IntoIterator<Item = &'p Point>) -> Vec<f32> {
        let (indices, len) = together(points);
        let mut scores = vec![0.0; len];
        self.score(Points::new(&indices, len), &mut scores);
        scores
    }

    /// [`Scorer::opinions`] of points that are held one by one.
    pub fn opinions_each<'p>(&self, points: impl IntoIterator<Item = &'p Point>) -> Vec<Vec<f32>> {
        let (indices, len) = together(points);
        self.opinions(Points::new(&indices, len))
    }
}

fn together<'p>(points: impl IntoIterator<Item = &'p Point>) -> (Vec<u16>, usize) {
    let (mut indices, mut len) = (Vec::new(), 0);
    for point in points {
        indices.extend_from_slice(point);
        len += 1;
    }
    (indices, len)
}

/// A cheap stand-in for a scorer, and how far it may be trusted.
pub struct Screen<'a> {
    /// The cheap scorer.
    pub scorer: &'a dyn Scorer,
    /// A point whose cheap score exceeds the best cheap score by more than this (in log-cost) is not the best of the
    /// full model, at the confidence that the model was fitted for.
    pub margin: f32,
}

/// A predictor that sees a configuration as a row of features, and so can be fitted and judged on tables of recorded rows.
pub trait RowPredictor: Predictor {
    /// The columns that the model was fitted on.
    fn schema(&self) -> &FeatureSchema;

    /// Log-costs of full rows (input features, then config features), row-major. Appends one number a row to `out`.
    fn predict(&self, rows: &[f32], out: &mut Vec<f32>);
}

/// Fits a predictor.
pub trait Fit {
    /// What is fitted.
    type Model: RowPredictor;
    /// Why it could not be.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Fits on the rows. The same rows and seed give the same model.
    ///
    /// # Errors
    /// Too few rows, or rows that cannot be learned from.
    fn fit(&self, data: &TrainingSet, seed: u64) -> Result<Self::Model, Self::Error>;
}

/// Points whose rows are computed together: few enough to stay in a second-level cache.
const ROWS_TOGETHER: usize = 512;

/// [`Predictor::bind`] of a row predictor that has no quicker way: scores a point by its full row.
///
/// # Errors
/// The problem's features are of another schema.
pub fn bind_rows<'a>(model: &'a dyn RowPredictor, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
    model.schema().expect(problem.schema())?;
    let mut input = Vec::new();
    problem.input_features(&mut input);
    Ok(Box::new(ByRows { model, problem, input }))
}

struct ByRows<'a> {
    model: &'a dyn RowPredictor,
    problem: &'a dyn Problem,
    input: Vec<f32>,
}

impl Scorer for ByRows<'_> {
    fn score(&self, points: Points<'_>, out: &mut [f32]) {
        let (mut rows, mut scores) = (Vec::new(), Vec::new());
        for (block, out) in out.chunks_mut(ROWS_TOGETHER).enumerate() {
            rows.clear();
            scores.clear();
            for point in points.part(block * ROWS_TOGETHER, out.len()).iter() {
                rows.extend_from_slice(&self.input);
                self.problem.config_features(point, &mut rows);
            }
            self.model.predict(&rows, &mut scores);
            // A model that gives too few numbers is worst where they are missing.
            out.fill(f32::NAN);
            out.iter_mut().zip(&scores).for_each(|(out, score)| *out = *score);
        }
    }
}
