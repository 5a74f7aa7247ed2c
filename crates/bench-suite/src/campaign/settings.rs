//! How long a campaign runs, and how much it looks at.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tilewright_core::computation::InputLimits;
use tilewright_core::measurement::Timing;
use tilewright_loops::library;

/// How long, where to, how much.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Time of this run.
    pub budget: Duration,
    /// The folder.
    pub out: PathBuf,
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// How much.
    pub scale: Scale,
    /// Names of the stages that run, of [`STAGE_NAMES`](super::STAGE_NAMES); all where there are none.
    pub stages: Vec<String>,
}

/// Whether a campaign's results are worth keeping. A folder holds one kind: what a rehearsal has done is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CampaignKind {
    /// As much as a device deserves.
    Real,
    /// Everything once, to try the machinery.
    Rehearsal,
}

impl fmt::Display for CampaignKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real => "real",
            Self::Rehearsal => "rehearsal",
        })
    }
}

/// How much a campaign looks at.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Which kind of campaign looks at this much.
    pub kind: CampaignKind,
    /// Cases that are verified, of each class of inputs.
    pub verify_cases: u64,
    /// Inputs of cases that are verified.
    pub verify_limits: InputLimits,
    /// How long a GPU computes before each stage, so that it runs at its clock.
    pub warm_up: Duration,
    /// Measurements that are enough.
    pub samples: u64,
    /// Configurations of one drawn input.
    pub configs_per_input: u32,
    /// Inputs of the training set.
    pub collect_limits: InputLimits,
    /// Sizes of tasks are divided by this.
    pub shrink: usize,
    /// Square sizes of the sweep.
    pub sweep: Vec<usize>,
    /// Tasks of each further element type, and of each type of DeepBench's products, at most.
    pub each_type: usize,
    /// Points that are drawn and scored by the model for a task.
    pub scored: usize,
    /// Rounds of going on to the neighbours of the best that the model has scored.
    pub climbs: u32,
    /// Of those, how many are timed.
    pub timed: usize,
    /// Rounds of neighbours of the best that are timed.
    pub refinements: usize,
    /// Rounds of a comparison.
    pub rounds: usize,
    /// Runs of a timed interval, and repeats of it; as many as a clock needs unless given.
    pub runs: Option<u32>,
    /// Bytes of a micro kernel's buffer, and what its other counts are scaled by.
    pub micro_bytes: u64,
    /// Sizes of the linear model's kernels.
    pub linear: library::Scale,
    /// Most cases of the linear model's measurement set, and of its test set.
    pub linear_cases: usize,
}

/// Side of the largest square product of a GPU's sweep.
const LARGEST_SQUARE: usize = 8192;

/// Limits of a training set that has inputs as large as the square products of this side, of any element type: a model is asked about
/// them, and must not guess beyond what it has seen.
fn limits_of_squares(side: usize) -> InputLimits {
    let side = side as f64;
    InputLimits { max_flops: 2.0 * side.powi(3), max_bytes: 3.0 * 8.0 * side.powi(2) }
}

impl Scale {
    /// For a GPU.
    pub fn full() -> Self {
        Self {
            kind: CampaignKind::Real,
            verify_cases: 500,
            verify_limits: InputLimits { max_flops: 4e6, max_bytes: 4e6 },
            warm_up: Duration::from_millis(500),
            samples: 20_000,
            configs_per_input: 24,
            collect_limits: limits_of_squares(LARGEST_SQUARE),
            shrink: 1,
            sweep: (1..=16).map(|i| 256 * i).chain([5120, 6144, 7168, LARGEST_SQUARE]).collect(),
            each_type: usize::MAX,
            scored: 30_000,
            climbs: 8,
            timed: 48,
            refinements: 2,
            rounds: 9,
            runs: None,
            micro_bytes: 4 << 30,
            linear: library::Scale::Gpu,
            linear_cases: usize::MAX,
        }
    }

    /// For the host's processor.
    pub fn host() -> Self {
        Self {
            verify_cases: 200,
            collect_limits: InputLimits { max_flops: 1e9, max_bytes: 64e6 },
            sweep: (1..=8).map(|i| 128 * i).collect(),
            timed: 24,
            rounds: 5,
            ..Self::full()
        }
    }

    /// For the emulator: everything once, as small as it can be.
    pub fn rehearsal() -> Self {
        Self {
            kind: CampaignKind::Rehearsal,
            verify_cases: 6,
            verify_limits: InputLimits { max_flops: 1e5, max_bytes: 1e5 },
            warm_up: Duration::from_micros(200),
            samples: 240,
            configs_per_input: 12,
            collect_limits: InputLimits { max_flops: 2e5, max_bytes: 1e5 },
            shrink: 32,
            sweep: vec![16, 32, 48],
            each_type: 1,
            scored: 200,
            climbs: 1,
            timed: 3,
            refinements: 1,
            rounds: 1,
            runs: Some(2),
            micro_bytes: 1 << 18,
            linear: library::Scale::Tiny,
            // It tries the way and fits nothing: a few are enough.
            linear_cases: 3,
        }
    }

    /// How runs are timed: as usual, or as often as this scale says.
    pub(super) fn timing(&self, usual: Timing) -> Timing {
        match self.runs {
            Some(runs) => Timing { min_repeats: runs, max_repeats: runs, batch: Some(runs), ..usual },
            None => usual,
        }
    }
}
