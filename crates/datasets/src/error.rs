//! What can be wrong with a dataset, and where.

use std::path::PathBuf;
use tilewright_core::choice::ChoiceError;
use tilewright_core::expr::EvalError;
use tilewright_core::space::SpaceError;
use tilewright_core::training::TrainingError;

/// The longest text of a cell that a message repeats, in characters.
const BRIEF: usize = 60;

/// A text as messages repeat it: whole where it is short.
pub(crate) fn brief(text: &str) -> String {
    match text.char_indices().nth(BRIEF) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
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
    /// The sidecar is no JSON of the right shape.
    #[error("{}, line {line}, column {column}: {message}", path.display())]
    Json {
        /// The sidecar.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Byte within the line, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// The sidecar is of another format or a version that this program does not know.
    #[error("{}: format {format:?} version {version}; this program reads \"tilewright-dataset\" version 1", path.display())]
    Version {
        /// The sidecar.
        path: PathBuf,
        /// Its format.
        format: String,
        /// Its version.
        version: u64,
    },
    /// A field of the sidecar makes no sense.
    #[error("{}: field {field:?}: {message}", path.display())]
    Schema {
        /// The sidecar.
        path: PathBuf,
        /// The field, as a path of keys.
        field: String,
        /// What is wrong.
        message: String,
    },
    /// The table is no CSV, or a line has another number of cells than the header.
    #[error("{}, line {line}: {message}", path.display())]
    Csv {
        /// The table.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What is wrong.
        message: String,
    },
    /// A cell that its column cannot hold.
    #[error("{}, line {line}, column {column:?}: {value:?} {message}", path.display())]
    Cell {
        /// The table.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Name of the column.
        column: String,
        /// The text that stands there.
        value: String,
        /// What is wrong.
        message: String,
    },
    /// A column that would become more features than any model needs.
    #[error(
        "{}: column {column:?} has {words} distinct words, such as {example:?}; at most {most} become features: leave the column \
         out, or correct what should be a number", path.display()
    )]
    Words {
        /// The table.
        path: PathBuf,
        /// Name of the column.
        column: String,
        /// How many values.
        words: usize,
        /// One that is no number.
        example: String,
        /// The limit.
        most: usize,
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
    /// A recording by Kernel Tuner that makes no sense.
    #[error("{}: {entry}, field {field:?}: {message}", path.display())]
    Recording {
        /// The file.
        path: PathBuf,
        /// Which entry: its key, or its place in the list.
        entry: String,
        /// The field.
        field: String,
        /// What is wrong.
        message: String,
    },
    /// A file that is none of the formats that are read.
    #[error("{}: {message}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Nothing was recorded for what was asked.
    #[error("nothing recorded for {what}")]
    NotRecorded {
        /// The device or the input.
        what: String,
    },
    /// The recorded configurations are no space.
    #[error(transparent)]
    Space(#[from] SpaceError),
}
