//! Campaigns' samples as cases of a choice among kernels.

use crate::error::RuntimeError;
use crate::log::Sample;
use std::collections::HashMap;
use std::sync::Arc;
use tilewright_core::choice::{Case, ChoiceSet, Trial};
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::FeatureSchema;
use tilewright_core::measurement::FailureKind;
use tilewright_core::objective::Objective;
use tilewright_core::problem::{AnyKernel, Problem};
use tilewright_core::selector::Candidate;

/// What campaigns say of a choice among kernels.
pub struct Cases {
    /// Inputs, with what each kernel costs.
    pub set: ChoiceSet,
    /// Of each input, what each of its kernels says of how well its default suits it ([`Problem::suits`]).
    pub suits: Vec<Vec<f64>>,
}

/// The inputs that the logs of at least two kernels have, as cases: features of the input, and for each kernel the best measured
/// cost, none where all of it failed or nothing is legal. `samples` are those of each kernel, in the order of `kernels`. Kernels
/// that could have run and were not measured are no part of a case, nor are inputs whose data have vanished since.
///
/// # Errors
/// Features of another number than their names.
pub fn cases(
    kernels: &[&dyn AnyKernel],
    device: &Arc<DeviceSpec>,
    samples: &[&[Sample]],
    objective: &Objective,
) -> Result<Cases, RuntimeError> {
    let input = kernels.first().map(|kernel| kernel.schema().input).unwrap_or_default();
    let mut out = ChoiceSet::new(FeatureSchema { input, config: Vec::new() });
    // By input, in the order of the first log: whether each kernel was measured, and its best cost.
    let mut index: HashMap<String, usize> = HashMap::new();
    let mut inputs: Vec<(&Sample, Vec<Option<Option<f64>>>)> = Vec::new();
    for (at, sample) in samples.iter().enumerate().flat_map(|(at, all)| all.iter().map(move |sample| (at, sample))) {
        let place = *index.entry(sample.input.to_string()).or_insert_with(|| {
            inputs.push((sample, vec![None; kernels.len()]));
            inputs.len() - 1
        });
        let best = inputs[place].1[at].get_or_insert(None);
        let found = cost(sample, objective);
        *best = best.map_or(found, |b| Some(found.map_or(b, |f| b.min(f))));
    }
    let mut ratings = Vec::new();
    for (group, (sample, best)) in inputs.into_iter().enumerate() {
        if best.iter().flatten().count() < 2 {
            continue;
        }
        let problems = kernels.iter().map(|kernel| kernel.problem(device, &sample.input).ok());
        let problems: Vec<Option<Box<dyn Problem>>> = problems.collect();
        let Some(any) = problems.iter().flatten().next() else {
            tracing::warn!(input = %sample.input, "an input of the campaign is gone");
            continue;
        };
        let mut features = Vec::new();
        any.input_features(&mut features);
        let trial = |(at, best): (usize, &Option<Option<f64>>)| {
            let runs = problems[at].as_ref().filter(|p| p.space().first_legal().is_some());
            let cost = best.or_else(|| runs.is_none().then_some(None))?;
            let candidate = Candidate { variant: kernels[at].id().to_string(), features: Vec::new() };
            // What cannot run is no part of a plan, whatever it says.
            Some((Trial { candidate, cost }, runs.map_or(0.0, |p| p.suits())))
        };
        let (trials, suits) = best.iter().enumerate().filter_map(trial).unzip();
        let group = u32::try_from(group).unwrap_or(u32::MAX);
        let wrong = |e: tilewright_core::choice::ChoiceError| RuntimeError::Setting {
            field: "features",
            message: e.to_string(),
        };
        out.push(Case { features, trials, group }).map_err(wrong)?;
        ratings.push(suits);
    }
    Ok(Cases { set: out, suits: ratings })
}

/// What a sample cost. What was cut off ran, and took at least that long.
fn cost(sample: &Sample, objective: &Objective) -> Option<f64> {
    match &sample.outcome {
        Ok(measured) => objective.cost(measured),
        Err(f) if f.kind == FailureKind::CutOff && *objective == Objective::default() => {
            sample.cut_off_s.filter(|s| s.is_finite() && *s > 0.0)
        }
        Err(_) => None,
    }
}
