//! Fitting a model on a training set.

use ndarray::{ArrayView2, ShapeBuilder};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tilewright_core::feature::FeatureKind;
use tilewright_core::predictor::{Fit, RowPredictor};
use tilewright_core::setting::SettingError;
use tilewright_core::training::TrainingSet;

use crate::domain::Domain;
use crate::error::TrainError;
use crate::model::Mlp;
use crate::screen::ScreenSettings;
use crate::settings::Settings;
use crate::split::deal;
use crate::train::{LEAST_ROWS, Samples, train};

/// Fits an [`Mlp`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MlpFit {
    /// The network and its optimiser.
    pub settings: Settings,
    /// How searches with the model are screened; `None` for never.
    pub screen: Option<ScreenSettings>,
}

/// Errors of a cross-validation: mean squared errors of the natural log of the cost, one for each fold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrossValidation {
    /// Error on each fold, of a model that did not see it.
    pub fold_mse: Vec<f64>,
    /// Their mean, weighted by rows.
    pub mse: f64,
    /// One minus the error over the variance of the log cost.
    pub r2: f64,
}

impl MlpFit {
    /// Cross-validates: fits on all but one of `folds` parts, scores the one left out, for each.
    ///
    /// # Errors
    /// As [`Fit::fit`], or fewer than two folds.
    pub fn cross_validate(&self, data: &TrainingSet, folds: usize, seed: u64) -> Result<CrossValidation, TrainError> {
        SettingError::check("folds", folds, folds >= 2, "at least 2")?;
        check(data)?;
        let fit = Self { screen: None, ..self.clone() };
        let parts = deal(&data.groups, self.settings.split_by, folds, &mut ChaCha8Rng::seed_from_u64(seed));
        let fold_mse = (0..folds).map(|fold| {
            let rest = [&parts[..fold], &parts[fold + 1..]].concat().concat();
            let model = fit.fit(&data.subset(&rest), seed)?;
            Ok(mse(&model, &data.subset(&parts[fold])))
        });
        let fold_mse = fold_mse.collect::<Result<Vec<f64>, TrainError>>()?;
        let mse = fold_mse.iter().zip(&parts).map(|(mse, part)| mse * part.len() as f64).sum::<f64>();
        let mse = mse / data.len() as f64;
        Ok(CrossValidation { fold_mse, mse, r2: 1.0 - mse / variance(data) })
    }
}

/// Mean squared error of the natural log of the cost; 0 for an empty set.
///
/// The rows must be of the model's schema.
pub fn mse(model: &Mlp, data: &TrainingSet) -> f64 {
    let mut predicted = Vec::with_capacity(data.len());
    model.predict(&data.rows, &mut predicted);
    let errors = predicted.iter().zip(&data.costs).map(|(&ours, cost)| (f64::from(ours) - cost.ln()).powi(2));
    errors.sum::<f64>() / data.len().max(1) as f64
}

/// Variance of the natural log of the cost: the error of a model that knows nothing.
pub(crate) fn variance(data: &TrainingSet) -> f64 {
    let rows = data.len().max(1) as f64;
    let mean = data.costs.iter().map(|cost| cost.ln()).sum::<f64>() / rows;
    data.costs.iter().map(|cost| (cost.ln() - mean).powi(2)).sum::<f64>() / rows
}

impl Fit for MlpFit {
    type Model = Mlp;
    type Error = TrainError;

    fn fit(&self, data: &TrainingSet, seed: u64) -> Result<Mlp, TrainError> {
        check(data)?;
        let y: Vec<f32> = data.costs.par_iter().map(|cost| cost.ln() as f32).collect();
        let sizes: Vec<bool> = data.schema.iter().map(|feature| feature.kind == FeatureKind::Size).collect();
        let shape = (data.len(), data.schema.width()).into_shape_with_order();
        let x = ArrayView2::from_shape(shape, &data.rows).map_err(|_| TrainError::Length {
            field: "rows",
            have: data.rows.len(),
            expected: data.len(),
        })?;
        let samples = Samples { x, y: &y, groups: &data.groups, sizes: &sizes };
        self.screen.iter().try_for_each(ScreenSettings::check)?;
        // Each from a start of its own: seeds of different models do not share one.
        let members = (0..self.settings.members as u64).into_par_iter();
        let seed = |member: u64| seed.wrapping_add(member.wrapping_mul(MEMBER));
        let members = members.map(|member| train(samples, &self.settings, seed(member)));
        let model = Mlp::new(data.schema.clone(), members.collect::<Result<_, _>>()?, self.screen.clone());
        Ok(model.with_domain(Some(Domain::learn(data))))
    }
}

/// From the seed of a network to that of the next: 2^64 over the golden ratio.
const MEMBER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A training set's fields are open to all: they must belong together.
pub(crate) fn check(data: &TrainingSet) -> Result<(), TrainError> {
    let rows = data.costs.len();
    if data.schema.width() == 0 {
        return Err(TrainError::NoFeatures);
    }
    if rows < LEAST_ROWS {
        return Err(TrainError::TooFewRows { rows, needed: LEAST_ROWS });
    }
    let lengths = [("rows", data.rows.len(), rows * data.schema.width()), ("groups", data.groups.len(), rows)];
    for (field, have, expected) in lengths {
        if have != expected {
            return Err(TrainError::Length { field, have, expected });
        }
    }
    match data.costs.iter().position(|cost| !(cost.is_finite() && *cost > 0.0)) {
        Some(row) => Err(TrainError::NonFiniteTarget { row }),
        None => Ok(()),
    }
}
