//! Errors as the command line reports them: a kind, a field, a message, an exit code.

use serde_json::json;

/// What kind of failure, which decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The command line is wrong. Exit code 2.
    Usage,
    /// An input, a parameter or a file is wrong. Exit code 2.
    Input,
    /// Nothing is legal, or nothing was found. Exit code 3.
    Nothing,
    /// The device is missing or failed. Exit code 4.
    Device,
    /// A stored file is corrupt, foreign, locked or cannot be written. Exit code 1.
    Store,
    /// A result was wrong. Exit code 1.
    Wrong,
    /// Anything else. Exit code 1.
    Other,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Input => "input",
            Self::Nothing => "nothing",
            Self::Device => "device",
            Self::Store => "store",
            Self::Wrong => "wrong_result",
            Self::Other => "other",
        }
    }

    /// The process exit code.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Usage | Self::Input => 2,
            Self::Nothing => 3,
            Self::Device => 4,
            Self::Store | Self::Wrong | Self::Other => 1,
        }
    }
}

/// A failed command.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}{message}", if field.is_empty() { String::new() } else { format!("{field}: ") })]
pub(crate) struct Failure {
    pub kind: Kind,
    /// The word, flag or file that is at fault; may be empty.
    pub field: String,
    pub message: String,
}

impl Failure {
    pub(crate) fn new(kind: Kind, field: &str, message: impl ToString) -> Self {
        Self { kind, field: field.to_owned(), message: message.to_string() }
    }

    /// The JSON document of an error.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        json!({ "error": { "kind": self.kind.name(), "field": self.field, "message": self.message } })
    }
}
