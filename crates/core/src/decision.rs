//! Why something was chosen.

use crate::id::KernelId;
use crate::space::Config;
use serde::{Deserialize, Serialize};

/// One alternative of a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// Its kernel; without a name where an older version, which knew one kernel only, wrote the decision.
    #[serde(default = "unnamed")]
    pub kernel: KernelId,
    /// Its configuration.
    pub config: Config,
    /// What the model expected, in seconds.
    pub predicted_s: Option<f64>,
    /// What was measured, in seconds.
    pub measured_s: Option<f64>,
}

/// A choice with what it was chosen from and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The choice.
    pub chosen: Alternative,
    /// The best alternatives, best first, the choice included.
    pub considered: Vec<Alternative>,
    /// How many legal configurations the choice was made from.
    pub considered_count: u64,
    /// One or more sentences for people.
    pub reason: String,
    /// The model that ranked what was timed, by [`crate::predictor::Predictor::kind`]; none where there was none, or where an older
    /// version wrote the decision.
    #[serde(default)]
    pub model: Option<String>,
    /// What the model came from, or what stood in for one: `profile`, `transfer`, `linear`, `default`, or `own` for a predictor of
    /// the caller's; empty where an older version wrote the decision.
    #[serde(default)]
    pub knowledge: String,
    /// The kernels that competed, the chosen one first, and behind them those that were left out.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// What ranked the kernels before any was tried; None where nothing did.
    #[serde(default)]
    pub selection: Option<Selection>,
    /// Configurations of the chosen kernel that count as equal to the best measured one; None where none were compared, or where an
    /// older version wrote the decision.
    #[serde(default)]
    pub tie: Option<Tie>,
    /// The same of the kernels that were timed against each other, each with its own configuration.
    #[serde(default)]
    pub kernel_tie: Option<Tie>,
}

impl Decision {
    /// A choice of the only kernel, from so many configurations, of which no other is listed; without a model.
    pub fn of(chosen: Alternative, considered_count: u64, reason: String) -> Self {
        let Alternative { kernel, predicted_s, measured_s, .. } = chosen.clone();
        let only = Variant { name: kernel, predicted_s, measured_s, reason: None };
        Self {
            considered: vec![chosen.clone()],
            chosen,
            considered_count,
            reason,
            model: None,
            knowledge: String::new(),
            variants: vec![only],
            selection: None,
            tie: None,
            kernel_tie: None,
        }
    }
}

/// Those that count as equal to the best measured one, and why the first of them was taken.
///
/// Times cannot tell them apart, so that the fastest measured one would be another on the next run. An order that knows no times
/// chooses among them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tie {
    /// All of them in the stated order. The choice is the first.
    pub members: Vec<Tied>,
    /// The width of the band: how far behind the best measured one a member may be, as a share of its cost (0.01: one percent). The
    /// choice loses no more than that by measurement.
    pub within: f64,
    /// The stated order, as text.
    pub order: String,
    /// What put the choice ahead of the next member, as part of a sentence; empty where there is no other.
    pub why: String,
}

/// One of those that count as equal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tied {
    /// Its kernel.
    pub kernel: KernelId,
    /// Its configuration.
    pub config: Config,
    /// What was measured, in seconds.
    pub measured_s: Option<f64>,
    /// Its cost by that of the best measured one, compared round by round: at least 1.
    pub relative: f64,
}

/// One kernel of a computation in a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// The kernel.
    pub name: KernelId,
    /// What the model expected of its best configuration, in seconds.
    pub predicted_s: Option<f64>,
    /// What was measured of it, in seconds, beside the others'.
    pub measured_s: Option<f64>,
    /// Why it was left out; None where it was not.
    pub reason: Option<String>,
}

/// What a selector said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// How it was learned; `own` of a selector of the caller's.
    pub method: String,
    /// On how many inputs it was learned.
    pub inputs: u64,
    /// Best time over the chosen kernel's, mean over inputs that it was not fitted on, where that is known.
    pub fraction_of_oracle: Option<f64>,
    /// The kernels that it ranks, the best first.
    pub ranked: Vec<KernelId>,
    /// The share of the best performance that its first choice is expected to lose on this input, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_loss: Option<f64>,
}

fn unnamed() -> KernelId {
    KernelId::new("")
}
