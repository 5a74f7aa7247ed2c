//! Measurements, failures and the policy of measuring.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The metrics of one (device, input, config).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Median time of one run in seconds.
    pub time_s: f64,
    /// Number of timed runs behind the median.
    pub repeats: u32,
    /// Half-width of the confidence interval of the median, relative to it.
    pub relative_error: f64,
    /// Further metrics by name: `energy_j`, `traversed_edges_per_s`, ...
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
}

impl Measurement {
    /// Name of the time among the metrics.
    pub const TIME: &'static str = "time_s";

    /// A time from a record, without repeats to tell.
    pub fn recorded(time_s: f64) -> Self {
        Self { time_s, repeats: 1, relative_error: 0.0, metrics: BTreeMap::new() }
    }

    /// A metric by name, the time included.
    pub fn metric(&self, name: &str) -> Option<f64> {
        if name == Self::TIME { Some(self.time_s) } else { self.metrics.get(name).copied() }
    }
}

/// Why a configuration has no measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// A rule does not hold.
    Illegal,
    /// No code could be made.
    Compile,
    /// It could not be run.
    Launch,
    /// It ran too long.
    Timeout,
    /// It ran far longer than the best so far and was cut off; its time is at least the one in the message.
    CutOff,
    /// Its result was wrong.
    Wrong,
}

/// A configuration that has no measurement, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{kind:?}: {message}")]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// For people.
    pub message: String,
}

/// What became of one configuration.
pub type Outcome = Result<Measurement, Failure>;

named! {
    /// What the caches hold when a timed run starts.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum CachePolicy {
        /// Runs follow each other on the same buffers.
        #[default]
        Warm = "warm",
        /// The last-level cache is overwritten before every run.
        Cold = "cold",
    }
}

/// How to measure: repeat until the median is known well enough, or the budget ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Untimed runs before the first timed one.
    pub warmup: u32,
    /// Fewest timed runs.
    pub min_repeats: u32,
    /// Most timed runs.
    pub max_repeats: u32,
    /// Stop when the median's confidence interval (95%) is within this fraction of it.
    pub relative_error: f64,
    /// Stop after this much timed running.
    pub max_time: Duration,
    /// A first run beyond this is cut off with [`FailureKind::CutOff`].
    pub cut_off: Option<Duration>,
    /// A first run beyond this is the whole measurement: what is far from the best need not be known exactly.
    pub rough_beyond: Option<Duration>,
    /// Cache state at the start of a run.
    pub cache: CachePolicy,
    /// Runs of a timed interval, as far as the device can time so many in one; as many as its clock needs unless given. A repeat
    /// then is their mean, and without untimed runs or limits nothing runs before it.
    #[serde(default)]
    pub batch: Option<u32>,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            warmup: 1,
            min_repeats: 3,
            max_repeats: 50,
            relative_error: 0.02,
            max_time: Duration::from_millis(100),
            cut_off: None,
            rough_beyond: None,
            cache: CachePolicy::Warm,
            batch: None,
        }
    }
}
