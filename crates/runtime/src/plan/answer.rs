//! What a decision answers.

use serde::{Deserialize, Serialize};
use tilewright_core::decision::Decision;
use tilewright_core::id::KernelId;
use tilewright_core::space::{Config, Point};
use tilewright_search::drive::StoppedBy;

/// The decided configuration of an input.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The kernel.
    pub kernel: KernelId,
    /// The input's fields, complete.
    pub input: Config,
    /// The configuration by name.
    pub config: Config,
    /// The configuration as a point of the problem's space.
    pub point: Point,
    /// What the model expected, in seconds (the objective's cost, if that is not the time).
    pub predicted_s: Option<f64>,
    /// What was measured, in seconds.
    pub measured_s: Option<f64>,
    /// Whether its result was checked against the reference and right.
    pub verified: bool,
    /// Largest error of the checked result, relative to the largest reference.
    pub max_rel_error: Option<f64>,
    /// How many legal configurations the choice was made from.
    pub considered: u64,
    /// Whether the answer comes from the plan cache.
    pub cached: bool,
    /// Why an answer of the plan cache was not enough, where there was one.
    pub looked_again: Option<String>,
    /// How configurations were searched by measuring; of a cached answer, what the cache remembers. None where
    /// nothing was searched.
    pub searched: Option<Searched>,
    /// Why, in sentences for people.
    pub reason: String,
    /// The choice with its best alternatives.
    pub decision: Decision,
    /// Why the answer is not remembered, where the plan cache could not be written.
    pub unstored: Option<String>,
    /// What is wrong with stored files that would have had a say.
    pub damaged: Vec<String>,
    /// What the decision took.
    pub stats: PlanStats,
}

/// How configurations were searched by measuring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Searched {
    /// The strategy.
    pub strategy: String,
    /// Why it ended.
    pub stopped_by: StoppedBy,
    /// The tolerance of its promise, where it makes one: how far below the optimum's performance the best may be.
    pub epsilon: f64,
    /// Its bound on the probability that the best is further, where it has one.
    pub bound: Option<f64>,
    /// Configurations that it had measured.
    pub evaluations: u64,
    /// Proposals that were not legal.
    pub illegal: u64,
}

/// What a decision took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanStats {
    /// Seconds of all of it.
    pub seconds: f64,
    /// Seconds of the search over the model.
    pub search_s: f64,
    /// Configurations that were timed, however often.
    pub configs: u64,
    /// Timings that gave a time; configurations that are compared with each other are timed again and again.
    pub timed: u64,
    /// Timings that failed or were cut off.
    pub failed: u64,
    /// Configurations whose result was wrong.
    pub wrong: u64,
    /// Seconds of verifying, references included.
    pub verify_s: f64,
}

impl PlanStats {
    /// Two decisions together.
    pub(super) fn with(self, other: &Self) -> Self {
        Self {
            seconds: self.seconds + other.seconds,
            search_s: self.search_s + other.search_s,
            configs: self.configs + other.configs,
            timed: self.timed + other.timed,
            failed: self.failed + other.failed,
            wrong: self.wrong + other.wrong,
            verify_s: self.verify_s + other.verify_s,
        }
    }
}
