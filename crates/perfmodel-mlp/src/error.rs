//! What can go wrong, each with the field and the limit it broke.

use thiserror::Error;
use tilewright_core::setting::SettingError;
use tilewright_core::text::counted;

/// Why a model could not be fitted.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// Fewer usable rows than a split into training and validation needs.
    #[error("{}, at least {needed} are needed to fit and to validate", counted(.rows, "usable row"))]
    TooFewRows {
        /// Rows with a finite time.
        rows: usize,
        /// The least that is accepted.
        needed: usize,
    },
    /// Rows without any feature.
    #[error("the rows have no features")]
    NoFeatures,
    /// A column, a target or a group list of another length than the rows.
    #[error("{field} has {have} entries, expected {expected}")]
    Length {
        /// What is too long or too short.
        field: &'static str,
        /// Its length.
        have: usize,
        /// The length that was expected.
        expected: usize,
    },
    /// A target that is not a number.
    #[error("the log time of row {row} is not finite")]
    NonFiniteTarget {
        /// Index of the row.
        row: usize,
    },
    /// A setting outside its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The loss left the range of finite numbers.
    #[error("training diverged in epoch {epoch}: lower the learning rate ({learning_rate})")]
    Diverged {
        /// Epoch, from 0.
        epoch: usize,
        /// The rate that was set.
        learning_rate: f32,
    },
}
