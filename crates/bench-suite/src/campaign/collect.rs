//! The training set and the profiles that are fitted on it: the engine of [`tilewright_runtime::tune`] on all devices at once.

use super::export::export;
use super::stages::Progress;
use super::state::State;
use super::{Campaign, CampaignError, Deadline, LARGEST_FILE};
use std::sync::PoisonError;
use std::time::{Duration, Instant};
use tilewright_core::problem::Measure;
use tilewright_core::text::counted;
use tilewright_runtime::Live;
use tilewright_runtime::tune::{Observer, Progress as Standing, Silent, TunePaths, TuneSettings, Tuner, chained};

/// How often progress is reported.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// Tells how far the campaign is, and ends it in time.
struct Tell<'a> {
    note: &'a (dyn Fn(&str) + Sync),
    last: Instant,
    deadline: Deadline<'a>,
}

impl Observer for Tell<'_> {
    fn sample(&mut self, standing: &Standing<'_>) {
        if self.last.elapsed() >= TELL_EVERY {
            self.last = Instant::now();
            (self.note)(&format!("collect: {}, {} failed", counted(standing.samples, "sample"), standing.failed));
        }
    }

    fn stop(&self) -> bool {
        self.deadline.over()
    }
}

/// Works with the engine on all devices.
fn with_tuner<R>(
    campaign: &Campaign<'_>,
    budget: Duration,
    observer: &mut dyn Observer,
    work: impl FnOnce(&mut Tuner<'_>, &[TunePaths]) -> R,
) -> R {
    let Campaign { kernels, trainer, objective, settings, devices, .. } = campaign;
    let mut held: Vec<_> = devices.iter().map(|d| d.lock().unwrap_or_else(PoisonError::into_inner)).collect();
    let mut live: Vec<_> = held.iter_mut().map(|device| Live::new(&mut **device).seed(settings.seed)).collect();
    let (scale, usual) = (&settings.scale, TuneSettings::default());
    let mut tuner = Tuner {
        kernels: kernels.clone(),
        devices: live.iter_mut().map(|device| device as &mut dyn Measure).collect(),
        sampler: chained,
        trainer: *trainer,
        observer,
        settings: TuneSettings {
            limits: scale.collect_limits,
            budget,
            samples: Some(scale.samples),
            objective: objective.clone(),
            log_bytes: LARGEST_FILE,
            seed: settings.seed,
            timing: scale.timing(usual.timing.clone()),
            ..usual
        }
        .whole_inputs(scale.configs_per_input),
    };
    work(&mut tuner, &campaign.paths())
}

pub(super) fn run(
    campaign: &Campaign<'_>,
    state: &mut State,
    deadline: Deadline<'_>,
) -> Result<Progress, CampaignError> {
    let began = Instant::now();
    let mut tell = Tell { note: campaign.note, last: began, deadline };
    // The deadline is this run's, whatever earlier runs took.
    let logs = with_tuner(campaign, Duration::MAX, &mut tell, |tuner, paths| tuner.collect(paths))?.of_kernels;
    let count = |of: fn(usize, usize) -> usize| {
        logs.iter().map(|(logged, _)| of(logged.samples.len(), logged.resumed)).sum::<usize>() as u64
    };
    let (all, new) = (count(|all, _| all), count(|all, before| all - before));
    drop(logs);
    state.samples = all;
    let (seconds, rows) = (began.elapsed().as_secs_f64(), export(campaign)?);
    let note = format!(
        "{}, {new} of them in {seconds:.0} s ({:.1}/s); {}",
        counted(all, "sample"),
        new as f64 / seconds.max(1e-3),
        counted(rows, "row")
    );
    // It ended by itself: there is enough, or no room for more.
    Ok(Progress { done: !deadline.over(), note })
}

/// Whether there are clearly more samples than the profiles were fitted on.
pub(super) fn has_more(_: &Campaign<'_>, state: &State) -> bool {
    state.samples as f64 > state.fitted as f64 * 1.1
}

/// Fits a profile for each kernel on everything in its log.
pub(super) fn fit(campaign: &Campaign<'_>, state: &mut State, _: Deadline<'_>) -> Result<Progress, CampaignError> {
    // No time to measure: what is in the logs is all.
    let report = match with_tuner(campaign, Duration::ZERO, &mut Silent, |tuner, paths| tuner.run(paths)) {
        Ok(report) => report,
        Err(error @ tilewright_runtime::RuntimeError::TooFewSamples { .. }) => {
            return Ok(Progress { done: false, note: error.to_string() });
        }
        Err(error) => return Err(error.into()),
    };
    state.samples = report.samples + report.failed;
    state.fitted = state.samples;
    let notes = report.kernels.iter().map(|of| {
        let fitted = match &of.model {
            Ok(model) => {
                model.cv_mse.map_or("fitted".into(), |e| format!("error of the logarithm {e:.4} (mean square)"))
            }
            Err(why) => format!("no model: {why}"),
        };
        {
            let (samples, inputs) = (counted(of.samples, "measurement"), counted(of.inputs, "input"));
            format!("{}: {samples} of {inputs}, {fitted}", of.kernel)
        }
    });
    Ok(Progress { done: true, note: notes.collect::<Vec<_>>().join("; ") })
}
