//! From the samples of a log to the rows of a model.

use crate::error::RuntimeError;
use crate::log::Sample;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use tilewright_core::device::DeviceSpec;
use tilewright_core::measurement::FailureKind;
use tilewright_core::objective::Objective;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Problem};
use tilewright_core::space::Point;
use tilewright_core::training::TrainingSet;

/// Rows for a model, and what was left out.
pub struct Rows {
    /// One group per input.
    pub set: TrainingSet,
    /// Distinct inputs.
    pub inputs: u64,
    /// Samples whose configuration is none of the present space, or which lack the objective's metric.
    pub skipped: u64,
}

/// The rows of the measured samples. Configurations that were cut off count with the time at which they were: a model
/// that never sees them takes the slow part of the space for good.
///
/// With a prior, costs are over what it expects: for the model of a
/// [`WithPrior`](tilewright_core::prior::WithPrior).
///
/// # Errors
/// An input of the log that the kernel does not take any more, or a prior that has no word for the kernel.
pub fn rows(
    kernel: &dyn AnyKernel,
    device: &Arc<DeviceSpec>,
    samples: &[Sample],
    objective: &Objective,
    prior: Option<&dyn Predictor>,
) -> Result<Rows, RuntimeError> {
    let (mut rows, problems, points) = collect(kernel, device, samples, objective)?;
    let Some(prior) = prior else { return Ok(rows) };
    for (group, problem) in problems.iter().enumerate() {
        let of: Vec<usize> = (0..points.len()).filter(|&i| rows.set.groups[i] as usize == group).collect();
        let logs = prior.bind(&**problem)?.score_each(of.iter().map(|&i| &points[i]));
        of.iter().zip(logs).for_each(|(&i, log)| rows.set.costs[i] /= f64::from(log).exp());
    }
    Ok(rows)
}

type Collected = (Rows, Vec<Box<dyn Problem>>, Vec<Point>);

/// The rows with the problem of each group and the point of each row.
fn collect(
    kernel: &dyn AnyKernel,
    device: &Arc<DeviceSpec>,
    samples: &[Sample],
    objective: &Objective,
) -> Result<Collected, RuntimeError> {
    let mut out = Rows { set: TrainingSet::new(kernel.schema()), inputs: 0, skipped: 0 };
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut problems: Vec<Box<dyn Problem>> = Vec::new();
    let (mut row, mut points) = (Vec::new(), Vec::new());
    let mut rows: HashMap<(usize, Point), usize> = HashMap::new();
    for sample in samples {
        let Some(cost) = cost(sample, objective) else {
            out.skipped += u64::from(sample.outcome.is_ok());
            continue;
        };
        let group = match known.entry(sample.input.to_string()) {
            Entry::Occupied(group) => *group.get(),
            Entry::Vacant(place) => {
                problems.push(kernel.problem(device, &sample.input)?);
                *place.insert(problems.len() - 1)
            }
        };
        let problem = &problems[group];
        let space = problem.space();
        let point = sample.config.to_point(space.params(), None).ok().filter(|p| space.is_legal(p));
        let Some(point) = point else {
            out.skipped += 1;
            continue;
        };
        // Measured again because others had disturbed: the least time counts.
        if let Some(&known) = rows.get(&(group, point.clone())) {
            let kept = &mut out.set.costs[known];
            *kept = kept.min(cost);
            continue;
        }
        row.clear();
        problem.input_features(&mut row);
        problem.config_features(&point, &mut row);
        match out.set.push(&row, cost, group as u32) {
            Ok(()) => {
                rows.insert((group, point.clone()), points.len());
                points.push(point);
            }
            Err(_) => out.skipped += 1,
        }
    }
    out.inputs = problems.len() as u64;
    Ok((out, problems, points))
}

/// The cost that a sample teaches, if any.
fn cost(sample: &Sample, objective: &Objective) -> Option<f64> {
    match &sample.outcome {
        Ok(measurement) => objective.cost(measurement),
        Err(f) if f.kind == FailureKind::CutOff && *objective == Objective::default() => {
            sample.cut_off_s.filter(|s| s.is_finite() && *s > 0.0)
        }
        Err(_) => None,
    }
}
