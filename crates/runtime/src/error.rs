//! What can go wrong, for programs that act on it.

use crate::store::{HomeError, StoreError, StoreErrorKind};
use tilewright_core::computation::InputError;
use tilewright_core::id::KernelId;
use tilewright_core::measurement::Failure;
use tilewright_core::predictor::BindError;
use tilewright_core::problem::ProblemError;
use tilewright_core::program::DeviceError;
use tilewright_core::space::Config;
use tilewright_core::text::counted;

/// Any failure of tuning or planning.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// A stored file.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No directory to keep files in.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The words describe no input, or the device lacks what the kernel's rules name.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No configuration is legal for this input on this device.
    #[error("no configuration of {kernel} is legal for {input} on {device}{}", strictest(.rule.as_ref()))]
    NothingLegal {
        /// The kernel.
        kernel: KernelId,
        /// The device.
        device: String,
        /// The input.
        input: Config,
        /// The rule that rejected most, and how many configurations it rejected of how many looked at.
        rule: Option<(String, u64, u64)>,
    },
    /// Configurations are legal, and none could be measured.
    #[error("none of {} of {kernel} could be measured for {input}; the last failed: {last}", counted(.tried, "configuration"))]
    NothingRuns {
        /// The kernel.
        kernel: KernelId,
        /// The input.
        input: Config,
        /// How many were tried.
        tried: u64,
        /// The last failure.
        last: Failure,
    },
    /// Configurations run, and none of those tried gave the right result.
    #[error("none of {} of {kernel} gave the right result for {input}; the last: {last}", counted(.tried, "configuration"))]
    NothingRight {
        /// The kernel.
        kernel: KernelId,
        /// The input.
        input: Config,
        /// How many were tried.
        tried: u64,
        /// What was wrong with the last.
        last: String,
    },
    /// The campaign has nothing to fit on.
    #[error("{}", too_few(*.samples, *.failed, *.need, *.interrupted))]
    TooFewSamples {
        /// Measured.
        samples: u64,
        /// Failed.
        failed: u64,
        /// The least.
        need: u64,
        /// Whether the observer ended the measuring, and not the budget.
        interrupted: bool,
    },
    /// The model could not be fitted, or read back.
    #[error(transparent)]
    Train(#[from] crate::trainer::TrainError),
    /// The model has no word for the problem.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A selector could not be learned, or not be read back.
    #[error(transparent)]
    Selection(#[from] crate::selection::SelectionError),
    /// A search strategy that found nothing to measure.
    #[error("{message}")]
    Strategy {
        /// The strategy.
        name: String,
        /// What it did.
        message: String,
    },
    /// A setting is out of its range.
    #[error("{field}: {message}")]
    Setting {
        /// Which.
        field: &'static str,
        /// The limit.
        message: String,
    },
}

fn too_few(samples: u64, failed: u64, need: u64, interrupted: bool) -> String {
    if interrupted && samples + failed == 0 {
        return "interrupted before anything was measured".to_owned();
    }
    let (samples, failed) = (counted(samples, "sample"), counted(failed, "configuration"));
    if interrupted {
        return format!("interrupted after {samples} ({failed} failed); a model needs at least {need}");
    }
    let way = "raise the budget, or the number of samples where it is limited";
    format!("measured {samples} ({failed} failed); a model needs at least {need}: {way}")
}

fn strictest(rule: Option<&(String, u64, u64)>) -> String {
    rule.map_or(String::new(), |(name, count, of)| format!(": rule {name:?} rejects {count} of {of} looked at"))
}

impl From<InputError> for RuntimeError {
    fn from(error: InputError) -> Self {
        Self::Problem(error.into())
    }
}

impl RuntimeError {
    /// A short word for the kind, stable for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Store(e) => match e.kind {
                StoreErrorKind::NotOurs { .. } => "not-ours",
                StoreErrorKind::Truncated { .. } => "truncated",
                StoreErrorKind::Corrupt(_) => "corrupt",
                StoreErrorKind::Unwritable(_) => "unwritable",
                StoreErrorKind::ForeignVersion { .. } => "foreign-version",
                StoreErrorKind::SchemaMismatch { .. } => "schema-mismatch",
                StoreErrorKind::OtherDevice(_) => "other-device",
                StoreErrorKind::OtherKernel { .. } => "other-kernel",
                StoreErrorKind::Locked => "locked",
                StoreErrorKind::DiskFull => "disk-full",
                StoreErrorKind::Io(_) => "io",
            },
            Self::Home(_) => "no-home",
            Self::Problem(ProblemError::Input(_)) => "input",
            Self::Problem(ProblemError::Space(_)) => "device-lacks",
            Self::Device(_) => "device",
            Self::NothingLegal { .. } => "nothing-legal",
            Self::NothingRuns { .. } => "nothing-runs",
            Self::NothingRight { .. } => "nothing-right",
            Self::TooFewSamples { .. } => "too-few-samples",
            Self::Train(_) => "train",
            Self::Bind(BindError::Schema(_)) => "schema-mismatch",
            Self::Bind(BindError::Uncounted { .. }) => "not-counted",
            Self::Selection(_) => "selector",
            Self::Strategy { .. } => "strategy",
            Self::Setting { .. } => "setting",
        }
    }

    /// The field, file or rule that the error is about, where there is one.
    pub fn field(&self) -> Option<String> {
        match self {
            Self::Store(e) => Some(e.path.display().to_string()),
            Self::Problem(ProblemError::Input(e)) => Some(e.field.clone()),
            Self::NothingLegal { rule, .. } => rule.as_ref().map(|(name, ..)| name.clone()),
            Self::Setting { field, .. } => Some((*field).to_owned()),
            Self::Selection(crate::selection::SelectionError::Gone { .. }) => Some("kernel".to_owned()),
            Self::Selection(_) => Some("selector".to_owned()),
            Self::Strategy { .. } => Some("strategy".to_owned()),
            Self::Device(DeviceError::Argument { name, .. }) => Some(name.clone()),
            Self::Device(
                DeviceError::Missing { device, .. }
                | DeviceError::OldDriver { device, .. }
                | DeviceError::Unsupported { device, .. },
            ) => Some(device.clone()),
            _ => None,
        }
    }
}
