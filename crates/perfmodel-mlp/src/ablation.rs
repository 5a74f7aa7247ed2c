//! The paper's ablation on any training set: log features against raw ones, the architectures of Table 2, and the error
//! against the number of training rows (Figure 5).

use std::time::Instant;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use tilewright_core::predictor::Fit;
use tilewright_core::setting::SettingError;
use tilewright_core::training::TrainingSet;

use crate::error::TrainError;
use crate::fit::{MlpFit, check, mse, variance};
use crate::layout::Layout;
use crate::settings::{FeatureScale, Settings};
use crate::split::set_aside;
use crate::train::LEAST_ROWS;

/// What to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Ablation {
    /// Architectures, each fitted on log features and on raw ones.
    pub layouts: Vec<Layout>,
    /// Numbers of training rows for the last architecture, on log features; larger ones than there are rows are left out.
    pub sizes: Vec<usize>,
    /// Everything else about the fits.
    pub settings: Settings,
    /// Share of the rows (whole groups, as `settings.split_by` says) that every fit is tested on and none learns from.
    pub test: f64,
}

impl Default for Ablation {
    /// Table 2's architectures, and sizes that double from 1,000 rows.
    fn default() -> Self {
        Self {
            layouts: Layout::table_2().into(),
            sizes: (0..9).map(|power| 1000 << power).collect(),
            settings: Settings::default(),
            test: 0.2,
        }
    }
}

/// One fit of the ablation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AblationFit {
    /// Hidden layers.
    pub layout: Layout,
    /// Weights, biases not counted.
    pub weights: usize,
    /// What the network saw.
    pub features: FeatureScale,
    /// Rows it was given (early stopping sets some of them aside).
    pub rows: usize,
    /// Mean squared error of the natural log of the cost on the test rows; absent where training diverged.
    pub mse: Option<f64>,
    /// Wall-clock time of the fit, in seconds.
    pub seconds: f64,
}

/// The ablation's results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AblationReport {
    /// Rows of the training side.
    pub training_rows: usize,
    /// Rows that every error is measured on.
    pub test_rows: usize,
    /// Variance of the natural log of the cost on the test rows: the error of a model that knows nothing.
    pub variance: f64,
    /// Table 2: for each architecture, log features and then raw ones.
    pub architectures: Vec<AblationFit>,
    /// Figure 5: the last architecture on more and more rows.
    pub sizes: Vec<AblationFit>,
}

impl Ablation {
    /// Runs every fit; `progress` hears of each as it ends.
    ///
    /// # Errors
    /// As [`Fit::fit`], except that a fit that diverges is reported as having no error. A test share outside (0, 1), or
    /// no architectures.
    pub fn run(
        &self,
        data: &TrainingSet,
        seed: u64,
        progress: &mut dyn FnMut(&AblationFit),
    ) -> Result<AblationReport, TrainError> {
        check(data)?;
        SettingError::check("test", self.test, self.test > 0.0 && self.test < 1.0, "between 0 and 1")?;
        let none = || SettingError::new("layouts", "no architecture", "at least one");
        let largest = self.layouts.last().ok_or_else(none)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut train, test) = set_aside(&data.groups, self.settings.split_by, self.test, &mut rng);
        train.shuffle(&mut rng);
        let test = data.subset(&test);
        let training = data.subset(&train);
        let mut fit = |layout: &Layout, features, rows: &TrainingSet| {
            let done = self.fit(layout, features, rows, &test, seed)?;
            progress(&done);
            Ok::<_, TrainError>(done)
        };
        let mut architectures = Vec::new();
        for layout in &self.layouts {
            for features in [FeatureScale::Log2, FeatureScale::Raw] {
                architectures.push(fit(layout, features, &training)?);
            }
        }
        let mut sizes = Vec::new();
        for &size in self.sizes.iter().filter(|&&size| size >= LEAST_ROWS && size <= train.len()) {
            sizes.push(fit(largest, FeatureScale::Log2, &data.subset(&train[..size]))?);
        }
        Ok(AblationReport {
            training_rows: train.len(),
            test_rows: test.len(),
            variance: variance(&test),
            architectures,
            sizes,
        })
    }

    fn fit(
        &self,
        layout: &Layout,
        features: FeatureScale,
        rows: &TrainingSet,
        test: &TrainingSet,
        seed: u64,
    ) -> Result<AblationFit, TrainError> {
        let start = Instant::now();
        let settings = Settings { layout: layout.clone(), features, ..self.settings.clone() };
        let mse = match (MlpFit { settings, screen: None }).fit(rows, seed) {
            Ok(model) => Some(mse(&model, test)),
            Err(TrainError::Diverged { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(AblationFit {
            layout: layout.clone(),
            weights: layout.weights(rows.schema.width()),
            features,
            rows: rows.len(),
            mse,
            seconds: start.elapsed().as_secs_f64(),
        })
    }
}
