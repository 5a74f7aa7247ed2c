//! What is known of a kernel on a device before anything is measured: a profile, or the linear model of the device.

use crate::error::Error;
use std::path::Path;
use tilewright_calibration::WeightStore;
use tilewright_core::device::DeviceSpec;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::AnyKernel;
use tilewright_core::space::Config;
use tilewright_runtime::plan::{Ranking, Sampling};
use tilewright_runtime::store::{Home, Profile, ProfileStore, checksum};
use tilewright_runtime::trainer::{MlpTrainer, OverLinear, Trainer, Trainers};
use tilewright_sampler::{Chained, Exact, Sampler, Settings};

/// The kind of the model that needs no measurement of a kernel.
pub const LINEAR: &str = "linear";

/// What ranks the configurations of a kernel.
pub struct Known<'k> {
    /// The kernel.
    pub kernel: &'k dyn AnyKernel,
    /// None where nothing is known.
    pub predictor: Option<Box<dyn Predictor>>,
    /// What the predictor is asked about.
    pub ranking: Ranking,
    /// Checksum of the file that the predictor was read from.
    pub origin: Option<String>,
}

impl<'k> Known<'k> {
    /// Nothing is known.
    pub fn nothing(kernel: &'k dyn AnyKernel) -> Self {
        Self { kernel, predictor: None, ranking: Ranking::Everything, origin: None }
    }

    /// A predictor ranks; `origin` is the checksum of its file, where it has one.
    pub fn by(kernel: &'k dyn AnyKernel, predictor: Box<dyn Predictor>, origin: Option<String>) -> Self {
        let ranking = if predictor.is_costly() { Ranking::Sample(Sampling::default()) } else { Ranking::Everything };
        Self { kernel, predictor: Some(predictor), ranking, origin }
    }

    /// The model of the kind that is asked for, from the named file where there is one; else a profile; else, where the kernel was
    /// never measured on this device, the device's linear model.
    ///
    /// # Errors
    /// A model that is asked for and is not there, a file that is damaged or for something else.
    pub fn find(
        home: &Home,
        (model, file): (Option<&str>, Option<&Path>),
        kernel: &'k dyn AnyKernel,
        device: &DeviceSpec,
        input: &Config,
    ) -> Result<Self, Error> {
        let weights = WeightStore::new(home);
        if model == Some(LINEAR) {
            let stored = weights.path(device);
            let predictor = weights.load(device, file)?;
            return Ok(Self::by(kernel, Box::new(predictor), Some(checksum(file.unwrap_or(&stored))?)));
        }
        if let Some((predictor, origin)) = profile(home, file, kernel, device, input)? {
            return Ok(Self::by(kernel, predictor, Some(origin)));
        }
        if model.is_some() {
            let (kernel, computation) = (kernel.id(), kernel.computation().to_string());
            return Err(Error::NoProfile { kernel, computation });
        }
        let Some(predictor) = weights.find(device)? else { return Ok(Self::nothing(kernel)) };
        Ok(Self::by(kernel, Box::new(predictor), Some(checksum(&weights.path(device))?)))
    }

    /// Whether the predictor was fitted on measurements of the kernel.
    pub fn is_profile(&self) -> bool {
        self.predictor.as_ref().is_some_and(|p| p.kind() != LINEAR)
    }

    /// Draws configurations of it.
    pub fn sampler(&self) -> Box<dyn Sampler> {
        match self.ranking {
            Ranking::Everything => Box::new(Chained::new(self.kernel.space(), Settings::default())),
            Ranking::Sample(_) => Box::new(Exact::new()),
        }
    }
}

/// A predictor and the checksum of the file that it was read from.
type Stored = (Box<dyn Predictor>, String);

/// The named profile, or the stored one that fits kernel, device and input best, with the checksum of its file; none if none is
/// stored.
///
/// # Errors
/// A file that is damaged or for something else, or a directory that cannot be listed.
pub fn profile(
    home: &Home,
    named: Option<&Path>,
    kernel: &dyn AnyKernel,
    device: &DeviceSpec,
    input: &Config,
) -> Result<Option<Stored>, Error> {
    let schema = kernel.schema();
    let found = match named {
        Some(path) => Some((path.to_path_buf(), Profile::read(path)?)),
        None => ProfileStore::new(home.profiles()).find(&kernel.id(), device, input)?,
    };
    let Some((path, profile)) = found else { return Ok(None) };
    profile.expect(&path, &kernel.id(), device, &schema)?;
    let unreadable = |source| Error::Profile { path: path.clone(), source };
    let predictor = Trainers::standard().load(&profile, &schema).map_err(unreadable)?;
    Ok(Some((predictor, checksum(&path)?)))
}

/// The kinds of models that profiles may hold. Only what is fitted over the linear model needs the weights of the device.
///
/// # Errors
/// No weights, or damaged ones, where `kind` needs them.
pub fn trainers(home: &Home, kind: &str, device: &DeviceSpec) -> Result<Trainers, Error> {
    let standard = Trainers::standard();
    if kind != OverLinear::reading(MlpTrainer).kind() {
        return Ok(standard);
    }
    Ok(standard.with(OverLinear::new(MlpTrainer, WeightStore::new(home).load(device, None)?)))
}
