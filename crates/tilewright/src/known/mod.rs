//! What is known of a kernel on a device before anything is measured: its profile; what other devices recorded; the linear model of
//! the device; nothing.

mod artefact;
mod records;
mod selector;
mod transfer;

pub use artefact::{ARTEFACT, artefact};
pub use records::{experience, name_of, record, record_cases, record_report};
pub use selector::{KnownSelector, selector};
pub use transfer::TRANSFER;

use crate::error::Error;
use std::path::Path;
use std::sync::Arc;
use tilewright_calibration::WeightStore;
use tilewright_core::device::DeviceSpec;
use tilewright_core::predictor::{BindError, Predictor};
use tilewright_core::problem::{AnyKernel, Problem};
use tilewright_core::space::Config;
use tilewright_runtime::plan::{Ranking, Sampling};
use tilewright_runtime::store::{Fitting, Home, Profile, ProfileStore, checksum};
use tilewright_runtime::trainer::{MlpTrainer, OverLinear, Trainer, Trainers};
use tilewright_sampler::{Chained, Exact, Sampler, Settings};
use tilewright_search::Experience;
use transfer::LeftOut;

/// The kind of the model that needs no measurement of a kernel.
pub const LINEAR: &str = "linear";

/// The reason of the linear model.
const LINEAR_RANKS: &str = "the linear model of this device ranks";

/// Where the ranking of configurations comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A predictor of the user's.
    Own,
    /// A profile of the kernel on this device.
    Profile,
    /// An exported artefact of the kernel on this device.
    Artefact,
    /// What devices recorded of the kernel.
    Transfer,
    /// The linear model of this device.
    Linear,
    /// Nothing is known.
    Default,
}

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
    /// What is wrong with stored profiles and records that may have been meant for it.
    pub damaged: Vec<String>,
    pub(crate) source: Source,
    pub(crate) reason: String,
}

impl<'k> Known<'k> {
    /// Nothing is known.
    pub fn nothing(kernel: &'k dyn AnyKernel) -> Self {
        let (source, reason) = (Source::Default, "there is neither a profile nor what another device recorded".into());
        let (ranking, damaged) = (Ranking::default(), Vec::new());
        Self { kernel, predictor: None, ranking, origin: None, damaged, source, reason }
    }

    /// A predictor ranks; `origin` is the checksum of its file, where it has one.
    pub fn by(
        kernel: &'k dyn AnyKernel,
        (source, reason): (Source, String),
        predictor: Box<dyn Predictor>,
        origin: Option<String>,
    ) -> Self {
        let ranking = if predictor.is_costly() { Ranking::Sample(Sampling::default()) } else { Ranking::default() };
        Self { kernel, predictor: Some(predictor), ranking, origin, damaged: Vec::new(), source, reason }
    }

