//! What can go wrong, for programs that act on it.

use crate::device::UnknownDevice;
use crate::exporting::ExportError;
use crate::own::BuildError;
use std::path::PathBuf;
use tilewright_calibration::WeightsError;
use tilewright_core::device::DeviceKind;
use tilewright_core::id::KernelId;
use tilewright_core::problem::ProblemError;
use tilewright_core::program::DeviceError;
use tilewright_export::{ArtefactError, OutsideError};
use tilewright_runtime::RuntimeError;
use tilewright_runtime::store::{HomeError, StoreError};
use tilewright_runtime::trainer::TrainError;
use tilewright_user::UserError;

/// Any failure of tuning, planning or calling.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Tuning, planning, a device or a stored file.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The weights of the linear model.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A text that names no device.
    #[error(transparent)]
    Device(#[from] UnknownDevice),
    /// The description of a kernel of one's own.
    #[error(transparent)]
    Kernel(#[from] BuildError),
    /// The description of a kernel in a file.
    #[error(transparent)]
    Described(#[from] UserError),
    /// No kernel or computation has this name.
    #[error("unknown kernel {name:?}: it is one of {known}")]
    UnknownKernel {
        /// What was asked for.
        name: String,
        /// The computations that there are.
        known: String,
    },
    /// The computation has no such kernel on this kind of device.
    #[error("unknown variant {variant:?} of {name} for {}, which has {known}", kind_name(*.on))]
    UnknownVariant {
        /// The computation.
        name: String,
        /// What was asked for.
        variant: String,
        /// The kind of device.
        on: DeviceKind,
        /// The kernels that there are.
        known: String,
    },
    /// Kernels of this name have no code for a device.
    #[error("there is no code for a device of the kind {} of {kernels}", kind_name(*.on))]
    NoCode {
        /// The kernels.
        kernels: String,
        /// The kind of device.
        on: DeviceKind,
    },
    /// A profile was asked for, and there is none.
    #[error("no profile of {kernel} for this device: `tilewright tune {computation}` makes one")]
    NoProfile {
        /// The kernel.
        kernel: KernelId,
        /// Its computation.
        computation: String,
    },
    /// The model of a profile cannot be read back.
    #[error("{}: {source}", path.display())]
    Profile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TrainError,
    },
    /// A file that the caller named cannot be used.
    #[error("{error}")]
    Named {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: Box<Error>,
    },
    /// What devices recorded for each other.
    #[error(transparent)]
    Repository(#[from] tilewright_repository::RepositoryError),
    /// What could not be learned from other devices.
    #[error(transparent)]
    Transfer(#[from] tilewright_mtl::MtlError),
    /// No artefact can be made, or it is not what it should be.
    #[error(transparent)]
    Export(Box<ExportError>),
    /// An input that an artefact does not speak of.
    #[error("the artefact does not speak of this input: {0}")]
    Outside(OutsideError),
    /// An argument of a call does not fit the plan.
    #[error("{name}: {message}")]
    Argument {
        /// The buffer or the scalar; `inputs`, `outputs` or `scalars` where their number is wrong.
        name: String,
        /// What is wrong, with the limit.
        message: String,
    },
}

fn kind_name(kind: DeviceKind) -> String {
    format!("{kind:?}").to_lowercase()
}

impl Error {
    /// The input field, setting, argument, file or rule that the error is about, where there is one.
    pub fn field(&self) -> Option<String> {
        match self {
            Self::Runtime(e) => e.field(),
            Self::Weights(e) => Some(e.path.display().to_string()),
            Self::Device(_) | Self::NoCode { .. } => Some("device".into()),
            Self::Kernel(e) => Some(e.field.clone()),
            Self::Described(e) => Some(e.field.clone()),
            Self::UnknownKernel { .. } => Some("kernel".into()),
            Self::UnknownVariant { .. } => Some("variant".into()),
            Self::NoProfile { .. } => Some("model".into()),
            Self::Profile { path, .. } | Self::Named { path, .. } => Some(path.display().to_string()),
            Self::Repository(_) | Self::Transfer(_) => Some("repository".into()),
            Self::Argument { name, .. } => Some(name.clone()),
            Self::Export(error) => Some(match **error {
                ExportError::Artefact(ArtefactError::OtherDevice { .. }) => "device".into(),
                ExportError::Artefact(ArtefactError::OtherKernel { .. }) => "kernel".into(),
                _ => "export".into(),
            }),
            Self::Outside(error) => Some(error.field().to_owned()),
        }
    }
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Argument { name, message } => Self::Argument { name, message },
            other => Self::Runtime(other.into()),
        }
    }
}

impl From<ProblemError> for Error {
    fn from(error: ProblemError) -> Self {
        Self::Runtime(error.into())
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Runtime(error.into())
    }
}

impl From<HomeError> for Error {
    fn from(error: HomeError) -> Self {
        Self::Runtime(error.into())
    }
}

impl From<ExportError> for Error {
    fn from(error: ExportError) -> Self {
        Self::Export(Box::new(error))
    }
}

impl From<ArtefactError> for Error {
    fn from(error: ArtefactError) -> Self {
        ExportError::from(error).into()
    }
}

impl From<OutsideError> for Error {
    fn from(error: OutsideError) -> Self {
        Self::Outside(error)
    }
}
