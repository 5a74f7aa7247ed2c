//! Errors as the command line reports them: a kind, a field, a message, an exit code.

use serde_json::json;
use std::path::Path;
use tilewright::export::ArtefactError;
use tilewright::exporting::ExportError;
use tilewright_calibration::{WeightsError, WeightsErrorKind};
use tilewright_core::expr::within;
use tilewright_core::predictor::BindError;
use tilewright_core::problem::ProblemError;
use tilewright_core::program::DeviceError;
use tilewright_core::space::BoundSpace;
use tilewright_runtime::RuntimeError;

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
    /// A signal of this number ended it. Exit code 128 and the number, as shells have it.
    Interrupted(i32),
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
            Self::Interrupted(_) => "interrupted",
            Self::Other => "other",
        }
    }

    /// The process exit code.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Usage | Self::Input => 2,
            Self::Nothing => 3,
            Self::Device => 4,
            Self::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            Self::Store | Self::Wrong | Self::Other => 1,
        }
    }
}

/// A failed command.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}{message}{}", self.named(), if hint.is_empty() { String::new() } else { format!("\n\n{hint}") })]
pub(crate) struct Failure {
    pub kind: Kind,
    /// A finer word for programs, where there is one.
    pub detail: Option<&'static str>,
    /// The word, flag or file that is at fault; may be empty.
    pub field: String,
    pub message: String,
    /// What may help: tips, the usage. Mostly empty.
    pub hint: String,
}

impl Failure {
    /// A message repeats what was given, and that may be a whole file: so much of it is shown.
    const LONGEST: usize = 2_000;

    pub(crate) fn new(kind: Kind, field: &str, message: impl ToString) -> Self {
        let text = message.to_string();
        // Messages of libraries often begin with their field already.
        let rest =
            text.strip_prefix(field).and_then(|rest| rest.strip_prefix(": ").or_else(|| rest.strip_prefix(", ")));
        let message = rest.filter(|_| !field.is_empty()).unwrap_or(&text);
        let (field, message) = (within(field, Self::LONGEST), within(message, Self::LONGEST));
        Self { kind, detail: None, field, message, hint: String::new() }
    }

    pub(crate) fn with_hint(self, hint: &str) -> Self {
        Self { hint: hint.to_owned(), ..self }
    }

    /// The field as the beginning of a line, unless the message names it itself: as what something is said of, or in quotes.
    fn named(&self) -> String {
        let (field, message) = (&self.field, &self.message);
        let said =
            [format!("{field} is "), format!("{field} has "), format!("{field} \""), format!("unknown {field} ")];
        let quoted = ['"', '\'', '`'].map(|q| format!("{q}{field}{q}"));
        let is_named = said.iter().any(|said| message.starts_with(said)) || quoted.iter().any(|q| message.contains(q));
        if field.is_empty() || is_named { String::new() } else { format!("{field}: ") }
    }

    /// A file is at fault.
    pub(crate) fn of_file(kind: Kind, path: &Path, message: impl ToString) -> Self {
        Self::new(kind, &path.display().to_string(), message)
    }

    /// No configuration is legal; names the rule that rejects most.
    pub(crate) fn nothing_legal(space: &BoundSpace) -> Self {
        let most = space.census().rejected_by.into_iter().max_by_key(|(_, n)| *n);
        let why = most.map_or(String::new(), |(rule, _)| format!(": rule {rule:?} rejects most"));
        Self::new(Kind::Nothing, "input", format!("no configuration is legal{why}"))
    }

    /// The JSON document of an error.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let kind = self.detail.unwrap_or(self.kind.name());
        let mut error = json!({ "kind": kind, "field": self.field, "message": self.message });
        if !self.hint.is_empty() {
            error["hint"] = self.hint.as_str().into();
        }
        json!({ "error": error })
    }
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        let kind = match &error {
            RuntimeError::Problem(ProblemError::Input(_)) | RuntimeError::Setting { .. } => Kind::Input,
            RuntimeError::Device(_) | RuntimeError::Problem(ProblemError::Space(_)) => Kind::Device,
            RuntimeError::NothingLegal { .. }
            | RuntimeError::NothingRuns { .. }
            | RuntimeError::NothingRight { .. }
            | RuntimeError::Strategy { .. }
            | RuntimeError::TooFewSamples { .. } => Kind::Nothing,
            RuntimeError::Store(_) | RuntimeError::Home(_) => Kind::Store,
            RuntimeError::Bind(BindError::Uncounted { .. }) => Kind::Usage,
            RuntimeError::Train(_) | RuntimeError::Bind(_) | RuntimeError::Selection(_) => Kind::Other,
        };
        Self { detail: Some(error.kind()), ..Self::new(kind, &error.field().unwrap_or_default(), &error) }
    }
}

