//! What can go wrong.

use tilewright_core::document::DocumentError;
use tilewright_core::setting::SettingError;
use tilewright_core::text::counted;

/// Why there are no weights.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LinearError {
    /// Fewer rows than properties that they have.
    #[error("{} for {}: at least as many rows are needed", counted(.rows, "row"), counted(.properties, "property"))]
    TooFewRows {
        /// Rows given.
        rows: usize,
        /// Properties with a number in any of them.
        properties: usize,
    },
    /// Properties that no combination of rows tells apart.
    #[error("the property matrix is singular: these cannot be told apart: {}", show(.0))]
    Singular(Vec<Vec<String>>),
    /// A row of another length than the properties.
    #[error("row {row:?} has {found} counts, {expected} are expected")]
    Width {
        /// The row.
        row: String,
        /// Its counts.
        found: usize,
        /// The number of properties.
        expected: usize,
    },
    /// A count or a time that is no number, or is below zero.
    #[error("row {row:?}: {property} is {value}: counts are finite and not negative, times positive")]
    Value {
        /// The row.
        row: String,
        /// The property, or `time_s`.
        property: String,
        /// What it is.
        value: String,
    },
    /// A setting outside of its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The minimisation met no finite value.
    #[error("fitting the overlap: {0}")]
    Numeric(String),
}

fn show(groups: &[Vec<String>]) -> String {
    groups.iter().map(|group| group.join(" and ")).collect::<Vec<_>>().join("; ")
}

/// Why a stored model is not read.
#[derive(Debug, thiserror::Error)]
pub enum ModelFileError {
    /// Another kind of document, another version, or contents that were changed.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// Weights of another device.
    #[error("the weights are of the device {found}, not of {expected}")]
    Device {
        /// Fingerprint in the file.
        found: String,
        /// Fingerprint of the device at hand.
        expected: String,
    },
    /// A number out of range.
    #[error("{field} is {value}")]
    Number {
        /// Which.
        field: String,
        /// What it is.
        value: String,
    },
}
