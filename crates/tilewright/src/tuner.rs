//! Tuning and planning any kernel on one device.

use crate::callable::Callable;
use crate::counting::ByEmulator;
use crate::device::DeviceName;
use crate::error::Error;
use crate::kernels::{Kernels, named};
use crate::known::{record_report, trainers};
use crate::planning::{Planning, problem};
use crate::request::Request;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tilewright_core::device::{Device, DeviceKind, DeviceSpec};
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{Measure, Problem};
use tilewright_core::selector::Selector;
use tilewright_runtime::Live;
use tilewright_runtime::plan::{Asked, PlanSettings};
use tilewright_runtime::store::Home;
use tilewright_runtime::tune::{self, Silent, TuneReport, TuneSettings};
use tilewright_search::Choice;
use tilewright_user::{OnDevice, UserKernel};

/// A device that is measured and called on.
pub(crate) type Opened = Mutex<Live<Box<dyn Device>>>;

/// The kind of the models that [`Tuner::tune`] fits.
const FITTED: &str = "mlp";

/// Tunes, plans and calls kernels on one device. Whatever is known is used, in this order: the plan cache, the stored profile of
/// kernel and device, the linear model of the device, the kernel's default. Where a computation has several kernels, they compete.
pub struct Tuner {
    name: DeviceName,
    device: Arc<Opened>,
    kernels: Kernels,
    home: Option<Home>,
    predictor: Option<Box<dyn Predictor>>,
    selector: Option<Box<dyn Selector>>,
    with_libraries: bool,
    incumbent: Option<String>,
    strategy: Option<Choice>,
    budget: Option<Duration>,
    samples: Option<u64>,
    seed: u64,
}

impl Tuner {
    /// On the device of this name, as on the command line: `cpu`, `cuda:N` with the feature of that name, or `emulator:sm_XX`,
    /// which computes and never times, so that plans on it are the defaults.
    ///
    /// # Errors
    /// No device has this name, or it is not there.
    pub fn on(device: &str) -> Result<Self, Error> {
        let name: DeviceName = device.parse()?;
        Ok(Self {
            device: Arc::new(Mutex::new(Live::new(name.open(None)?))),
            name,
            kernels: Kernels::default(),
            home: None,
            predictor: None,
            selector: None,
            with_libraries: false,
            incumbent: None,
            strategy: None,
            budget: None,
            samples: None,
            seed: 0,
        })
    }

    /// With so many threads of the host; all cores unless given.
    ///
    /// # Errors
    /// Zero, too many, or another device than the cpu.
    pub fn threads(mut self, threads: u16) -> Result<Self, Error> {
        self.device = Arc::new(Mutex::new(Live::new(self.name.open(Some(threads))?)));
        Ok(self)
    }

    /// The time that a plan, or a campaign, has for measuring.
    #[must_use]
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Ends a campaign at so many measurements.
    #[must_use]
    pub fn samples(mut self, samples: u64) -> Self {
        self.samples = Some(samples);
        self
    }

    /// Where profiles, plans and logs are kept; the user's cache directory unless given.
    #[must_use]
    pub fn home(mut self, directory: impl Into<PathBuf>) -> Self {
        self.home = Some(Home::at(directory));
        self
    }

    /// A predictor for all that follows, in the place of whatever is stored.
    #[must_use]
    pub fn predictor(mut self, predictor: impl Predictor + 'static) -> Self {
        self.predictor = Some(Box::new(predictor));
        self
    }

    /// What ranks the kernels of a computation, in the place of whatever a campaign learned; it sees features of the input and the
    /// kernels' names.
    #[must_use]
    pub fn selector(mut self, selector: impl Selector + 'static) -> Self {
        self.selector = Some(Box::new(selector));
        self
    }

    /// Whether routines of libraries that are found on this machine compete with generated kernels; they do not unless given.
    #[must_use]
    pub fn with_libraries(mut self, compete: bool) -> Self {
        self.with_libraries = compete;
        self
    }

    /// The kernel that a selector, which [`Tuner::tune`] learns, leaves for another only where that is surely worth it, as
    /// long as nothing is timed: a routine of a library that one ran before, such as `gemm.cublaslt`. None unless given.
    #[must_use]
    pub fn incumbent(mut self, kernel: impl Into<String>) -> Self {
        self.incumbent = Some(kernel.into());
        self
    }

    /// What searches by measuring: a [`Strategy`](tilewright_search::Strategy) of the catalogue, or one's own.
    #[must_use]
    pub fn strategy(mut self, strategy: impl Into<Choice>) -> Self {
        self.strategy = Some(strategy.into());
        self
    }

    /// The seed of all that is drawn; 0 unless given.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The kernel that a file describes, to be asked for by [`Request::own`]. References that are programs run on a device like this one.
    ///
    /// # Errors
    /// What is wrong with the description, with its place.
    pub fn described(&self, path: impl AsRef<Path>) -> Result<UserKernel, Error> {
        let name = self.name.clone();
        let referee = OnDevice::new(move || name.open(None));
        Ok(UserKernel::open(path.as_ref(), Box::new(referee))?.counted_by(Box::<ByEmulator>::default()))
    }