impl From<ProblemError> for Failure {
    fn from(error: ProblemError) -> Self {
        RuntimeError::from(error).into()
    }
}

impl From<WeightsError> for Failure {
    fn from(error: WeightsError) -> Self {
        let kind = if matches!(*error.kind, WeightsErrorKind::Missing(_)) { Kind::Input } else { Kind::Store };
        Self { detail: Some(error.code()), ..Self::new(kind, &error.path.display().to_string(), error) }
    }
}

impl From<tilewright::Error> for Failure {
    fn from(error: tilewright::Error) -> Self {
        use tilewright::Error;
        let (field, message) = (error.field().unwrap_or_default(), error.to_string());
        match error {
            Error::Runtime(e) => e.into(),
            Error::Weights(e) => e.into(),
            Error::Argument { name, message } => DeviceError::Argument { name, message }.into(),
            Error::Profile { source, .. } => Self { field, ..RuntimeError::from(source).into() },
            Error::NoProfile { .. } => Self { detail: Some("no-profile"), ..Self::new(Kind::Input, &field, message) },
            // A named file is an argument: what is wrong with it is wrong with the command line.
            Error::Named { error, .. } => Self { kind: Kind::Input, ..Self::from(*error) },
            Error::Kernel(_) | Error::Described(_) | Error::Outside(_) => Self::new(Kind::Input, &field, message),
            Error::Export(error) => of_export(&error, &field),
            Error::Repository(_) | Error::Transfer(_) => Self::new(Kind::Store, &field, message),
            Error::Device(_) | Error::NoCode { .. } | Error::UnknownKernel { .. } | Error::UnknownVariant { .. } => {
                Self::new(Kind::Usage, &field, message)
            }
        }
    }
}

/// What is wrong with an artefact, or with making one.
fn of_export(error: &ExportError, field: &str) -> Failure {
    let (kind, detail) = match error {
        ExportError::Fit(_) | ExportError::NothingRight(_) => (Kind::Nothing, None),
        ExportError::Artefact(ArtefactError::OtherDevice { .. }) => (Kind::Input, Some("other-device")),
        ExportError::Artefact(ArtefactError::OtherKernel { .. }) => (Kind::Input, Some("other-kernel")),
        ExportError::Artefact(_) | ExportError::Domain(_) | ExportError::Rules { .. } => (Kind::Input, None),
    };
    Failure { detail, ..Failure::new(kind, field, error) }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        RuntimeError::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_named_once() {
        for (field, message, line) in [
            ("m", "-4 is not within 0..=9", "m: -4 is not within 0..=9"),
            ("m", "more than 9", "m: more than 9"),
            ("epsilon", "epsilon is NaN: it must be less than 1", "epsilon is NaN: it must be less than 1"),
            ("a", "a number is expected", "a: a number is expected"),
            ("x.csv", "x.csv: no header", "x.csv: no header"),
            ("x.csv", "x.csv, line 22: no time", "x.csv: line 22: no time"),
            ("x.csv", "x.csv.gz is not there", "x.csv: x.csv.gz is not there"),
            ("device", "device \"cuda:0\" is not there", "device \"cuda:0\" is not there"),
            ("kernel", "unknown kernel \"fft\": gemm", "unknown kernel \"fft\": gemm"),
            ("--top <K>", "invalid value '-1' for '--top <K>'", "invalid value '-1' for '--top <K>'"),
            ("k", "\"k\" is not of the form name=value", "\"k\" is not of the form name=value"),
            ("", "a command is missing", "a command is missing"),
        ] {
            assert_eq!(Failure::new(Kind::Usage, field, message).to_string(), line);
        }
    }
}
