//! How a network is fitted.

use serde::{Deserialize, Serialize};
use tilewright_core::setting::SettingError;

use crate::layout::Layout;

/// What the network sees of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeatureScale {
    /// Base-two logarithm of the features that the schema calls sizes (paper section 5.2).
    Log2,
    /// The features as they are: the ablation of Table 2.
    Raw,
}

/// Which rows stay together when some are set aside for validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitBy {
    /// Whole groups (inputs): the error on inputs that were never seen is watched. Falls back to rows where there are
    /// fewer than ten groups.
    Group,
    /// Single rows.
    Row,
}

/// Settings of the optimiser and of the split; the defaults fit 10,000 to 200,000 rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Hidden layers.
    pub layout: Layout,
    /// Networks whose mean is the model.
    #[serde(default = "one")]
    pub members: usize,
    /// What the network sees of a feature.
    pub features: FeatureScale,
    /// Most passes over the training rows.
    pub epochs: usize,
    /// Passes without a better validation error before training stops.
    pub patience: usize,
    /// Rows of a mini-batch; small sets take smaller ones, so that a pass has at least 32 steps where it can.
    pub batch: usize,
    /// Adam's step at its highest; it warms up over the first pass and falls to zero along a cosine.
    pub learning_rate: f32,
    /// Decoupled weight decay (AdamW), relative to the learning rate.
    pub weight_decay: f32,
    /// Share of the rows set aside for early stopping.
    pub validation: f64,
    /// What a split keeps together.
    pub split_by: SplitBy,
}

fn one() -> usize {
    1
}

/// Most networks of a model.
const MAX_MEMBERS: usize = 64;

impl Default for Settings {
    fn default() -> Self {
        Self {
            layout: Layout::default(),
            members: one(),
            features: FeatureScale::Log2,
            epochs: 80,
            patience: 20,
            batch: 256,
            learning_rate: 1e-2,
            weight_decay: 0.2,
            validation: 0.1,
            split_by: SplitBy::Group,
        }
    }
}

impl Settings {
    /// The settings, if each is in its range.
    ///
    /// # Errors
    /// The first setting that is not, with its limit.
    pub fn check(&self) -> Result<(), SettingError> {
        let positive = |value: f32| value.is_finite() && value > 0.0;
        let (epochs, batch, decay) = (self.epochs, self.batch, self.weight_decay);
        let members = self.members;
        SettingError::check("members", members, (1..=MAX_MEMBERS).contains(&members), "1 to 64")?;
        SettingError::check("epochs", epochs, (1..=100_000).contains(&epochs), "1 to 100000")?;
        SettingError::check("patience", self.patience, self.patience >= 1, "at least 1")?;
        SettingError::check("batch", batch, (1..=65_536).contains(&batch), "1 to 65536")?;
        let rate = self.learning_rate;
        SettingError::check("learning_rate", rate, positive(rate), "positive and finite")?;
        SettingError::check("weight_decay", decay, decay == 0.0 || positive(decay), "finite and not negative")?;
        let share = self.validation;
        SettingError::check("validation", share, share > 0.0 && share < 1.0, "between 0 and 1")
    }

    /// Rows of a mini-batch for a training set of `rows` rows.
    pub(crate) fn batch_for(&self, rows: usize) -> usize {
        const STEPS: usize = 32;
        const LEAST: usize = 16;
        self.batch.min((rows / STEPS).max(LEAST)).min(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range() {
        assert_eq!(Settings::default().check(), Ok(()));
    }

    #[test]
    fn a_setting_out_of_range_is_named() {
        let good = Settings::default;
        let bad = [
            ("members", Settings { members: 0, ..good() }),
            ("epochs", Settings { epochs: 0, ..good() }),
            ("patience", Settings { patience: 0, ..good() }),
            ("batch", Settings { batch: 0, ..good() }),
            ("learning_rate", Settings { learning_rate: f32::NAN, ..good() }),
            ("weight_decay", Settings { weight_decay: -1.0, ..good() }),
            ("validation", Settings { validation: 1.0, ..good() }),
        ];
        for (name, settings) in bad {
            assert!(matches!(settings.check(), Err(SettingError { field, .. }) if field == name), "{name}");
        }
    }
}
