//! Profiles: a fitted model with what it was fitted for.

use super::envelope::{self, Format};
use super::home::file_name;
use super::{OtherDevice, StoreError, StoreErrorKind, unix_seconds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::feature::FeatureSchema;
use tilewright_core::id::KernelId;
use tilewright_core::objective::Objective;
use tilewright_core::problem::AnyKernel;
use tilewright_core::space::Config;

const FORMAT: Format = Format { name: "profile", version: 1 };
const EXTENSION: &str = "profile";

/// What a stored file remembers of the device it was made on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// As on the command line.
    pub id: String,
    /// Model name.
    pub name: String,
    /// How it runs plans.
    pub kind: DeviceKind,
    /// Driver or instruction-set level.
    pub driver: String,
    /// The facts, to say what another device lacks.
    pub facts: BTreeMap<String, i64>,
    /// Hash of all that makes results valid.
    pub fingerprint: String,
}

impl From<&DeviceSpec> for DeviceRecord {
    fn from(spec: &DeviceSpec) -> Self {
        Self {
            id: spec.id.clone(),
            name: spec.name.clone(),
            kind: spec.kind,
            driver: spec.driver.clone(),
            facts: spec.facts.clone(),
            fingerprint: spec.fingerprint(),
        }
    }
}

impl DeviceRecord {
    /// The device as it was, for planning on its behalf; its measured rates are not remembered.
    pub fn spec(&self) -> DeviceSpec {
        DeviceSpec {
            id: self.id.clone(),
            name: self.name.clone(),
            kind: self.kind,
            driver: self.driver.clone(),
            facts: self.facts.clone(),
            measured: BTreeMap::new(),
        }
    }

    /// The number of threads that it was made with, where that is all that tells it from a device.
    pub fn other_threads(&self, device: &DeviceSpec) -> Option<i64> {
        const THREADS: &str = "threads";
        let mut here = device.clone();
        let own = *self.facts.get(THREADS)?;
        let other = here.facts.insert(THREADS.to_owned(), own)? != own;
        (other && here.fingerprint() == self.fingerprint).then_some(own)
    }

    /// Refuses another device.
    ///
    /// # Errors
    /// Both devices, and the facts that this one lacks.
    pub fn expect(&self, device: &DeviceSpec) -> Result<(), StoreErrorKind> {
        let expected = device.fingerprint();
        if self.fingerprint == expected {
            return Ok(());
        }
        let less = |(name, had): (&String, &i64)| match device.fact(name) {
            Some(has) if has >= *had => None,
            Some(has) => Some(format!("{name}: had {had}, has {has}")),
            None => Some(format!("{name}: had {had}, has none")),
        };
        Err(StoreErrorKind::OtherDevice(Box::new(OtherDevice {
            found: self.fingerprint.clone(),
            found_name: self.name.clone(),
            expected,
            expected_name: device.name.clone(),
            lacking: self.facts.iter().filter_map(less).collect(),
        })))
    }
}

/// How a profile came to be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainingStats {
    /// Measured configurations that the model was fitted on.
    pub samples: u64,
    /// Configurations that failed.
    pub failed: u64,
    /// Distinct inputs.
    pub inputs: u64,
    /// Mean squared error of the log-time on inputs that chose nothing of the model. Profiles of earlier versions hold that of the inputs
    /// that chose the perceptron's epoch.
    pub cv_mse: Option<f64>,
    /// Seconds spent measuring.
    pub measure_s: f64,
    /// Seconds spent fitting.
    pub fit_s: f64,
    /// Accepted draws of the sampler.
    pub accepted: u64,
    /// Draws of the sampler.
    pub drawn: u64,
}

/// What a profile is for; checked before its model is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileHeader {
    /// The kernel.
    pub kernel: KernelId,
    /// The device.
    pub device: DeviceRecord,
    /// Hash of the feature schema.
    pub schema: String,
    /// What the model predicts.
    pub objective: Objective,
    /// Input words that all training inputs had in common by request (`dtype=f32`).
    pub fixed: Config,
    /// Which kind of model the body holds.
    pub model_kind: String,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// The seed of sampling and fitting.
    pub seed: u64,
    /// How it came to be.
    pub stats: TrainingStats,
}

/// A fitted model with what it was fitted for.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// What it is for.
    pub header: ProfileHeader,
    /// The model, in the form of its own crate.
    pub model: serde_json::Value,
}

impl Profile {
    /// Writes the profile atomically.
    ///
    /// # Errors
    /// See [`super::write_atomically`].
    pub fn write(&self, path: &Path) -> Result<(), StoreError> {
        envelope::write(path, FORMAT, &self.header, &self.model)
    }

    /// Reads a profile, whatever it is for.
    ///
    /// # Errors
    /// The file cannot be read, is no profile, or is damaged.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let (header, model) = envelope::read(path, FORMAT)?;
        Ok(Self { header, model })
    }

    /// [`Profile::read`] of a file's bytes.
    ///
    /// # Errors
    /// The bytes are no profile, or are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreErrorKind> {
        let (header, model) = envelope::decode(FORMAT, bytes)?;
        Ok(Self { header, model })
    }

    /// Refuses another kernel, device or schema than the one at hand.
    ///
    /// # Errors
    /// The first thing that differs, naming `path`.
    pub fn expect(
        &self,
        path: &Path,
        kernel: &KernelId,
        device: &DeviceSpec,
        schema: &FeatureSchema,
    ) -> Result<(), StoreError> {
        let refuse = |kind| Err(StoreError::new(path, kind));
        let header = &self.header;
        if header.kernel != *kernel {
            let (found, expected) = (header.kernel.to_string(), kernel.to_string());
            return refuse(StoreErrorKind::OtherKernel { found, expected });
        }
        let expected = schema.hash();
        if header.schema != expected {
            return refuse(StoreErrorKind::SchemaMismatch { found: header.schema.clone(), expected });
        }
        header.device.expect(device).or_else(refuse)
    }
}

