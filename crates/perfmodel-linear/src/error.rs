//! What can go wrong.

/// Why there are no weights.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LinearError {
    /// Fewer rows than properties that they have.
    #[error("{rows} rows for {properties} properties: at least as many rows are needed")]
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
    #[error("{field} is {value}, it must be {limit}")]
    Setting {
        /// The setting.
        field: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        limit: &'static str,
    },
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
    /// Another kind of document.
    #[error("this is no linear model but {found:?}")]
    Format {
        /// What it says to be.
        found: String,
    },
    /// Another version of the format.
    #[error("version {found} of the format is not known; version {known} is")]
    Version {
        /// What it says.
        found: u64,
        /// What is read.
        known: u64,
    },
    /// Contents that were changed.
    #[error("the checksum does not match: the model is damaged")]
    Checksum,
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
    /// Another shape.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}