    /// The model of the kind that is asked for, from the named file where there is one; a file may be an exported artefact too. Else what is known, in this order: the
    /// profile of the kernel on this device; what devices recorded of it; the device's linear model, where it counts the kernel;
    /// nothing. What could not be used is in the reason.
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
        if let Some(path) = file.filter(|_| model.is_none())
            && let Some(found) = artefact(path)?
        {
            return artefact::known(&found, path, kernel, device, input);
        }
        let weights = WeightStore::new(home);
        if model == Some(LINEAR) {
            let stored = weights.path(device);
            let predictor = weights.load(device, file)?;
            let linear = (Source::Linear, LINEAR_RANKS.to_owned());
            return Ok(Self::by(kernel, linear, Box::new(predictor), Some(checksum(file.unwrap_or(&stored))?)));
        }
        let (stored, damaged) = profile(home, file, kernel, device, input)?;
        if let Some((predictor, origin)) = stored {
            let of = (Source::Profile, "a profile of this kernel on this device ranks".to_owned());
            return Ok(Self { damaged, ..Self::by(kernel, of, predictor, Some(origin)) });
        }
        if model.is_some() {
            let (kernel, computation) = (kernel.id(), kernel.computation().to_string());
            return Err(Error::NoProfile { kernel, computation });
        }
        // One configuration needs no ranking.
        if kernel.space().params().is_empty() {
            return Ok(Self::nothing(kernel));
        }
        let known = Self::without_profile(home, kernel, device, input)?;
        Ok(Self { damaged: [damaged, known.damaged].concat(), ..known })
    }

    /// What other devices recorded; the device's linear model, where it counts the kernel; nothing.
    fn without_profile(
        home: &Home,
        kernel: &'k dyn AnyKernel,
        device: &DeviceSpec,
        input: &Config,
    ) -> Result<Self, Error> {
        let mut known = Self::nothing(kernel);
        let weights = WeightStore::new(home);
        let (transferred, left_out) = match transfer::find(home, kernel, device) {
            Ok(found) => found,
            Err(Error::Repository(error)) => (None, LeftOut::of([&error])),
            Err(error) => (None, LeftOut { all: vec![error.to_string()], damaged: Vec::new() }),
        };
        if let Some(found) = transferred {
            // Without a file that a remembered plan would have to have seen: what others record later does not outdate what was
            // measured here.
            known = Self::by(kernel, (Source::Transfer, found.reason), found.predictor, None);
        }
        if known.source == Source::Default
            && let Some(predictor) = weights.find(device)?
            && counts(&predictor, kernel, device, input)
        {
            let origin = checksum(&weights.path(device))?;
            let linear = (Source::Linear, LINEAR_RANKS.to_owned());
            known = Self::by(kernel, linear, Box::new(predictor), Some(origin));
        }
        known.damaged.extend(left_out.damaged);
        for error in left_out.all {
            tracing::warn!(error, "records are left out");
            known.reason += &format!("; left out: {error}");
        }
        Ok(known)
    }

    /// The name of the source: `own`, `profile`, `transfer`, `linear`, `artefact` or `default`.
    pub fn name(&self) -> &'static str {
        match self.source {
            Source::Own => "own",
            Source::Profile => "profile",
            Source::Artefact => ARTEFACT,
            Source::Transfer => TRANSFER,
            Source::Linear => LINEAR,
            Source::Default => "default",
        }
    }

    /// Why this and nothing better, as part of a sentence.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether the predictor was fitted on measurements of the kernel on this device.
    pub fn is_profile(&self) -> bool {
        self.source == Source::Profile
    }

    /// What a strategy begins from beside the ranking: what was recorded of the nearest inputs, where a strategy was asked for or
    /// nothing ranks. A repository that cannot be read is said so in the log.
    pub fn warm(&self, home: &Home, problem: &dyn Problem, is_asked: bool) -> Arc<Experience> {
        if self.predictor.is_some() && !is_asked {
            return Arc::default();
        }
        let found = experience(home, problem);
        Arc::new(found.unwrap_or_else(|error| {
            tracing::warn!(%error, "searching without what was recorded");
            Experience::default()
        }))
    }

    /// Draws configurations of it.
    pub fn sampler(&self) -> Box<dyn Sampler> {
        match self.ranking {
            Ranking::Everything { .. } => Box::new(Chained::new(self.kernel.space(), Settings::default())),
            Ranking::Sample(_) | Ranking::Listed(_) => Box::new(Exact::new()),
        }
    }
}

/// Whether a model has a word for the kernel: the linear one has none for a kernel that nothing counts. What describes no input yet
/// is not asked.
fn counts(predictor: &dyn Predictor, kernel: &dyn AnyKernel, device: &DeviceSpec, input: &Config) -> bool {
    let Ok(problem) = kernel.problem(&Arc::new(device.clone()), input) else { return true };
    !matches!(predictor.bind(&*problem), Err(BindError::Uncounted { .. }))
}

/// A predictor and the checksum of the file that it was read from.
type Stored = (Box<dyn Predictor>, String);

/// The named profile, or the stored one that fits kernel, device and input best, with the checksum of its file; none if none is
/// stored. Beside it, what is wrong with stored ones.
///
/// # Errors
/// A file that is for something else, a named one that is damaged, or a directory that cannot be listed.
pub fn profile(
    home: &Home,
    named: Option<&Path>,
    kernel: &dyn AnyKernel,
    device: &DeviceSpec,
    input: &Config,
) -> Result<(Option<Stored>, Vec<String>), Error> {
    if let Some(path) = named {
        let read = || loaded(path, Profile::read(path)?, kernel, device);
        let found = read().map_err(|error| Error::Named { path: path.to_path_buf(), error: Box::new(error) })?;
        return Ok((Some(found), Vec::new()));
    }
    let Fitting { best, damaged } = ProfileStore::new(home.profiles()).find(kernel, device, input)?;
    let damaged = damaged.iter().map(ToString::to_string).collect();
    let found = best.map(|(path, profile)| loaded(&path, profile, kernel, device)).transpose()?;
    Ok((found, damaged))
}

/// The model of a profile that is for this kernel and device.
fn loaded(path: &Path, profile: Profile, kernel: &dyn AnyKernel, device: &DeviceSpec) -> Result<Stored, Error> {
    let schema = kernel.schema();
    profile.expect(path, &kernel.id(), device, &schema)?;
    let unreadable = |source| Error::Profile { path: path.to_path_buf(), source };
    let predictor = Trainers::standard().load(&profile, &schema).map_err(unreadable)?;
    Ok((predictor, checksum(path)?))
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
