//! Everything worth measuring on a device, in one command that may be stopped at any moment and taken up again.
//!
//! | stage | what |
//! |---|---|
//! | `doctor` | facts of the device, peak rates by micro kernels |
//! | `verify` | random legal plans of each element type against a reference in higher precision |
//! | `collect` | a training set: random inputs and configurations, compiled ahead and timed |
//! | `fit` | the profile |
//! | `table4` | the tasks of ISAAC's Table 4, planned with the profile, beside the vendor's library |
//! | `sweep` | square sizes, as BACUGen's Figure 6 |
//! | `micro` | bandwidth by working set, launches by number |
//! | `linear` | the linear model: measurement kernels, weights, the verdict of the test kernels |
//!
//! Stages get shares of the time that is left and stop in time. What is unfinished is taken up by the next run on the same
//! folder. The folder is flat, of at most eight files: [`FILES`].

mod collect;
mod contest;
mod emulated;
mod error;
mod export;
mod linear;
mod micro;
mod rows;
mod settings;
mod stages;
mod state;
mod verify;

pub use contest::TaskRow;
pub use emulated::{EMULATED_COST, Emulated, NO_TIME};
pub use error::CampaignError;
pub use settings::{CampaignKind, Scale, Settings};
pub use stages::STAGE_NAMES;
pub use state::{MicroResult, Stage, State, Verified};

use serde::Serialize;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;
use tilewright_core::device::Device;
use tilewright_core::dtype::DType;
use tilewright_core::objective::Objective;
use tilewright_core::problem::AnyKernel;
use tilewright_runtime::store::StoreError;
use tilewright_runtime::trainer::Trainer;

/// The files of a campaign's folder.
pub const FILES: [&str; 8] = [
    "campaign.json",
    "tables.json",
    "tables.md",
    "samples.log",
    "samples.csv",
    "samples.schema.json",
    "gemm.profile",
    linear::FILE,
];

/// No file grows beyond this.
pub const LARGEST_FILE: u64 = 16 << 20;

/// The element types that are verified and compared.
pub const DTYPES: [DType; 2] = [DType::F32, DType::F64];

/// What a campaign works with.
pub struct Campaign<'a> {
    /// The device, and more of the same model, which take part in collecting.
    pub devices: Vec<Mutex<Box<dyn Device>>>,
    /// What is tuned.
    pub kernel: &'a dyn AnyKernel,
    /// Fits the profile.
    pub trainer: &'a dyn Trainer,
    /// What is optimised: the time, or an emulator's cost.
    pub objective: Objective,
    /// How long, where to, how much.
    pub settings: Settings,
    /// Hears what is going on.
    pub note: &'a (dyn Fn(&str) + Sync),
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
    /// Measurements in the log.
    pub samples: u64,
    /// What is measured: `time_s`, or an emulator's cost, which is no time.
    pub metric: String,
    /// Geometric means of the vendor's default over ours, by element type.
    pub geomean_ratio: std::collections::BTreeMap<String, f64>,
    /// The files, as paths.
    pub records: Vec<String>,
}

/// How long is left of a run.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    end: Instant,
}

impl Deadline {
    fn over(self) -> bool {
        Instant::now() >= self.end
    }

    fn left_s(self) -> f64 {
        self.end.saturating_duration_since(Instant::now()).as_secs_f64()
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
        let mut state = State::open(&out.join(FILES[0]), self)?;
        state.runs += 1;
        // Before anything is measured: a run that is killed at once must leave word of its kind.
        state.write()?;
        let end = began + self.settings.budget;
        for (at, stage) in stages::STAGES.iter().enumerate() {
            let left = end.saturating_duration_since(Instant::now()).as_secs_f64();
            let unfinished =
                |s: &&stages::StageKind| self.wants(s) && (!state.is_done(s.name) || s.is_open(self, &state));
            if !unfinished(&stage) {
                continue;
            }
            let shares: f64 = stages::STAGES[at..].iter().filter(unfinished).map(|s| s.share).sum();
            let time = std::time::Duration::from_secs_f64(left * stage.share / shares.max(stage.share));
            (self.note)(stage.name);
            let deadline = Deadline { end: (Instant::now() + time).min(end) };
            let start = Instant::now();
            let outcome = (stage.run)(self, &mut state, deadline);
            let seconds = start.elapsed().as_secs_f64();
            let (done, note) = match outcome {
                Ok(progress) => (progress.done, progress.note),
                Err(error) => {
                    // What was measured so far stays; the next run tries the rest.
                    state.end_stage(stage.name, false, seconds, error.to_string());
                    state.write()?;
                    return Err(error);
                }
            };
            state.end_stage(stage.name, done, seconds, note);
            state.write()?;
        }
        self.summary(&state)
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
            samples: state.samples,
            metric: self.objective.metric.clone(),
            geomean_ratio: tables.geomeans(),
            records: FILES
                .iter()
                .map(|name| out.join(name))
                .filter(|path| path.exists())
                .map(|path| shown(&path))
                .collect(),
        })
    }
}

/// Makes the folder, and removes what a killed run left half-written.
fn prepare(folder: &Path) -> Result<(), CampaignError> {
    let failed = |e| StoreError::io(folder, e);
    std::fs::create_dir_all(folder).map_err(failed)?;
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // The folder is this campaign's alone, so nobody is about to rename it.
        if name.starts_with(".tilewright-") || name.starts_with(".samples") {
            std::fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
