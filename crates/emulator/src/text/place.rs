//! Where something stands in the text, and what is wrong there.

use serde::Serialize;
use std::fmt;

/// A place in a text; both numbers count from one, columns in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Text that is no PTX.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: expected {expected}, found {found}")]
pub struct ParseError {
    /// Where.
    pub place: Place,
    /// What could have stood there.
    pub expected: String,
    /// What stands there.
    pub found: String,
}
