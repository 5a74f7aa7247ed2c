//! Tuning the kernels of a computation for a device: draw inputs and configurations, measure, log, fit, write profiles.

mod campaign;
mod recorder;
mod settings;
mod training;
mod unstored;

pub use recorder::Logged;
pub use settings::{Observer, Progress, Silent, TuneSettings};
pub use training::{Rows, rows};

use crate::bystanders::Disturbance;
use crate::error::RuntimeError;
use crate::knowledge::Shared;
use crate::log::{CampaignLog, LogHeader, Record, Sample};
use crate::selection::{SelectorStore, StoredSelector, learn_from};
use crate::store::{Home, Profile, ProfileHeader, ProfileStore, TrainingStats, file_name, stem, unix_seconds};
use crate::trainer::{Trained, Trainer};
use campaign::Campaign;
use recorder::Recorder;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tilewright_core::device::DeviceSpec;
use tilewright_core::id::KernelId;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Measure};
use tilewright_core::space::{Config, ParamSpace};
use tilewright_sampler::{Acceptance, Chained, Sampler, Settings};
use unstored::Unstored;

/// Fewest measurements that a model is fitted on: what the perceptron needs to fit and to validate.
pub const FEWEST_SAMPLES: u64 = 20;

/// What a campaign works with.
pub struct Tuner<'a> {
    /// What is tuned: kernels of one computation. All are measured for the same inputs, one kernel after the other, so that the
    /// data of an input are made once.
    pub kernels: Vec<&'a dyn AnyKernel>,
    /// Where they are timed: devices of one model, each with inputs of its own.
    pub devices: Vec<&'a mut dyn Measure>,
    /// Makes what draws configurations of a kernel's space; [`chained`] is recommended.
    pub sampler: fn(&ParamSpace) -> Box<dyn Sampler>,
    /// Fits the models.
    pub trainer: &'a dyn Trainer,
    /// Hears how it goes.
    pub observer: &'a mut dyn Observer,
    /// How it is run.
    pub settings: TuneSettings,
}

/// The sampler that is recommended.
pub fn chained(space: &ParamSpace) -> Box<dyn Sampler> {
    Box::new(Chained::new(space, Settings::default()))
}

/// The files of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunePaths {
    /// Its log; resumed if it is there.
    pub log: PathBuf,
    /// The profile that is written.
    pub profile: PathBuf,
}

impl TunePaths {
    /// Where the files of a kernel, tuned for inputs with these fields, belong.
    pub fn at(home: &Home, kernel: &dyn AnyKernel, device: &DeviceSpec, fixed: &Config) -> Self {
        let name = stem(kernel.id().as_str(), device, fixed);
        let profile = ProfileStore::new(home.profiles()).path(&kernel.id(), device, fixed);
        Self { log: home.logs().join(format!("{name}.log")), profile }
    }

    /// The files of a kernel whose profile goes to a place of the caller's choice. The log is kept with the others, under a name of that
    /// place: the caller asked for one file, which may be a device.
    pub fn to(home: &Home, kernel: &dyn AnyKernel, profile: &Path) -> Self {
        let place = std::path::absolute(profile).unwrap_or_else(|_| profile.to_owned());
        let place = blake3::hash(place.as_os_str().as_encoded_bytes()).to_hex();
        let log = format!("{}-to-{}.log", file_name(kernel.id().as_str()), &place[..16]);
        Self { log: home.logs().join(log), profile: profile.to_owned() }
    }
}

/// What was measured.
pub struct Collected {
    /// The log of each kernel, and what its sampler accepted.
    pub of_kernels: Vec<(Logged, Acceptance)>,
    /// How much others disturbed on this machine.
    pub disturbance: Disturbance,
    /// Why logs are not kept, or not to their ends; see [`TuneSettings::without_files`].
    pub unstored: Vec<String>,
}

/// What came out of a campaign.
pub struct TuneReport {
    /// The device, as on the command line; the first of several.
    pub device: String,
    /// What came out for each kernel, in their order.
    pub kernels: Vec<KernelReport>,
    /// What ranks the kernels, beside the first one's profile, and the file; or why there is none.
    pub selector: Result<(PathBuf, StoredSelector), String>,
    /// Measurements in the logs, those of earlier campaigns included.
    pub samples: u64,
    /// Failed configurations in the logs.
    pub failed: u64,
    /// Measurements and failures that an interrupted or earlier campaign left.
    pub resumed: u64,
    /// Whether the observer ended the measuring: another run goes on.
    pub interrupted: bool,
    /// How much others disturbed on this machine.
    pub disturbance: Disturbance,
    /// Why files are not stored; see [`TuneSettings::without_files`].
    pub unstored: Vec<String>,
    /// Seconds of this call, fitting included.
    pub seconds: f64,
}

/// What came out for a kernel.
pub struct KernelReport {
    /// Which one.
    pub kernel: KernelId,
    /// Measurements in its log, those of earlier campaigns included.
    pub samples: u64,
    /// Failed configurations in its log.
    pub failed: u64,
    /// Distinct inputs.
    pub inputs: u64,
    /// Draws of its sampler, in this call.
    pub acceptance: Acceptance,
    /// The log.
    pub log: PathBuf,
    /// All that the log holds, in order.
    pub measured: Vec<Sample>,
    /// The model, or why there is none: one configuration needs none, and few samples make none.
    pub model: Result<Fitted, String>,
}

