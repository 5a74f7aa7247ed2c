//! What a campaign has done, in a file that is replaced as a whole.

use super::emulated::EMULATED_COST;
use super::files::{self, damaged};
use super::{Campaign, CampaignError, CampaignKind, Scale};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tilewright_core::device::DeviceSpec;

/// Version of the file.
const VERSION: u32 = 1;

/// Failures that are kept word for word.
const KEPT_FAILURES: usize = 20;

/// A stage of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Whether nothing of it is left.
    pub done: bool,
    /// Seconds, of all runs.
    pub seconds: f64,
    /// What it came to, in words.
    pub note: String,
}

/// Verified cases of a class of inputs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// Cases that ran or failed.
    pub cases: u64,
    /// Wrong results.
    pub wrong: u64,
    /// Cases that could not be run.
    pub failed: u64,
    /// Largest error relative to the largest reference.
    pub worst_rel_error: f64,
    /// Largest error as a share of its bound.
    pub worst_of_bound: f64,
    /// The first failures.
    pub failures: Vec<String>,
}

impl Verified {
    pub(super) fn fail(&mut self, message: String) {
        if self.failures.len() < KEPT_FAILURES {
            self.failures.push(message);
        }
    }
}

/// What a micro kernel showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MicroResult {
    /// What was measured: `fma_f32`, `memory_copy`, `read 1048576`.
    pub name: String,
    /// `flop/s`, `byte/s` or `s`, or the same per unit of an emulator's cost.
    pub unit: String,
    /// The rate, or the cost of a launch.
    pub value: f64,
}

/// Everything but samples and tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    version: u32,
    /// Whether it is a rehearsal; None where an older version wrote the file.
    #[serde(default)]
    pub kind: Option<CampaignKind>,
    /// Version of the program that began it.
    pub tilewright: String,
    /// The kernels.
    pub kernel: String,
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// What is measured: `time_s`, or an emulator's cost, which is no time.
    pub metric: String,
    /// State of the caches when a timed run starts.
    pub cache_policy: String,
    /// Fingerprint of the device.
    pub fingerprint: String,
    /// Its facts, and the rates that were measured.
    pub device: DeviceSpec,
    /// Runs so far.
    pub runs: u32,
    /// In their order.
    pub stages: Vec<Stage>,
    /// By class of inputs.
    pub verify: BTreeMap<String, Verified>,
    /// Measurements in the logs, failures included.
    pub samples: u64,
    /// Of those, how many the profiles were fitted on.
    pub fitted: u64,
    /// What micro kernels showed.
    pub micro: Vec<MicroResult>,
    #[serde(skip)]
    path: PathBuf,
}

impl State {
    /// Reads the file, or begins anew.
    pub(super) fn open(path: &Path, campaign: &Campaign<'_>) -> Result<Self, CampaignError> {
        let device = campaign.spec();
        let names: Vec<String> = campaign.kernels.iter().map(|k| k.id().to_string()).collect();
        let (kernel, metric) = (names.join(" "), campaign.objective.metric.clone());
        let Some(mut state) = files::read::<Self>(path)? else {
            return Ok(Self {
                version: VERSION,
                kind: Some(campaign.settings.scale.kind),
                tilewright: env!("CARGO_PKG_VERSION").into(),
                kernel,
                seed: campaign.settings.seed,
                metric,
                cache_policy: "warm: runs follow each other on the same buffers".into(),
                fingerprint: device.fingerprint(),
                device: (*device).clone(),
                runs: 0,
                stages: Vec::new(),
                verify: BTreeMap::new(),
                samples: 0,
                fitted: 0,
                micro: Vec::new(),
                path: path.to_owned(),
            });
        };
        if state.version != VERSION {
            return Err(damaged(path, format!("version {}, this program knows {VERSION}", state.version)));
        }
        state.expect_kind(path, campaign.settings.scale.kind)?;
        let pairs = [
            ("the device", state.fingerprint.clone(), device.fingerprint()),
            ("what is tuned", state.kernel.clone(), kernel),
            ("the metric", state.metric.clone(), metric),
        ];
        for (what, found, expected) in pairs {
            if found != expected {
                return Err(CampaignError::Other { file: path.display().to_string(), what, found, expected });
            }
        }
        state.path = path.to_owned();
        Ok(state)
    }

    /// Refuses the other kind, and notes the kind where it was not said.
    fn expect_kind(&mut self, path: &Path, expected: CampaignKind) -> Result<(), CampaignError> {
        let found = match self.kind {
            None if self.is_untouched() => Some(expected),
            None => self.kind_by_content(),
            said => said,
        };
        if found != Some(expected) {
            let folder = path.parent().unwrap_or(path).display().to_string();
            return Err(CampaignError::OtherKind { folder, found, expected });
        }
        self.kind = found;
        Ok(())
    }

    /// Whether no stage has done anything that the other kind could count as its own.
    fn is_untouched(&self) -> bool {
        self.stages.is_empty() && self.samples == 0 && self.verify.values().all(|v| v.cases == 0)
    }

    /// The kind of a campaign that does not say it: rehearsals stop where real ones have hardly begun. None where too little
    /// was done to tell, or where both kinds have been at it.
    fn kind_by_content(&self) -> Option<CampaignKind> {
        if self.metric == EMULATED_COST {
            return Some(CampaignKind::Rehearsal);
        }
        let tiny = Scale::rehearsal();
        // Several devices may each have added a round beyond what is enough.
        let most_samples = 2 * tiny.samples;
        let more = self.verify.values().any(|v| v.cases > tiny.verify_cases) || self.samples > most_samples;
        let all_verified = self.is_done("verify") && self.verify.values().all(|v| v.cases <= tiny.verify_cases);
        let all_collected = self.is_done("collect") && self.samples <= most_samples;
        match (all_verified || all_collected, more) {
            (true, false) => Some(CampaignKind::Rehearsal),
            (false, true) => Some(CampaignKind::Real),
            _ => None,
        }
    }

    /// Replaces the file.
    pub(super) fn write(&self) -> Result<(), CampaignError> {
        files::write(&self.path, self)
    }

    pub(super) fn is_done(&self, stage: &str) -> bool {
        self.stages.iter().any(|s| s.name == stage && s.done)
    }

    pub(super) fn end_stage(&mut self, name: &str, done: bool, seconds: f64, note: String) {
        match self.stages.iter_mut().find(|s| s.name == name) {
            Some(stage) => {
                stage.done = done;
                stage.seconds += seconds;
                stage.note = note;
            }
            None => self.stages.push(Stage { name: name.into(), done, seconds, note }),
        }
    }

    pub(super) fn wrong_results(&self) -> u64 {
        self.verify.values().map(|v| v.wrong).sum()
    }
}
