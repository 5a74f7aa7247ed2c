//! What is optimised: time by default, any named metric otherwise.

use crate::measurement::Measurement;
use serde::{Deserialize, Serialize};

/// Whether small or large values are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Small is good.
    Minimize,
    /// Large is good.
    Maximize,
}

/// A metric and its direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objective {
    /// Name of the metric in a [`Measurement`].
    pub metric: String,
    /// Which way is better.
    pub direction: Direction,
}

impl Default for Objective {
    fn default() -> Self {
        Self { metric: Measurement::TIME.into(), direction: Direction::Minimize }
    }
}

impl Objective {
    /// The cost of a measurement, always to be minimised, always positive: the metric itself, or its reciprocal where
    /// large is good. None if the measurement lacks the metric or the cost would not be a positive finite number.
    pub fn cost(&self, m: &Measurement) -> Option<f64> {
        let value = m.metric(&self.metric).filter(|v| v.is_finite() && *v > 0.0)?;
        let cost = match self.direction {
            Direction::Minimize => value,
            Direction::Maximize => 1.0 / value,
        };
        // The reciprocal of a subnormal overflows.
        Some(cost).filter(|c| c.is_finite())
    }
}
