//! Tuning and planning any kernel on one device.

use crate::callable::Callable;
use crate::device::DeviceName;
use crate::error::Error;
use crate::kernels::Kernels;
use crate::known::{Known, trainers};
use crate::request::Request;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tilewright_core::computation::{InputError, InputLimits};
use tilewright_core::device::{Device, DeviceKind, DeviceSpec};
use tilewright_core::measurement::Timing;
use tilewright_core::predictor::{BindError, Predictor};
use tilewright_core::problem::{AnyKernel, Measure, Problem};
use tilewright_runtime::Live;
use tilewright_runtime::plan::{Asked, PlanSettings, Planned, Planner, Ranking, Sampling};
use tilewright_runtime::plan_cache::PlanCache;
use tilewright_runtime::store::Home;
use tilewright_runtime::tune::{self, Silent, TuneReport, TuneSettings};
use tilewright_sampler::{Chained, Settings};
use tilewright_search::Choice;

/// A device that is measured and called on.
pub(crate) type Opened = Mutex<Live<Box<dyn Device>>>;

/// The kind of the models that [`Tuner::tune`] fits.
const FITTED: &str = "mlp";

/// Tunes, plans and calls kernels on one device. Whatever is known is used, in this order: the plan cache, the stored profile of
/// kernel and device, the linear model of the device, the kernel's default.
pub struct Tuner {
    name: DeviceName,
    device: Arc<Opened>,
    kernels: Kernels,
    home: Option<Home>,
    predictor: Option<Box<dyn Predictor>>,
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

    /// The facts of the device.
    pub fn spec(&self) -> Arc<DeviceSpec> {
        self.lock().spec().clone()
    }

    /// The object that samplers, models and searches see of a kernel, this device and an input.
    ///
    /// # Errors
    /// No such kernel, fields that describe no input, or one that does not fit into the device's memory.
    pub fn problem(&self, request: &Request) -> Result<Box<dyn Problem>, Error> {
        problem(&*request.kernel(&self.kernels, self.name.kind())?, &self.spec(), request)
    }

    /// Measures configurations of drawn inputs, those with the fields of the request, and stores a profile that plans predict
    /// with from then on. Resumes an interrupted campaign. A minute unless [`Tuner::budget`] says how long.
    ///
    /// # Errors
    /// No such kernel, a device without a clock or one that fails, nothing legal, too few measurements to learn from, or a
    /// file.
    pub fn tune(&mut self, request: &Request) -> Result<TuneReport, Error> {
        let (kernel, home) = (request.kernel(&self.kernels, self.name.kind())?, self.home_or_default()?);
        let trainers = trainers(&home, FITTED, &self.spec())?;
        let mut sampler = Chained::new(kernel.space(), Settings::default());
        let defaults = TuneSettings::default();
        let settings = TuneSettings {
            fixed: request.fields().clone(),
            samples: self.samples,
            seed: self.seed,
            ..campaign(self.budget.unwrap_or(defaults.budget))
        };
        let mut campaign = tune::Tuner {
            kernel: &*kernel,
            measure: &mut *self.lock(),
            sampler: &mut sampler,
            trainer: trainers.get(FITTED).map_err(|e| Error::UnknownKernel { name: e.kind, known: e.known })?,
            observer: &mut Silent,
            settings,
        };
        let paths = campaign.paths(&home);
        Ok(campaign.run(&paths)?)
    }

    /// Decides the configuration of an input and makes it ready to be called. Answers are remembered; on a device with a clock
    /// they are verified first.
    ///
    /// # Errors
    /// No such kernel, fields that describe no input, nothing legal, nothing that runs or computes right, a device that fails,
    /// a predictor that does not speak of the kernel, or a file.
    pub fn plan(&mut self, request: &Request) -> Result<Callable, Error> {
        let kernel = request.kernel(&self.kernels, self.name.kind())?;
        let problem = problem(&*kernel, &self.spec(), request)?;
        let planned = self.decide(&*kernel, &*problem)?;
        Callable::new(&*problem, planned, &self.device)
    }

    fn decide(&self, kernel: &dyn AnyKernel, problem: &dyn Problem) -> Result<Planned, Error> {
        let (home, spec) = (self.home_or_default()?, self.spec());
        let known = match &self.predictor {
            Some(_) => Known::nothing(kernel),
            None => usable(Known::find(&home, (None, None), kernel, &spec, &problem.input())?, problem),
        };
        let predictor = self.predictor.as_deref().or(known.predictor.as_deref());
        let ranking = match predictor {
            Some(own) if own.is_costly() => Ranking::Sample(Sampling::default()),
            _ => known.ranking.clone(),
        };
        let mut sampler = Known { ranking: ranking.clone(), ..Known::nothing(kernel) }.sampler();
        let cache = PlanCache::new(home.plans());
        let mut held = self.lock();
        let has_clock = self.name.kind() != DeviceKind::Emulator;
        let mut planner = Planner {
            kernel,
            device: &spec,
            measure: has_clock.then_some(&mut *held as &mut dyn Measure),
            predictor,
            sampler: &mut *sampler,
            cache: Some(&cache),
            settings: self.settings(ranking, known.origin),
        };
        Ok(planner.plan_problem(problem)?)
    }

    fn settings(&self, ranking: Ranking, origin: Option<String>) -> PlanSettings {
        let defaults = PlanSettings::default();
        let asked = Asked {
            budget: self.budget,
            model: self.predictor.as_ref().map(|own| own.kind().to_owned()),
            profile: origin,
            strategy: self.strategy.as_ref().map(|s| s.name().to_owned()),
            ..Asked::default()
        };
        PlanSettings {
            ranking,
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

/// A campaign as it is recommended: many short measurements teach a model more than few exact ones, its own error is far above
/// theirs.
pub fn campaign(budget: Duration) -> TuneSettings {
    TuneSettings {
        budget,
        limits: InputLimits { max_flops: 2e9, max_bytes: 128e6 },
        configs_per_input: 32,
        cut_off: 12.0,
        timing: Timing {
            warmup: 1,
            min_repeats: 2,
            max_repeats: 8,
            relative_error: 0.05,
            max_time: Duration::from_millis(4),
            ..Timing::default()
        },
        ..TuneSettings::default()
    }
}

fn problem(kernel: &dyn AnyKernel, spec: &Arc<DeviceSpec>, request: &Request) -> Result<Box<dyn Problem>, Error> {
    let problem = kernel.problem(spec, request.fields())?;
    let need = problem.work().bytes;
    match spec.fact("memory_bytes") {
        Some(have) if need > have as f64 => {
            let message = format!("its buffers take {need:.0} bytes; this device has {have}");
            Err(Error::Runtime(InputError::new("input", message).into()))
        }
        _ => Ok(problem),
    }
}

/// The linear model has no word for a kernel that nothing counts: then nothing is known.
fn usable<'k>(known: Known<'k>, problem: &dyn Problem) -> Known<'k> {
    let bound = known.predictor.as_ref().map(|predictor| predictor.bind(problem).map(drop));
    match bound {
        Some(Err(BindError::Uncounted { .. })) => Known::nothing(known.kernel),
        _ => known,
    }
}
