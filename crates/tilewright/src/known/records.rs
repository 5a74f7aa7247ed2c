//! What devices record for each other, and what they remember of inputs that are like one at hand.

use crate::error::Error;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use tilewright_core::choice::ChoiceSet;
use tilewright_core::device::DeviceSpec;
use tilewright_core::measurement::FailureKind;
use tilewright_core::objective::Objective;
use tilewright_core::problem::{AnyKernel, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_mtl::device::queried;
use tilewright_mtl::near::shares;
use tilewright_repository::{
    Key, Record, RecordedOutcome, RecordedSamples, RecordedTrial, Sampled, append_new, open, open_existing, sampled,
};
use tilewright_runtime::log::Sample;
use tilewright_runtime::store::Home;
use tilewright_runtime::tune::TuneReport;
use tilewright_search::Experience;

/// About the most configurations of a kernel that one campaign adds: what learns from them in seconds takes no more.
const MOST_RECORDED: usize = 8192;

/// The fewest configurations of an input that are kept where there are too many: the best, and some of all that are slower.
const FEWEST_OF_INPUT: usize = 4;

/// Devices whose inputs a search begins from, the nearest, and inputs of each.
const EXPERIENCED: (usize, usize) = (4, 2);

/// The name of a device in a repository: what it is called, with a part of the fingerprint that tells numbers of threads and drivers
/// apart.
pub fn name_of(device: &DeviceSpec) -> String {
    let name: String = device.name.chars().filter(|c| !c.is_control()).take(60).collect();
    format!("{name} [{}]", &device.fingerprint()[..12])
}

/// Records what a device measured of kernels, and the device's features, where other devices find them. What was recorded before is
/// not recorded again; how many configurations were new.
///
/// # Errors
/// A repository that cannot be read, written or reached.
pub fn record(
    home: &Home,
    device: &Arc<DeviceSpec>,
    measured: &[(&dyn AnyKernel, &[Sample])],
    objective: &Objective,
) -> Result<usize, Error> {
    let mut repository = open(&home.repository())?;
    let mut added = 0;
    for (kernel, samples) in measured {
        let samples = by_input(*kernel, device, samples, objective);
        if samples.is_empty() {
            continue;
        }
        let key = Key::new(kernel.id().as_str(), &name_of(device))?;
        let features = append_new(&mut *repository, &key, [Record::Device(queried(device))])?;
        let records = samples.into_iter().map(Record::Samples);
        added += append_new(&mut *repository, &key, records)?;
        tracing::debug!(%key, features, added, "recorded");
    }
    Ok(added)
}

/// [`record`] of all that a campaign of these kernels reports, and of what its selector learned from.
///
/// # Errors
/// As [`record`] and [`record_cases`].
pub fn record_report(
    home: &Home,
    device: &Arc<DeviceSpec>,
    kernels: &[&dyn AnyKernel],
    report: &TuneReport,
    objective: &Objective,
) -> Result<usize, Error> {
    let measured: Vec<_> = kernels.iter().zip(&report.kernels).map(|(k, of)| (*k, &of.measured[..])).collect();
    let added = record(home, device, &measured, objective)?;
    if let (Ok((_, learned)), Some(kernel)) = (&report.selector, kernels.first()) {
        record_cases(home, device, kernel.computation().as_str(), &learned.cases)?;
    }
    Ok(added)
}

/// Records which of its kernels did best on the inputs of a computation; how many inputs were new.
///
/// # Errors
/// As [`record`], and cases that do not fit their schema.
pub fn record_cases(home: &Home, device: &DeviceSpec, computation: &str, cases: &ChoiceSet) -> Result<usize, Error> {
    let mut repository = open(&home.repository())?;
    let key = Key::new(computation, &name_of(device))?;
    append_new(&mut *repository, &key, [Record::Device(queried(device))])?;
    Ok(append_new(&mut *repository, &key, Record::of_cases(cases)?)?)
}

/// The samples of each input in the form of the repository. What is no configuration of the kernel any more is left out.
fn by_input(
    kernel: &dyn AnyKernel,
    device: &Arc<DeviceSpec>,
    samples: &[Sample],
    objective: &Objective,
) -> Vec<RecordedSamples> {
    let mut inputs: BTreeMap<String, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        inputs.entry(sample.input.to_string()).or_default().push(sample);
    }
    let most = (MOST_RECORDED / inputs.len().max(1)).max(FEWEST_OF_INPUT);
    let recorded = inputs.values().filter_map(|samples| {
        let problem = kernel.problem(device, &samples[0].input).ok()?;
        let mut trials: Vec<RecordedTrial> = samples.iter().filter_map(|s| trial(&*problem, s, objective)).collect();
        trials.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
        let kept = most.min(trials.len());
        let trials = (0..kept).map(|i| trials[i * trials.len() / kept].clone()).collect();
        let mut features = Vec::new();
        problem.input_features(&mut features);
        Some(RecordedSamples {
            schema: problem.schema().hash(),
            objective: objective.clone(),
            input: problem.input(),
            features: finite(&features),
            params: problem.space().params().iter().map(|p| p.name.clone()).collect(),
            trials,
        })
    });
    recorded.filter(|r| !r.trials.is_empty()).collect()
}

