//! What a decision answers.

use tilewright_core::decision::Decision;
use tilewright_core::id::KernelId;
use tilewright_core::space::{Config, Point};

/// The decided configuration of an input.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The kernel.
    pub kernel: KernelId,
    /// The input's words, complete.
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
    /// Why, in sentences for people.
    pub reason: String,
    /// The choice with its best alternatives.
    pub decision: Decision,
    /// What the decision took.
    pub stats: PlanStats,
}

/// What a decision took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanStats {
    /// Seconds of all of it.
    pub seconds: f64,
    /// Seconds of the search over the model.
    pub search_s: f64,
    /// Configurations that were timed.
    pub timed: u64,
    /// Configurations that failed to run or were cut off.
    pub failed: u64,
    /// Configurations whose result was wrong.
    pub wrong: u64,
    /// Seconds of verifying, references included.
    pub verify_s: f64,
}
