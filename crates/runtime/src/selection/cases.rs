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
    /// Best cost over that of the kernel whose default suits an input best by its own word ([`Problem::suits`]), a mean over the inputs
    /// of which it was measured; none where there are none.
    pub suited: Option<f64>,
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
    let mut suited = Vec::new();
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
        suited.extend(fraction_of_suited(&problems, &best));
        let trial = |(at, best): (usize, &Option<Option<f64>>)| {
            let runs = || problems[at].as_ref().is_some_and(|p| p.space().first_legal().is_some());
            let cost = best.or_else(|| (!runs()).then_some(None))?;
            Some(Trial { candidate: Candidate { variant: kernels[at].id().to_string(), features: Vec::new() }, cost })
        };
        let trials = best.iter().enumerate().filter_map(trial).collect();
        let group = u32::try_from(group).unwrap_or(u32::MAX);
        let wrong = |e: tilewright_core::choice::ChoiceError| RuntimeError::Setting {
            field: "features",
            message: e.to_string(),
        };
        out.push(Case { features, trials, group }).map_err(wrong)?;
    }
    let mean = suited.iter().sum::<f64>() / suited.len() as f64;
    Ok(Cases { set: out, suited: Some(mean).filter(|mean| mean.is_finite()) })
}

/// The best cost over that of the kernel whose default suits the input best, 0 where that failed; none where it was not measured.
fn fraction_of_suited(problems: &[Option<Box<dyn Problem>>], best: &[Option<Option<f64>>]) -> Option<f64> {
    let suits = |at: usize| Some(problems[at].as_ref().filter(|p| p.space().first_legal().is_some())?.suits());
    let known = (0..problems.len()).filter_map(|at| Some((at, suits(at)?)));
    // The first of equals, as planning takes it.
    let (at, _) = known.reduce(|first, other| if other.1 > first.1 { other } else { first })?;
    let least = best.iter().flatten().flatten().copied().reduce(f64::min)?;
    best[at].map(|own| own.map_or(0.0, |own| least / own))
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
