//! What tuning gained on the drawn inputs.

use crate::log::Sample;
use std::collections::HashMap;
use tilewright_core::objective::Objective;
use tilewright_core::space::Config;

/// One drawn input.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSummary {
    /// Its fields.
    pub input: Config,
    /// Measured configurations.
    pub measured: u64,
    /// Cost of the first configuration that was measured, which is the default where there is one.
    pub first: f64,
    /// The least cost.
    pub best: f64,
    /// Its configuration.
    pub config: Config,
}

/// The inputs with at least one measurement, in the order of drawing.
pub(super) fn summaries(samples: &[Sample], objective: &Objective) -> Vec<InputSummary> {
    let mut out: Vec<InputSummary> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for sample in samples {
        let Some(cost) = sample.outcome.as_ref().ok().and_then(|m| objective.cost(m)) else { continue };
        let at = *known.entry(sample.input.to_string()).or_insert(out.len());
        if at == out.len() {
            let (input, config) = (sample.input.clone(), sample.config.clone());
            out.push(InputSummary { input, measured: 0, first: cost, best: cost, config });
        }
        let summary = &mut out[at];
        summary.measured += 1;
        if cost < summary.best {
            summary.best = cost;
            summary.config = sample.config.clone();
        }
    }
    out
}
