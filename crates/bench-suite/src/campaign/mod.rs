//! Everything worth measuring on a device, in one command that may be stopped at any moment and taken up again.
//!
//! | stage | what |
//! |---|---|
//! | `doctor` | facts of the device, peak rates by micro kernels |
//! | `verify` | random legal plans of each element type against a reference in higher precision |
//! | `collect` | a training set: random inputs and configurations, compiled ahead and timed |
//! | `fit` | the profile |
//! | `table4`, `table5`, `tasks` | the usual tasks of the computation (ISAAC's Table 4 of GEMM, its Table 5 of convolutions), planned with the profile, beside the vendor's library |
//! | `sweep` | square sizes, as BACUGen's Figure 6 |
//! | `types` | the usual tasks of GEMM in f16, bf16, tf32, 8-bit integers and complex numbers, beside the vendor's library |
//! | `deepbench` | DeepBench's products in all types, in the same way |
//! | `pool` | what a selector among the generated kernels and the vendor's routines comes to on the tasks of the stages before, by sizes that it was not fitted on ([`pool`]) |
//! | `micro` | bandwidth by working set, launches by number |
//! | `linear` | the linear model: measurement kernels, weights, the verdict of the test kernels |
//!
//! Stages get shares of the time that is left and stop in time. What is unfinished is taken up by the next run on the same
//! folder. The folder is flat: [`FILES`], and a log and a profile for each kernel, by its name.

mod clock;
mod collect;
mod contest;
mod emulated;
mod error;
mod export;
mod files;
mod linear;
mod micro;
pub mod pool;
mod rows;
mod settings;
mod stages;
mod state;
mod verify;

pub use contest::TaskRow;
pub use emulated::{EMULATED_COST, Emulated, NO_TIME};
pub use error::CampaignError;
pub use settings::{CampaignKind, Scale, Settings};
pub use stages::{STAGE_NAMES, stage_names};
pub use state::{MicroResult, Stage, StageClock, State, Tally, Verified};

use pool::PoolScore;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;
use tilewright_core::device::Device;
use tilewright_core::objective::Objective;
use tilewright_core::problem::AnyKernel;
use tilewright_runtime::store::{StoreError, TEMPORARY};
use tilewright_runtime::trainer::Trainer;

/// The files of a campaign's folder, without the kernels' own.
pub const FILES: [&str; 6] =
    ["campaign.json", "tables.json", "tables.md", "samples.csv", "samples.schema.json", linear::FILE];

/// No file grows beyond this.
pub const LARGEST_FILE: u64 = 16 << 20;

/// What a campaign works with.
pub struct Campaign<'a> {
    /// The device, and more of the same model, which take part in collecting.
    pub devices: Vec<Mutex<Box<dyn Device>>>,
    /// What is tuned: kernels of one computation.
    pub kernels: Vec<&'a dyn AnyKernel>,
    /// Fits the profiles.
    pub trainer: &'a dyn Trainer,
    /// What is optimised: the time, or an emulator's cost.
    pub objective: Objective,
    /// How long, where to, how much.
    pub settings: Settings,
    /// Hears what is going on.
    pub note: &'a (dyn Fn(&str) + Sync),
    /// Whether somebody asked for the end: the stage that runs ends as if its time were up, and no other begins.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// What a run answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Whether it is a rehearsal.
    pub kind: CampaignKind,
    /// The device.
    pub device: String,
    /// In their order, with the seconds of all runs.
    pub stages: Vec<Stage>,
    /// Wrong results, of all stages and runs.
    pub wrong_results: u64,
    /// Cases that were verified.
    pub verified: u64,
    /// Of those, how many could not be run.
    pub failed: u64,
    /// Kernels of which most cases were wrong or could not be run, each in words: what was measured of them proves nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsound: Vec<String>,
    /// Measurements in the logs.
    pub samples: u64,
    /// What is measured: `time_s`, or an emulator's cost, which is no time.
    pub metric: String,
    /// Geometric means of the vendor's default over ours, by element type.
    pub geomean_ratio: std::collections::BTreeMap<String, f64>,
    /// What ways of choosing among the generated kernels and the vendor's routines come to; none where no such routine took part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pool: Vec<PoolScore>,
    /// The files, as paths.
    pub records: Vec<String>,
}

/// How long is left of a run: nothing once somebody asked for the end.
#[derive(Clone, Copy)]
struct Deadline<'a> {
    end: Instant,
    stop: &'a (dyn Fn() -> bool + Sync),
}

impl Deadline<'_> {
    fn over(self) -> bool {
        Instant::now() >= self.end || (self.stop)()
    }

    fn left_s(self) -> f64 {
        if self.over() { 0.0 } else { self.end.saturating_duration_since(Instant::now()).as_secs_f64() }
    }

    /// A part of it.
    fn until(self, end: Instant) -> Self {
        Self { end, ..self }
    }
}

