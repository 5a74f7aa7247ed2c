//! How a campaign is run, and what it tells while it runs.

use crate::error::RuntimeError;
use std::time::Duration;
use tilewright_core::computation::InputLimits;
use tilewright_core::id::KernelId;
use tilewright_core::measurement::{Outcome, Timing};
use tilewright_core::objective::Objective;
use tilewright_core::space::Config;

/// How a campaign is run.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneSettings {
    /// Input fields that every drawn input keeps: `dtype=f32`.
    pub fixed: Config,
    /// Largest drawn input.
    pub limits: InputLimits,
    /// Time to measure for. An interrupted campaign that is resumed has the rest of it.
    pub budget: Duration,
    /// Stop when the log has this many measurements, those of earlier campaigns included.
    pub samples: Option<u64>,
    /// Configurations measured for one drawn input; making its data is paid once.
    pub configs_per_input: u32,
    /// Share of configurations that differ in a parameter or two from the best so far for the input, so that the
    /// neighbourhood of the optimum is seen as often as the rest of the space.
    pub neighbours: f64,
    /// Share of configurations that were the best for an earlier input.
    pub carried: f64,
    /// Share of configurations that differ in a parameter or two from the best for an earlier input.
    pub near_carried: f64,
    /// Share of configurations that a model, fitted on what was measured so far, expects to be the best. What it is
    /// wrong about is just what the final model must not be wrong about: a search over the whole space finds it.
    pub guided: f64,
    /// When such a model is fitted, as shares of the campaign.
    pub guide_at: Vec<f64>,
    /// Most of the budget that one input may take up: large inputs get fewer configurations, so that there are enough
    /// different inputs.
    pub input_share: f64,
    /// Configurations that run this many times longer than the best so far for the input are cut off.
    pub cut_off: f64,
    /// Configurations that run this many times longer than the best so far for the input are run once only.
    pub rough: f64,
    /// How each configuration is timed.
    pub timing: Timing,
    /// What the model learns to predict.
    pub objective: Objective,
    /// The kernel that the selector leaves for another only where that is surely worth it, such as the routine of a vendor's library
    /// that a caller ran before: one of the kernels that are tuned.
    pub incumbent: Option<KernelId>,
    /// Configurations of an input that are proposed at once, at most, to a device that compiles ahead: each knows less of the
    /// input than if it had waited for the others. So many are compiled while the input before is measured.
    pub at_once: usize,
    /// No log grows beyond so many bytes.
    pub log_bytes: u64,
    /// Goes on where files cannot be written, a full disk or a folder of others: the report says what is not stored. Otherwise that ends
    /// a campaign.
    pub without_files: bool,
    /// Seed of drawing and fitting.
    pub seed: u64,
}

impl Default for TuneSettings {
    /// What is recommended: many short measurements teach a model more than few exact ones, its own error is far above theirs.
    fn default() -> Self {
        Self {
            fixed: Config::default(),
            limits: InputLimits { max_flops: 2e9, max_bytes: 128e6 },
            budget: Duration::from_secs(60),
            samples: None,
            configs_per_input: 32,
            neighbours: 0.45,
            carried: 0.1,
            near_carried: 0.0,
            guided: 0.35,
            guide_at: vec![0.35, 0.65],
            input_share: 0.01,
            cut_off: 12.0,
            rough: 1.5,
            timing: Timing {
                warmup: 1,
                min_repeats: 2,
                max_repeats: 8,
                relative_error: 0.05,
                max_time: Duration::from_millis(4),
                ..Timing::default()
            },
            objective: Objective::default(),
            incumbent: None,
            at_once: 4,
            log_bytes: 4 << 30,
            without_files: false,
            seed: 0,
        }
    }
}

impl TuneSettings {
    /// What is recommended where compiling takes longer than measuring: nothing that is measured of an input waits for what was
    /// measured of it before, so that the code of whole inputs is made ahead.
    #[must_use]
    pub fn whole_inputs(self, configs_per_input: u32) -> Self {
        Self {
            configs_per_input,
            at_once: configs_per_input as usize,
            neighbours: 0.0,
            carried: 0.2,
            near_carried: 0.2,
            guided: 0.0,
            input_share: 1.0,
            ..self
        }
    }

    /// Refuses settings out of range.
    pub(super) fn check(&self) -> Result<(), RuntimeError> {
        let share = |x: f64| (0.0..=1.0).contains(&x);
        let of_winners = [self.carried, self.near_carried];
        let drawn_near = self.neighbours + of_winners.iter().sum::<f64>();
        let is_positive = self.limits.max_flops > 0.0 && self.limits.max_bytes > 0.0;
        let expected = [
            ("configs_per_input", self.configs_per_input > 0, "at least 1"),
            ("at_once", self.at_once > 0, "at least 1"),
            ("neighbours", share(self.neighbours), "a share within 0..=1"),
            (
                "carried",
                of_winners.into_iter().all(share) && drawn_near <= 1.0,
                "shares within 0..=1, together with neighbours at most 1",
            ),
            ("guided", share(self.guided), "a share within 0..=1"),
            ("input_share", share(self.input_share) && self.input_share > 0.0, "a share above 0 and at most 1"),
            ("cut_off", self.cut_off > 1.0, "above 1 (times the best so far)"),
            ("rough", self.rough > 1.0, "above 1 (times the best so far)"),
            ("limits", is_positive, "positive"),
        ];
        match expected.into_iter().find(|(_, holds, _)| !holds) {
            Some((field, _, message)) => Err(RuntimeError::Setting { field, message: message.into() }),
            None => Ok(()),
        }
    }
}

/// Where a campaign stands.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Measurements in the log.
    pub samples: u64,
    /// Failed configurations in the log.
    pub failed: u64,
    /// Seconds of the budget that are used up.
    pub spent_s: f64,
    /// Share of the campaign that is done, from 0 to 1.
    pub done: f64,
    /// The input at hand.
    pub input: &'a Config,
    /// Best cost so far for it.
    pub best: Option<f64>,
    /// What became of the last configuration.
    pub outcome: &'a Outcome,
}

/// Hears about a campaign.
pub trait Observer: Send {
    /// A configuration was measured, or failed.
    fn sample(&mut self, progress: &Progress<'_>) {
        let _ = progress;
    }

    /// Measuring ended, fitting begins, for a kernel, on this many rows.
    fn fitting(&mut self, rows: u64) {
        let _ = rows;
    }

    /// Whether to stop measuring now. What was measured is in the log; a model is fitted on it.
    fn stop(&self) -> bool {
        false
    }
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}