/// A model that was fitted and stored.
pub struct Fitted {
    /// The profile.
    pub profile: PathBuf,
    /// Whether it is there: see [`TuneSettings::without_files`].
    pub is_stored: bool,
    /// Mean squared error of the log-time on inputs that chose nothing of the model.
    pub cv_mse: Option<f64>,
    /// Seconds of fitting.
    pub fit_s: f64,
    /// Ready to plan with.
    pub predictor: Box<dyn Predictor>,
}

impl TuneReport {
    /// The models that were fitted.
    pub fn models(&self) -> impl Iterator<Item = &Fitted> {
        self.kernels.iter().filter_map(|k| k.model.as_ref().ok())
    }
}

impl Tuner<'_> {
    /// Where the files of this campaign belong, kernel by kernel.
    ///
    /// # Panics
    /// If there is no device.
    pub fn paths(&self, home: &Home) -> Vec<TunePaths> {
        let (device, fixed) = (self.devices[0].spec(), &self.settings.fixed);
        self.kernels.iter().map(|kernel| TunePaths::at(home, *kernel, device, fixed)).collect()
    }

    /// Runs the campaign, or the rest of an interrupted one.
    ///
    /// # Errors
    /// Those of [`Tuner::collect`], and of a campaign of one kernel with several configurations: too few measurements to learn from,
    /// or a model that cannot be fitted. Whatever was measured is in the logs.
    pub fn run(&mut self, paths: &[TunePaths]) -> Result<TuneReport, RuntimeError> {
        let began = Instant::now();
        let Collected { of_kernels: collected, disturbance, unstored } = self.collect(paths)?;
        let mut not = Unstored::new(&self.settings);
        let interrupted = self.observer.stop();
        let device = self.devices[0].spec().clone();
        let resumed = collected.iter().map(|(logged, _)| logged.resumed as u64).sum();
        let mut kernels = Vec::new();
        for ((at, (mut logged, acceptance)), paths) in collected.into_iter().enumerate().zip(paths) {
            let model = match self.fit(at, &device, &logged, &acceptance, (paths, &mut not)) {
                Err(error @ (RuntimeError::TooFewSamples { .. } | RuntimeError::Train(_)))
                    if self.kernels.len() > 1 =>
                {
                    Err(error.to_string())
                }
                fitted => fitted?,
            };
            if !interrupted {
                logged.write(&mut not, |log| log.append(&Record::Finished { at: unix_seconds() }))?;
            }
            logged.write(&mut not, CampaignLog::sync)?;
            let samples = logged.ok();
            let measured = logged.samples.iter().filter(|s| s.outcome.is_ok());
            let inputs = measured.map(|s| s.input.to_string()).collect::<HashSet<_>>().len() as u64;
            kernels.push(KernelReport {
                kernel: self.kernels[at].id(),
                samples,
                failed: logged.samples.len() as u64 - samples,
                inputs,
                acceptance,
                log: paths.log.clone(),
                measured: logged.samples,
                model,
            });
        }
        Ok(TuneReport {
            device: device.id.clone(),
            samples: kernels.iter().map(|k| k.samples).sum(),
            failed: kernels.iter().map(|k| k.failed).sum(),
            selector: self.learn(&device, &kernels, paths, &mut not)?,
            unstored: [unstored, not.reasons()].concat(),
            kernels,
            resumed,
            interrupted,
            disturbance,
            seconds: began.elapsed().as_secs_f64(),
        })
    }

    /// Learns and stores what ranks the kernels for an input, or says why there is nothing.
    fn learn(
        &self,
        device: &Arc<DeviceSpec>,
        reports: &[KernelReport],
        paths: &[TunePaths],
        unstored: &mut Unstored,
    ) -> Result<Result<(PathBuf, StoredSelector), String>, RuntimeError> {
        let TuneSettings { objective, fixed, incumbent, seed, .. } = &self.settings;
        let samples: Vec<&[Sample]> = reports.iter().map(|k| &k.measured[..]).collect();
        let store = SelectorStore::new(paths[0].profile.parent().unwrap_or(Path::new("")));
        match learn_from(&store, (&self.kernels, &samples), device, (objective, fixed, incumbent.as_ref()), *seed) {
            Ok(Some(learned)) => Ok(Ok(learned)),
            Ok(None) => Ok(Err("too few inputs were measured of several kernels".into())),
            Err(RuntimeError::Selection(error)) => Ok(Err(error.to_string())),
            Err(RuntimeError::Store(error)) => {
                let why = error.to_string();
                Ok(unstored.judge(Err(error))?.ok_or(why))
            }
            Err(error) => Err(error),
        }
    }

    /// Measures until the budget ends, and fits nothing: the logs, open, and what the samplers accepted.
    ///
    /// # Errors
    /// A setting out of range, a file (see [`CampaignLog::open`]), a device that fails, or nothing legal. Whatever was measured
    /// is in the logs.
    pub fn collect(&mut self, paths: &[TunePaths]) -> Result<Collected, RuntimeError> {
        self.check()?;
        let (device, settings) = (self.devices[0].spec().clone(), &self.settings);
        let header = |kernel: &dyn AnyKernel| LogHeader {
            kernel: kernel.id(),
            fingerprint: device.fingerprint(),
            device: device.name.clone(),
            fixed: settings.fixed.clone(),
        };
        let mut unstored = Unstored::new(settings);
        let mut opened = Vec::new();
        for (kernel, to) in self.kernels.iter().zip(paths) {
            let log = unstored.judge(CampaignLog::open(&to.log, &header(*kernel)))?;
            opened.push(log.unwrap_or_else(|| CampaignLog::unkept(&to.log)));
        }
        let recorder = Recorder::new(opened, &device, (settings, unstored), &mut *self.observer);
        let mut samplers: Vec<_> = self.kernels.iter().map(|kernel| (self.sampler)(kernel.space())).collect();
        let sources = samplers.iter_mut().map(|sampler| Shared::new(&mut **sampler));
        let subjects = self.kernels.iter().copied().zip(sources);
        let devices = (device.clone(), self.devices.len());
        let recorder = Campaign::new(subjects, self.trainer, settings, devices, recorder).measure(&mut self.devices)?;
        let (disturbance, unstored) = (recorder.bystanders.seen(), recorder.unstored.reasons());
        let logs = recorder.logs.into_iter();
        let of_kernels = logs.zip(samplers).map(|(logged, sampler)| (logged, sampler.acceptance().clone())).collect();
        Ok(Collected { of_kernels, disturbance, unstored })
    }

    /// Refuses, before a log is begun, what cannot be run.
    fn check(&self) -> Result<(), RuntimeError> {
        let refuse = |field, message: String| Err(RuntimeError::Setting { field, message });
        self.settings.check()?;
        let Some(first) = self.kernels.first() else { return refuse("kernels", "at least one".into()) };
        if let Some(other) = self.kernels.iter().find(|k| k.computation() != first.computation()) {
            return refuse("kernels", format!("{} and {} compute different things", first.id(), other.id()));
        }
        if let Some(id) = &self.settings.incumbent {
            let tuned: Vec<KernelId> = self.kernels.iter().map(|kernel| kernel.id()).collect();
            if tuned.len() < 2 || !tuned.contains(id) {
                let tuned: Vec<&str> = tuned.iter().map(KernelId::as_str).collect();
                let tuned = tuned.join(", ");
                return refuse("incumbent", format!("{id} must be one of several kernels that are tuned: {tuned}"));
            }
        }
        let Some(device) = self.devices.first() else { return refuse("devices", "at least one".into()) };
        if let Some(other) = self.devices.iter().find(|d| d.spec().fingerprint() != device.spec().fingerprint()) {
            return refuse("devices", format!("{} is another model than {}", other.spec().id, device.spec().id));
        }
        first.draw(&self.settings.fixed, &self.settings.limits, &mut || 0.5)?;
        Ok(())
    }

    /// Fits and stores the model of a kernel, or says why it needs none.
    fn fit(
        &mut self,
        at: usize,
        device: &Arc<DeviceSpec>,
        logged: &Logged,
        acceptance: &Acceptance,
        (paths, unstored): (&TunePaths, &mut Unstored),
    ) -> Result<Result<Fitted, String>, RuntimeError> {
        let (kernel, began, ok) = (self.kernels[at], Instant::now(), logged.ok());
        let failed = logged.samples.len() as u64 - ok;
        if ok > 0 && kernel.space().params().iter().all(|p| p.values.len() == 1) {
            return Ok(Err("it has one configuration, which needs no model".into()));
        }
        let rows = rows(kernel, device, &logged.samples, &self.settings.objective, self.trainer.prior())?;
        if ok < FEWEST_SAMPLES {
            let interrupted = self.observer.stop();
            return Err(RuntimeError::TooFewSamples { samples: ok, failed, need: FEWEST_SAMPLES, interrupted });
        }
        self.observer.fitting(rows.set.len() as u64);
        let Trained { predictor, model, cv_mse } = self.trainer.train(&rows.set, self.settings.seed)?;
        let fit_s = began.elapsed().as_secs_f64();
        let stats = TrainingStats {
            samples: ok,
            failed,
            inputs: rows.inputs,
            cv_mse,
            measure_s: logged.samples.iter().map(|s| s.spent_s).sum(),
            fit_s,
            accepted: acceptance.accepted,
            drawn: acceptance.drawn,
        };
        let header = ProfileHeader {
            objective: self.settings.objective.clone(),
            model_kind: self.trainer.kind().to_owned(),
            seed: self.settings.seed,
            stats,
            ..ProfileHeader::new(kernel.id(), device, &kernel.schema(), self.settings.fixed.clone())
        };
        let is_stored = unstored.judge(Profile { header, model }.write(&paths.profile))?.is_some();
        Ok(Ok(Fitted { profile: paths.profile.clone(), is_stored, cv_mse, fit_s, predictor }))
    }
}