impl Campaign<'_> {
    /// Runs what is unfinished, for as long as there is time.
    ///
    /// # Errors
    /// The folder belongs to another device or kernel, a file cannot be written, or the device is lost.
    pub fn run(&self) -> Result<Summary, CampaignError> {
        let began = Instant::now();
        let out = &self.settings.out;
        prepare(out)?;
        self.rename_old()?;
        let mut state = State::open(&out.join(FILES[0]), self)?;
        state.runs += 1;
        state.environment = self.device().environment();
        state.environment.lines().iter().for_each(|line| (self.note)(line));
        // Before anything is measured: a run that is killed at once must leave word of its kind.
        state.write()?;
        let (end, computation) = (began + self.settings.budget, self.computation());
        for (at, stage) in stages::STAGES.iter().enumerate() {
            let left = end.saturating_duration_since(Instant::now()).as_secs_f64();
            let name = stage.name(&computation);
            let unfinished = |s: &&stages::StageKind| {
                self.wants(s.name(&computation)) && (!state.is_done(s.name(&computation)) || (s.is_open)(self, &state))
            };
            if !unfinished(&stage) || (self.stop)() {
                continue;
            }
            let shares: f64 = stages::STAGES[at..].iter().filter(unfinished).map(|s| s.share).sum();
            let time = std::time::Duration::from_secs_f64(left * stage.share / shares.max(stage.share));
            (self.note)(name);
            self.stage(stage, (Instant::now() + time).min(end), &mut state)?;
        }
        self.summary(&state)
    }

    /// Runs a stage until it is done or its time is up.
    fn stage(&self, stage: &stages::StageKind, end: Instant, state: &mut State) -> Result<(), CampaignError> {
        let start = Instant::now();
        let before_mhz = clock::warmed(self, self.settings.scale.warm_up);
        let outcome = (stage.run)(self, state, Deadline { end, stop: self.stop });
        let after_mhz = clock::warmed(self, self.settings.scale.warm_up.min(clock::LOOK));
        let (done, note, failed) = match outcome {
            Ok(progress) => (progress.done, progress.note, None),
            // What was measured so far stays; the next run tries the rest.
            Err(error) => (false, error.to_string(), Some(error)),
        };
        let (name, seconds) = (stage.name(&self.computation()).to_owned(), start.elapsed().as_secs_f64());
        let clock = before_mhz.zip(after_mhz).map(|(before_mhz, after_mhz)| StageClock { before_mhz, after_mhz });
        state.end_stage(Stage { name, done, seconds, note, clock });
        state.write()?;
        failed.map_or(Ok(()), Err)
    }

    /// Folders of an older version named the files of their one kernel otherwise.
    fn rename_old(&self) -> Result<(), CampaignError> {
        let [of] = &self.paths()[..] else { return Ok(()) };
        for (old, new) in [("samples.log", &of.log), ("gemm.profile", &of.profile)] {
            let old = self.settings.out.join(old);
            if old.exists() && !new.exists() {
                std::fs::rename(&old, new).map_err(|e| StoreError::io(&old, e))?;
            }
        }
        Ok(())
    }

    fn summary(&self, state: &State) -> Result<Summary, CampaignError> {
        let out = &self.settings.out;
        let tables = rows::Tables::read(out)?;
        Ok(Summary {
            kind: self.settings.scale.kind,
            device: state.device.id.clone(),
            stages: state.stages.clone(),
            wrong_results: state.wrong_results() + tables.wrong(),
            verified: state.verify.values().map(|v| v.cases).sum(),
            failed: state.verify.values().map(|v| v.failed).sum(),
            unsound: state.unsound(),
            samples: state.samples,
            metric: self.objective.metric.clone(),
            geomean_ratio: tables.geomeans(),
            pool: tables.pool.map_or_else(Vec::new, |pool| pool.scores),
            records: files(out)?.into_iter().map(|path| path.display().to_string()).collect(),
        })
    }
}

/// Makes the folder, and removes what a killed run left half-written.
fn prepare(folder: &Path) -> Result<(), CampaignError> {
    std::fs::create_dir_all(folder).map_err(|e| StoreError::io(folder, e))?;
    for path in files(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The folder is this campaign's alone, so nobody is about to rename it.
        if name.starts_with(TEMPORARY) || name.starts_with(".samples") {
            std::fs::remove_file(&path).map_err(|e| StoreError::io(folder, e))?;
        }
    }
    Ok(())
}

/// The files of a folder by their names.
fn files(folder: &Path) -> Result<Vec<PathBuf>, CampaignError> {
    let list = || std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut found = list().map_err(|e| StoreError::io(folder, e))?;
    found.sort();
    Ok(found)
}
