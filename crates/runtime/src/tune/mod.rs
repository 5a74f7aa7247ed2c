//! Tuning a kernel for a device: draw inputs and configurations, measure, log, fit, write a profile.

mod campaign;
mod recorder;
mod settings;
mod summary;
mod training;

pub use settings::{Observer, Progress, Silent, TuneSettings};
pub use summary::InputSummary;
pub use training::{Rows, rows};

use crate::error::RuntimeError;
use crate::log::{CampaignLog, LogHeader, Opened, Record};
use crate::store::{Home, Profile, ProfileHeader, ProfileStore, TrainingStats, stem, unix_seconds};
use crate::trainer::Trainer;
use campaign::Campaign;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tilewright_core::id::KernelId;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Measure};
use tilewright_core::timing::Clock;
use tilewright_sampler::Sampler;

/// Fewest measurements that a model is fitted on.
pub const FEWEST_SAMPLES: u64 = 16;

/// What a campaign works with.
pub struct Tuner<'a> {
    /// What is tuned.
    pub kernel: &'a dyn AnyKernel,
    /// Where it is timed.
    pub measure: &'a mut dyn Measure,
    /// Draws configurations.
    pub sampler: &'a mut dyn Sampler,
    /// Fits the model.
    pub trainer: &'a dyn Trainer,
    /// Hears how it goes.
    pub observer: &'a mut dyn Observer,
    /// How it is run.
    pub settings: TuneSettings,
}

/// The files of a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunePaths {
    /// The campaign's log; resumed if it is there.
    pub log: PathBuf,
    /// The profile that is written.
    pub profile: PathBuf,
}

/// What came out of a campaign.
pub struct TuneReport {
    /// The device, as on the command line.
    pub device: String,
    /// The kernel.
    pub kernel: KernelId,
    /// Measurements in the log, those of earlier campaigns included.
    pub samples: u64,
    /// Failed configurations in the log.
    pub failed: u64,
    /// Measurements and failures that an interrupted or earlier campaign left.
    pub resumed: u64,
    /// Distinct inputs.
    pub inputs: u64,
    /// Seconds of this call, fitting included.
    pub seconds: f64,
    /// Seconds of this call that went into fitting.
    pub fit_s: f64,
    /// Cross-validated error of the model.
    pub cv_mse: Option<f64>,
    /// Accepted draws by all draws of the sampler, in this call.
    pub accepted: u64,
    /// All draws of the sampler, in this call.
    pub drawn: u64,
    /// The profile.
    pub profile: PathBuf,
    /// The log.
    pub log: PathBuf,
    /// Every input with what tuning gained on it, in the order of drawing.
    pub summaries: Vec<InputSummary>,
    /// The model, ready to plan with.
    pub predictor: Box<dyn Predictor>,
}

impl Tuner<'_> {
    /// Where the files of this campaign belong.
    pub fn paths(&self, home: &Home) -> TunePaths {
        let (kernel, device) = (self.kernel.id(), self.measure.spec());
        let name = stem(&kernel, device, &self.settings.fixed);
        let profile = ProfileStore::new(home.profiles()).path(&kernel, device, &self.settings.fixed);
        TunePaths { log: home.logs().join(format!("{name}.log")), profile }
    }

    /// Runs the campaign, or the rest of an interrupted one.
    ///
    /// # Errors
    /// A setting out of range, a file (see [`CampaignLog::open`]), a device that fails, nothing legal, too few
    /// measurements to learn from, or a model that cannot be fitted. Whatever was measured is in the log.
    pub fn run(&mut self, paths: &TunePaths) -> Result<TuneReport, RuntimeError> {
        self.run_with_clock(paths, &Instant::now())
    }

    /// [`Tuner::run`] with the budget counted by another clock.
    ///
    /// # Errors
    /// See [`Tuner::run`].
    pub fn run_with_clock(&mut self, paths: &TunePaths, clock: &dyn Clock) -> Result<TuneReport, RuntimeError> {
        self.settings.check()?;
        // Wrong words are found before a log is begun for them.
        self.kernel.draw(&self.settings.fixed, &self.settings.limits, &mut || 0.5)?;
        let began = clock.now();
        let device = self.measure.spec().clone();
        let header = LogHeader {
            kernel: self.kernel.id(),
            fingerprint: device.fingerprint(),
            device: device.name.clone(),
            fixed: self.settings.fixed.clone(),
        };
        let Opened { log, samples, finished, .. } = CampaignLog::open(&paths.log, &header)?;
        let resumed = samples.len() as u64;
        let before = self.sampler.acceptance().clone();
        let mut campaign = Campaign::new(self, log, samples, finished, clock);
        campaign.measure()?;
        let (mut log, samples) = campaign.finish();
        let measured = clock.now();

        let objective = &self.settings.objective;
        let rows = rows(self.kernel, &device, &samples, objective, self.trainer.prior())?;
        let ok = samples.iter().filter(|s| s.outcome.is_ok()).count() as u64;
        let failed = samples.len() as u64 - ok;
        if ok < FEWEST_SAMPLES {
            return Err(RuntimeError::TooFewSamples { samples: ok, failed, need: FEWEST_SAMPLES });
        }
        self.observer.fitting(rows.set.len() as u64);
        let trained = self.trainer.train(&rows.set, self.settings.seed)?;
        let acceptance = self.sampler.acceptance().since(&before);
        let stats = TrainingStats {
            samples: ok,
            failed,
            inputs: rows.inputs,
            cv_mse: trained.cv_mse,
            measure_s: samples.iter().map(|s| s.spent_s).sum(),
            fit_s: clock.now().saturating_sub(measured).as_secs_f64(),
            accepted: acceptance.accepted,
            drawn: acceptance.drawn,
        };
        self.write_profile(&paths.profile, &device, &stats, trained.model)?;
        log.append(&Record::Finished { at: unix_seconds() })?;
        log.sync()?;
        Ok(TuneReport {
            device: device.id.clone(),
            kernel: self.kernel.id(),
            samples: ok,
            failed,
            resumed,
            inputs: rows.inputs,
            seconds: clock.now().saturating_sub(began).as_secs_f64(),
            fit_s: stats.fit_s,
            cv_mse: stats.cv_mse,
            accepted: stats.accepted,
            drawn: stats.drawn,
            profile: paths.profile.clone(),
            log: paths.log.clone(),
            summaries: summary::summaries(&samples, &self.settings.objective),
            predictor: trained.predictor,
        })
    }

    fn write_profile(
        &self,
        path: &Path,
        device: &tilewright_core::device::DeviceSpec,
        stats: &TrainingStats,
        model: serde_json::Value,
    ) -> Result<(), RuntimeError> {
        let header = ProfileHeader::new(self.kernel.id(), device, &self.kernel.schema(), self.settings.fixed.clone());
        let header = ProfileHeader {
            objective: self.settings.objective.clone(),
            model_kind: self.trainer.kind().to_owned(),
            seed: self.settings.seed,
            stats: stats.clone(),
            ..header
        };
        Ok(Profile { header, model }.write(path)?)
    }
}