fn trial(problem: &dyn Problem, sample: &Sample, objective: &Objective) -> Option<RecordedTrial> {
    let space = problem.space();
    let point = sample.config.to_point(space.params(), None).ok().filter(|p| space.is_legal(p))?;
    let outcome = match &sample.outcome {
        Ok(measurement) => RecordedOutcome::Cost(objective.cost(measurement)?),
        Err(failure) if failure.kind == FailureKind::CutOff && *objective == Objective::default() => {
            RecordedOutcome::AtLeast(sample.cut_off_s.filter(|s| s.is_finite() && *s > 0.0)?)
        }
        Err(_) => RecordedOutcome::Failed,
    };
    let mut features = Vec::new();
    problem.config_features(&point, &mut features);
    let values = space.config(&point).0.into_iter().map(|(_, value)| value).collect();
    Some(RecordedTrial(values, finite(&features), outcome))
}

fn rank(trial: &RecordedTrial) -> f64 {
    match trial.2 {
        RecordedOutcome::Cost(cost) => cost,
        RecordedOutcome::AtLeast(_) => f64::MAX,
        RecordedOutcome::Failed => f64::INFINITY,
    }
}

fn finite(features: &[f32]) -> Vec<Option<f32>> {
    features.iter().map(|&f| Some(f).filter(|f| f.is_finite())).collect()
}

/// What this device and others recorded of the inputs that are most like the one at hand, for strategies to begin from: of each
/// device the nearest inputs, of the nearest devices. Damaged records are left out, and said so in the log.
///
/// # Errors
/// A repository that cannot be read or reached.
pub fn experience(home: &Home, problem: &dyn Problem) -> Result<Experience, Error> {
    let mut out = Experience::default();
    let Some(mut repository) = open_existing(&home.repository())? else { return Ok(out) };
    let schema = problem.schema().hash();
    let kernel = problem.kernel();
    let (devices, left_out) = sampled(&mut *repository, kernel.as_str(), (&schema, &Objective::default()))?;
    left_out.iter().for_each(|error| tracing::warn!(%error, "left out of what a search begins from"));
    let near = shares(&devices.iter().map(|d| &d.features).collect::<Vec<&Config>>(), &queried(problem.device()));
    let mut order: Vec<(f64, &Sampled)> = near.into_iter().zip(&devices).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut own = Vec::new();
    problem.input_features(&mut own);
    let mut seen = HashSet::new();
    for (_, device) in order.into_iter().take(EXPERIENCED.0) {
        let mut inputs: Vec<(f64, &RecordedSamples)> =
            device.inputs.iter().map(|input| (distance(&own, &input.features), input)).collect();
        inputs.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (_, input) in inputs.into_iter().take(EXPERIENCED.1) {
            let here = |(config, cost): (Config, f64)| {
                let point = config.to_point(problem.space().params(), None).ok()?;
                problem.space().is_legal(&point).then_some((point, cost))
            };
            let costs: Vec<(Point, f64)> = input.costs().filter_map(here).collect();
            if seen.insert(format!("{costs:?}")) {
                out.add(costs);
            }
        }
    }
    Ok(out)
}

/// How far inputs are apart, in the logarithms of their features.
fn distance(own: &[f32], other: &[Option<f32>]) -> f64 {
    let log = |v: f32| f64::from(v.abs()).ln_1p().copysign(f64::from(v));
    let apart = |(a, b): (&f32, &Option<f32>)| b.map_or(1.0, |b| (log(*a) - log(b)).powi(2));
    own.iter().zip(other).map(apart).sum::<f64>()
}
