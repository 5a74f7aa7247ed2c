//! Why something was chosen.

use crate::space::Config;
use serde::{Deserialize, Serialize};

/// One alternative of a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
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
}
