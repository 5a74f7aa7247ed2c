//! What is wrong with a description, and where.

use std::fmt;
use std::path::{Path, PathBuf};

/// A fault of a description, its source, or what they name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserError {
    /// The file.
    pub file: PathBuf,
    /// Line and column in it, from 1, where the fault has a place.
    pub at: Option<(usize, usize)>,
    /// The field, as `KernelSpecification.Arguments[2].Size`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl UserError {
    pub(crate) fn new(file: &Path, field: &str, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), at: None, field: field.to_owned(), message: message.into() }
    }
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some((line, column)) = self.at {
            write!(f, ":{line}:{column}")?;
        }
        if self.field.is_empty() {
            write!(f, ": {}", self.message)
        } else {
            write!(f, ": {}: {}", self.field, self.message)
        }
    }
}

impl std::error::Error for UserError {}

/// A fault by its field, before file and place are known.
pub(crate) struct Fault {
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn at(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}
