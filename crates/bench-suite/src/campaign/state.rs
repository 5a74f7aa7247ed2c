//! What a campaign has done, in a file that is replaced as a whole.

use super::emulated::EMULATED_COST;
use super::files::{self, damaged};
use super::{Campaign, CampaignError, CampaignKind, Scale};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tilewright_core::device::{DeviceSpec, Environment};

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
    /// The clock of the GPU's multiprocessors around its last run; none of other devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<StageClock>,
}

/// The clock of a GPU's multiprocessors under full load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageClock {
    /// When the stage began, behind the warming up; MHz.
    pub before_mhz: f64,
    /// When it ended; MHz.
    pub after_mhz: f64,
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
    /// How each kernel did, by its name; nothing where an older version wrote the file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kernels: BTreeMap<String, Tally>,
}

/// Cases of one kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Cases that ran or failed.
    pub cases: u64,
    /// Of those, how many were wrong or could not be run.
    pub bad: u64,
}

impl Tally {
    /// Whether more than half were bad.
    pub(super) fn is_unsound(self) -> bool {
        2 * self.bad > self.cases
    }
}

impl Verified {
    pub(super) fn fail(&mut self, message: String) {
        if self.failures.len() < KEPT_FAILURES {
            self.failures.push(message);
        }
    }

    /// Counts a case of a kernel.
    pub(super) fn count(&mut self, kernel: String, is_right: bool) {
        let tally = self.kernels.entry(kernel).or_default();
        tally.cases += 1;
        tally.bad += u64::from(!is_right);
    }

    /// Whether no kernel is sound, as far as so many cases of each tell.
    pub(super) fn is_unsound(&self, fewest: u64) -> bool {
        let all = self.kernels.values().all(|tally| tally.cases >= fewest && tally.is_unsound());
        !self.kernels.is_empty() && all
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
    /// What it was used with in the last run: driver, assembler, libraries.
    #[serde(default)]
    pub environment: Environment,
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
    /// Rows of the tables that the pool was judged on.
    #[serde(default)]
    pub judged: u64,
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
                environment: Environment::default(),
                runs: 0,
                stages: Vec::new(),
                verify: BTreeMap::new(),
                samples: 0,
                fitted: 0,
                judged: 0,
                micro: Vec::new(),
                path: path.to_owned(),
            });
        };
        if state.version != VERSION {
            return Err(damaged(path, format!("version {}, this program knows {VERSION}", state.version)));
        }
        state.expect_kind(path, campaign.settings.scale.kind)?;
        state.expect_device(path, &device)?;
        let pairs = [("what is tuned", state.kernel.clone(), kernel), ("the metric", state.metric.clone(), metric)];
        for (what, found, expected) in pairs {
            if found != expected {
                return Err(CampaignError::Other { file: path.display().to_string(), what, found, expected });
            }
        }
        state.path = path.to_owned();
        Ok(state)
    }

    /// Refuses another device; a machine of the same model is none.
    fn expect_device(&self, path: &Path, device: &DeviceSpec) -> Result<(), CampaignError> {
        let before = &self.device;
        // By the facts: an older version may have made fingerprints otherwise.
        if before.fingerprint() == device.fingerprint() {
            return Ok(());
        }
        let shown = |spec: &DeviceSpec| format!("{} ({})", spec.name, spec.driver);
        let names: BTreeSet<&String> = before.facts.keys().chain(device.facts.keys()).collect();
        let value =
            |spec: &DeviceSpec, name: &str| spec.fact(name).map_or_else(|| "none".to_owned(), |v| v.to_string());
        let pair = |name: &String| (name.clone(), value(before, name), value(device, name));
        let own = [("kind".to_owned(), format!("{:?}", before.kind), format!("{:?}", device.kind))].into_iter();
        let differs = own.chain(names.into_iter().map(pair)).filter(|(_, there, here)| there != here);
        let differs: Vec<String> =
            differs.map(|(name, there, here)| format!("{name} {there} there, {here} here")).collect();
        let file = path.display().to_string();
        let differs = if differs.is_empty() { "the same facts".to_owned() } else { differs.join(", ") };
        Err(CampaignError::OtherDevice { file, found: shown(before), expected: shown(device), differs })
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

    /// Notes the end of a stage; its seconds are added to those of earlier runs.
    pub(super) fn end_stage(&mut self, ended: Stage) {
        match self.stages.iter_mut().find(|s| s.name == ended.name) {
            Some(stage) => *stage = Stage { seconds: stage.seconds + ended.seconds, ..ended },
            None => self.stages.push(ended),
        }
    }

    /// Kernels of which most verified cases of a class were wrong or could not be run, in words.
    pub(super) fn unsound(&self) -> Vec<String> {
        let of = |(class, verified): (&String, &Verified)| {
            let bad = verified.kernels.iter().filter(|(_, tally)| tally.is_unsound());
            bad.map(|(kernel, t)| format!("{kernel} in {class}: {} of {} bad", t.bad, t.cases)).collect::<Vec<_>>()
        };
        self.verify.iter().flat_map(of).collect()
    }

    pub(super) fn wrong_results(&self) -> u64 {
        self.verify.values().map(|v| v.wrong).sum()
    }
}