impl ProfileHeader {
    /// A header of now.
    pub fn new(kernel: KernelId, device: &DeviceSpec, schema: &FeatureSchema, fixed: Config) -> Self {
        Self {
            kernel,
            device: device.into(),
            schema: schema.hash(),
            objective: Objective::default(),
            fixed,
            model_kind: String::new(),
            created: unix_seconds(),
            seed: 0,
            stats: TrainingStats::default(),
        }
    }
}

/// The profiles of a directory, one per kernel, device and set of fixed words.
#[derive(Clone, Debug)]
pub struct ProfileStore {
    directory: PathBuf,
}

impl ProfileStore {
    /// The profiles of a directory, [`super::Home::profiles`] as a rule.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where the profile of a kernel on a device belongs.
    pub fn path(&self, kernel: &KernelId, device: &DeviceSpec, fixed: &Config) -> PathBuf {
        self.directory.join(format!("{}.{EXTENSION}", stem(kernel.as_str(), device, fixed)))
    }

    /// The profile that fits an input best: of this kernel and device, with fixed fields that the input agrees with, however they are written,
    /// as many of them as possible, the newest among equals. Damaged and foreign files are skipped here; reading one by its path says what is
    /// wrong with it.
    ///
    /// # Errors
    /// The directory exists and cannot be listed.
    pub fn find(
        &self,
        kernel: &dyn AnyKernel,
        device: &DeviceSpec,
        input: &Config,
    ) -> Result<Fitting<Profile>, StoreError> {
        let (id, agrees) = (kernel.id(), |fixed: &Config| agrees(kernel, input, fixed));
        best_fit(&self.directory, (id.as_str(), EXTENSION), (device, agrees), Profile::read, |p| {
            let header = &p.header;
            (header.kernel == id).then_some((&header.device, &header.fixed, header.created))
        })
    }

    /// Paths of all profiles, sorted.
    ///
    /// # Errors
    /// The directory exists and cannot be listed.
    pub fn list(&self) -> Result<Vec<PathBuf>, StoreError> {
        super::files_with_extension(&self.directory, EXTENSION)
    }
}

/// What a directory has for an input.
#[derive(Debug)]
pub struct Fitting<F> {
    /// The file that fits best, with its contents.
    pub best: Option<(PathBuf, F)>,
    /// What is wrong with files that may have been meant for it.
    pub damaged: Vec<StoreError>,
}

/// What a stored file is for beyond its name: device, fixed fields, and when it was made.
pub(crate) type For<'f> = (&'f DeviceRecord, &'f Config, u64);

/// Whether an input is one of those with fixed fields, that is, stays what it is where they take the place of its own. What is usual is not in
/// an input's fields, but may have been fixed, and a scalar stands for its class.
pub(crate) fn agrees(kernel: &dyn AnyKernel, input: &Config, fixed: &Config) -> bool {
    let is_said = fixed.0.iter().all(|(name, value)| input.get(name) == Some(value));
    let fields = |input: &Config| kernel.fields(input).ok();
    is_said || fields(&input.with(fixed)).is_some_and(|with| fields(input) == Some(with))
}

/// The file of a directory that fits an input best: of this device, with fixed fields that agree with it, as many of them as possible, the
/// newest among equals. `what` says what a file is for, None of what is for something else.
///
/// # Errors
/// The directory exists and cannot be listed.
pub(crate) fn best_fit<F>(
    directory: &Path,
    (name, extension): (&str, &str),
    (device, agrees): (&DeviceSpec, impl Fn(&Config) -> bool),
    read: impl Fn(&Path) -> Result<F, StoreError>,
    what: impl Fn(&F) -> Option<For<'_>>,
) -> Result<Fitting<F>, StoreError> {
    let fingerprint = device.fingerprint();
    let prefix = stem(name, device, &Config::default());
    let ours = |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&prefix));
    let mut best: Option<((usize, u64, PathBuf), F)> = None;
    let mut damaged = Vec::new();
    for path in super::files_with_extension(directory, extension)?.into_iter().filter(ours) {
        let file = match read(&path) {
            Ok(file) => file,
            Err(error) => {
                tracing::warn!(%error, "a stored {extension} is of no use");
                damaged.push(error);
                continue;
            }
        };
        let Some((made_on, fixed, created)) = what(&file) else { continue };
        let key = (fixed.0.len(), created, path);
        if made_on.fingerprint == fingerprint && agrees(fixed) && best.as_ref().is_none_or(|(best, _)| *best < key) {
            best = Some((key, file));
        }
    }
    Ok(Fitting { best: best.map(|((_, _, path), file)| (path, file)), damaged })
}

/// A file name for what belongs to a kernel or computation of this name, a device and a set of fixed fields.
pub(crate) fn stem(name: &str, device: &DeviceSpec, fixed: &Config) -> String {
    let mut name = format!("{}-{}", file_name(name), &device.fingerprint()[..12]);
    let mut words: Vec<_> = fixed.0.iter().collect();
    words.sort_by(|a, b| a.0.cmp(&b.0));
    for (word, value) in words {
        name.push('-');
        name.push_str(&file_name(&format!("{word}={value}")));
    }
    // File systems stop at 255 bytes; a hash keeps long names apart.
    if name.len() > 160 {
        let hash = blake3::hash(name.as_bytes()).to_hex();
        name.truncate(140);
        name.push_str(&hash[..16]);
    }
    name
}

#[cfg(test)]
mod tests;
