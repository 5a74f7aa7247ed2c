//! Where the weights of devices are kept, and how they are read.

use crate::{Columns, HostTerms};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::document::DocumentError;
use tilewright_perfmodel_linear::{LinearModel, ModelFileError};
use tilewright_runtime::store::{Home, StoreError, is_absent, write_atomically};

/// A folder with one file of weights for each device.
#[derive(Clone, Debug)]
pub struct WeightStore {
    directory: PathBuf,
}

/// Why there are no weights.
#[derive(Debug, thiserror::Error)]
#[error("{kind}{remedy}")]
pub struct WeightsError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub kind: Box<WeightsErrorKind>,
    remedy: Remedy,
}

impl WeightsError {
    /// A short word for what is wrong, stable for programs.
    pub fn code(&self) -> &'static str {
        match *self.kind {
            WeightsErrorKind::Missing(_) => "no-weights",
            WeightsErrorKind::Io(_) => "io",
            WeightsErrorKind::Unwritable(_) => "unwritable",
            WeightsErrorKind::Corrupt(_) => "corrupt",
            WeightsErrorKind::OtherDevice(_) => "other-device",
            WeightsErrorKind::ForeignVersion => "foreign-version",
        }
    }
}

/// What is wrong with a file of weights.
#[derive(Debug, thiserror::Error)]
pub enum WeightsErrorKind {
    /// It is not there.
    #[error("{0}: there are no weights of this device yet")]
    Missing(io::Error),
    /// It cannot be read.
    #[error("{0}")]
    Io(io::Error),
    /// It cannot be written.
    #[error(transparent)]
    Unwritable(StoreError),
    /// It is damaged, or no such file at all.
    #[error(transparent)]
    Corrupt(ModelFileError),
    /// It is another device's.
    #[error(transparent)]
    OtherDevice(ModelFileError),
    /// It is of a version that counted other properties.
    #[error("its properties are not those that this version counts")]
    ForeignVersion,
}

/// The command that helps.
#[derive(Debug)]
struct Remedy(Option<String>);

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |command| write!(f, "; {command} makes them"))
    }
}

/// The command that makes the weights of a device.
pub fn command(device: &DeviceSpec) -> String {
    let threads = device.fact("threads").filter(|_| device.kind == DeviceKind::Cpu);
    let threads = threads.map_or_else(String::new, |n| format!(" --threads {n}"));
    format!("`tilewright model fit --model linear --device {}{threads}`", device.id)
}

impl WeightStore {
    /// Beside the profiles of this home.
    pub fn new(home: &Home) -> Self {
        Self { directory: home.profiles() }
    }

    /// Where the weights of a device are kept.
    pub fn path(&self, device: &DeviceSpec) -> PathBuf {
        self.directory.join(format!("linear-{}.json", &device.fingerprint()[..12]))
    }

    /// The weights of a device: those of a named file, or the stored ones.
    ///
    /// # Errors
    /// No file, one that is damaged, another device's or of another version.
    pub fn load(&self, device: &DeviceSpec, named: Option<&Path>) -> Result<LinearModel, WeightsError> {
        let path = named.map_or_else(|| self.path(device), Path::to_path_buf);
        let wrong =
            |kind| WeightsError { path: path.clone(), kind: Box::new(kind), remedy: Remedy(Some(command(device))) };
        let text = std::fs::read(&path).map_err(|e| wrong(WeightsErrorKind::Missing(e)))?;
        read(device, &text).map_err(wrong)
    }

    /// The stored weights of a device, if there are any.
    ///
    /// # Errors
    /// As [`WeightStore::load`], but for no file at all.
    pub fn find(&self, device: &DeviceSpec) -> Result<Option<LinearModel>, WeightsError> {
        match self.load(device, None) {
            Ok(model) => Ok(Some(model)),
            Err(WeightsError { kind, path, remedy }) => match *kind {
                WeightsErrorKind::Missing(e) if is_absent(&e) => Ok(None),
                WeightsErrorKind::Missing(e) => {
                    Err(WeightsError { path, kind: Box::new(WeightsErrorKind::Io(e)), remedy: Remedy(None) })
                }
                other => Err(WeightsError { path, kind: Box::new(other), remedy }),
            },
        }
    }

    /// Writes weights where a file is named, or where they are looked for. Returns that place.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn save(
        &self,
        model: &LinearModel,
        device: &DeviceSpec,
        named: Option<&Path>,
    ) -> Result<PathBuf, WeightsError> {
        let path = named.map_or_else(|| self.path(device), Path::to_path_buf);
        let wrong = |kind| WeightsError { path: path.clone(), kind: Box::new(kind), remedy: Remedy(None) };
        let value = model.to_value().map_err(|e| wrong(WeightsErrorKind::Corrupt(e)))?;
        let text = format!("{value:#}\n");
        write_atomically(&path, text.as_bytes()).map_err(|e| wrong(WeightsErrorKind::Unwritable(e)))?;
        Ok(path)
    }
}

fn read(device: &DeviceSpec, text: &[u8]) -> Result<LinearModel, WeightsErrorKind> {
    let value = serde_json::from_slice(text).map_err(|e| WeightsErrorKind::Corrupt(DocumentError::from(e).into()))?;
    let model = LinearModel::from_value(value).map_err(WeightsErrorKind::Corrupt)?;
    model.expect_device(&device.fingerprint()).map_err(WeightsErrorKind::OtherDevice)?;
    let properties = Columns::host(device, HostTerms::of(&model)).map(|columns| columns.properties());
    if properties.is_some_and(|known| !model.weights.iter().map(|w| &w.property).eq(&known)) {
        return Err(WeightsErrorKind::ForeignVersion);
    }
    Ok(model)
}