    /// The facts of the device.
    pub fn spec(&self) -> Arc<DeviceSpec> {
        self.lock().spec().clone()
    }

    /// The object that samplers, models and searches see of a kernel, this device and an input.
    ///
    /// # Errors
    /// No such kernel, fields that describe no input, or one that does not fit into the device's memory.
    pub fn problem(&self, request: &Request) -> Result<Box<dyn Problem>, Error> {
        let (spec, kernels) = (self.spec(), request.kernels(&self.kernels, &self.spec(), false)?);
        // The first that has code for the input, or what the first of all says of it.
        let mut all = kernels.iter().map(|kernel| problem(&**kernel, &spec, request.fields()));
        all.find(Result::is_ok).unwrap_or_else(|| problem(&*kernels[0], &spec, request.fields()))
    }

    /// Measures configurations of drawn inputs, those with the fields of the request, of all kernels that compete for it, and stores
    /// profiles that plans predict with from then on, and a selector that ranks the kernels. Resumes an interrupted campaign. A minute unless [`Tuner::budget`] says how long.
    ///
    /// # Errors
    /// No such kernel, an incumbent that is none of those that compete, a device without a clock or one that fails, nothing legal, too
    /// few measurements to learn from, or a file.
    pub fn tune(&mut self, request: &Request) -> Result<TuneReport, Error> {
        let (kernels, home) =
            (request.kernels(&self.kernels, &self.spec(), self.with_libraries)?, self.home_or_default()?);
        let incumbent = self.incumbent.as_deref().map(|name| named(&kernels, name)).transpose()?;
        let trainers = trainers(&home, FITTED, &self.spec())?;
        let defaults = TuneSettings::default();
        let mut held = self.lock();
        let mut campaign = tune::Tuner {
            kernels: kernels.iter().map(|kernel| &**kernel).collect(),
            devices: vec![&mut *held],
            sampler: tune::chained,
            trainer: trainers.get(FITTED).map_err(|e| Error::UnknownKernel { name: e.kind, known: e.known })?,
            observer: &mut Silent,
            settings: TuneSettings {
                fixed: request.fields().clone(),
                budget: self.budget.unwrap_or(defaults.budget),
                samples: self.samples,
                incumbent: incumbent.map(|kernel| kernel.id()),
                seed: self.seed,
                ..defaults
            },
        };
        let paths = campaign.paths(&home);
        let report = campaign.run(&paths)?;
        let (device, objective) = (campaign.devices[0].spec(), &campaign.settings.objective);
        if let Err(error) = record_report(&home, device, &campaign.kernels, &report, objective) {
            tracing::warn!(%error, "nothing is recorded for other devices");
        }
        Ok(report)
    }

    /// Decides the kernel and the configuration for an input and makes it ready to be called. Answers are remembered; on a device with a clock
    /// they are verified first.
    ///
    /// # Errors
    /// No such kernel, fields that describe no input, nothing legal, nothing that runs or computes right, a device that fails,
    /// a predictor that does not speak of the kernel, or a file.
    pub fn plan(&mut self, request: &Request) -> Result<Callable, Error> {
        let (home, spec) = (self.home_or_default()?, self.spec());
        let kernels = request.kernels(&self.kernels, &spec, self.with_libraries)?;
        let mut held = self.lock();
        let has_clock = self.name.kind() != DeviceKind::Emulator;
        let measure = has_clock.then_some(&mut *held as &mut dyn Measure);
        let planning = Planning {
            with_libraries: self.with_libraries,
            predictor: self.predictor.as_deref(),
            selector: self.selector.as_deref(),
            ..Planning::new(&home, &kernels, &spec, measure, self.settings())
        };
        let (problem, planned) = planning.decide(request.fields())?;
        drop(held);
        Callable::new(&*problem, planned, &self.device)
    }

    fn settings(&self) -> PlanSettings {
        let defaults = PlanSettings::default();
        let asked = Asked {
            budget: self.budget,
            model: self.predictor.as_ref().map(|own| own.kind().to_owned()),
            strategy: self.strategy.as_ref().map(|s| s.name().to_owned()),
            ..Asked::default()
        };
        PlanSettings {
            strategy: self.strategy.clone().unwrap_or(defaults.strategy),
            refine: self.budget.unwrap_or(defaults.refine),
            budget: self.budget.unwrap_or(defaults.budget),
            seed: self.seed,
            asked,
            ..defaults
        }
    }

    fn home_or_default(&self) -> Result<Home, Error> {
        Ok(self.home.clone().map_or_else(Home::from_environment, Ok)?)
    }

    fn lock(&self) -> MutexGuard<'_, Live<Box<dyn Device>>> {
        // Data of a call that panicked are put down anew before anything is timed or run.
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
