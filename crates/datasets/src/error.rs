//! What can be wrong with a dataset, and where.

use std::fmt;
use std::path::{Path, PathBuf};
use tilewright_core::choice::ChoiceError;
use tilewright_core::expr::EvalError;
use tilewright_core::space::SpaceError;
use tilewright_core::training::TrainingError;

/// Where in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The whole of it.
    File,
    /// A line, from 1.
    Line(u64),
    /// A byte of a line of JSON, both from 1.
    Json {
        /// Line.
        line: usize,
        /// Byte within the line.
        column: usize,
    },
    /// A cell of a table.
    Cell {
        /// Line, from 1.
        line: u64,
        /// Name of the column.
        column: String,
    },
    /// A field of a sidecar, as a path of keys.
    Field(String),
    /// A field of a recording.
    Entry {
        /// Which entry: its key, or its place in the list.
        entry: String,
        /// The field.
        field: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => Ok(()),
            Self::Line(line) => write!(f, ", line {line}"),
            Self::Json { line, column } => write!(f, ", line {line}, column {column}"),
            Self::Cell { line, column } => write!(f, ", line {line}, column {column:?}"),
            Self::Field(field) => write!(f, ": field {field:?}"),
            Self::Entry { entry, field } => write!(f, ": {entry}, field {field:?}"),
        }
    }
}

impl DatasetError {
    pub(crate) fn at(path: &Path, place: Place, message: impl Into<String>) -> Self {
        Self::Invalid { path: path.into(), place, message: message.into() }
    }

    pub(crate) fn json(path: &Path, error: &serde_json::Error) -> Self {
        Self::at(path, Place::Json { line: error.line(), column: error.column() }, error.to_string())
    }

    /// What the system said of a file.
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        |error| Self::Io { path: path.into(), error }
    }
}

/// A dataset that cannot be read, written, split or learned from.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The system refused a file.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: std::io::Error,
    },
    /// Contents that make no sense.
    #[error("{}{place}: {message}", path.display())]
    Invalid {
        /// The file: a table, its sidecar or a recording.
        path: PathBuf,
        /// Where in it.
        place: Place,
        /// What is wrong.
        message: String,
    },
    /// A derived feature that has no value in a row without missing cells.
    #[error("derived feature {name:?}, row {row}: {error}")]
    Derived {
        /// The feature.
        name: String,
        /// The row, from 0.
        row: usize,
        /// Why.
        error: EvalError,
    },
    /// A row that a training set refuses.
    #[error(transparent)]
    Training(#[from] TrainingError),
    /// Rows that are no choice among variants.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// A split that cannot be made.
    #[error("split {spec:?}: {message}")]
    Split {
        /// The split as written.
        spec: String,
        /// What is wrong, with the limit.
        message: String,
    },
    /// Records that do not fit one table.
    #[error("record {record}, field {field:?}: {message}")]
    Record {
        /// Which record, from 0.
        record: usize,
        /// The name of the word or parameter.
        field: String,
        /// What is wrong.
        message: String,
    },
    /// Nothing was recorded for what was asked.
    #[error("nothing recorded for {what}")]
    NotRecorded {
        /// The device or the input.
        what: String,
    },
    /// Several devices or inputs were recorded where one is wanted.
    #[error("{} {what}s were recorded, and one is wanted: {}", choices.len(), some(choices))]
    Several {
        /// `device` or `input`.
        what: &'static str,
        /// What was recorded, in order of appearance.
        choices: Vec<String>,
    },
    /// The recorded configurations are no space.
    #[error(transparent)]
    Space(#[from] SpaceError),
}

/// Choices that a message lists.
const LISTED: usize = 12;

fn some(choices: &[String]) -> String {
    let listed = choices.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join("; ");
    match choices.len().saturating_sub(LISTED) {
        0 => listed,
        more => format!("{listed}; and {more} more"),
    }
}
