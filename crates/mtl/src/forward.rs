//! Algorithm 2 improved: features of devices are added one by one, while that predicts sources better by more than chance.
//!
//! Algorithm 2 as written takes the best of very many subsets on each source and counts; where subsets do about as well, chance
//! decides. It judges them on inputs that the other sources' models have seen, where no feature of a device is needed to know an
//! input again. And it must return a feature even where none helps. Here a subset is judged by its mean over all sources as
//! targets and several splits of the inputs, targets and inputs both unseen; a feature comes in only if it gains more than the
//! standard error of its gain; features that hardly differ are not looked at.

use crate::cvdfs::first_best;
use crate::device::number;
use crate::error::MtlError;
use crate::protocol::fraction_of_oracle;
use crate::sources::{Source, Sources};
use crate::view::View;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeSet;
use tilewright_core::choice::FitSelector;
use tilewright_core::setting::SettingError;

/// How features are searched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Forward {
    /// Most features.
    pub largest: usize,
    /// Splits of the inputs that scores are averaged over.
    pub splits: usize,
    /// Most cases of a device that models are fitted and judged on, evenly spread.
    pub cases: usize,
    /// A number whose largest and smallest value over the sources differ by less than this share of the smallest counts as the
    /// same on all: measured features differ by as much from one measurement to the next.
    pub same: f64,
}

impl Default for Forward {
    /// Up to three features, as in the paper.
    fn default() -> Self {
        Self { largest: 3, splits: 3, cases: 400, same: 0.05 }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ForwardOutcome {
    /// The features in the order they came in; none where no feature tells devices apart.
    pub features: Vec<String>,
    /// Mean fraction of the oracle's performance without any feature, and after each that came in.
    pub scores: Vec<f64>,
    /// Models that were fitted.
    pub fits: usize,
}

/// Share of the inputs that the models of a split are fitted on.
const TRAIN: f64 = 2.0 / 3.0;

/// Sources to learn from, and one to judge by, without an input in common.
struct Trial {
    rest: Sources,
    target: Source,
}

/// Adds features one by one.
///
/// # Errors
/// Fewer than three sources (a model of one device has nothing to tell features apart by), a setting of 0, a learner that fails.
pub fn forward(
    sources: &Sources,
    features: &[String],
    learner: &dyn FitSelector,
    settings: Forward,
    seed: u64,
) -> Result<ForwardOutcome, MtlError> {
    let count = sources.all().len();
    if count < 3 {
        return Err(MtlError::TooFew { what: "source devices", found: count, needed: 3 });
    }
    for (field, value) in [("largest", settings.largest), ("splits", settings.splits), ("cases", settings.cases)] {
        SettingError::check(field, value, value > 0, "at least 1")?;
    }
    let trials = trials(&sources.thinned(settings.cases), settings.splits, seed)?;
    let mut left: Vec<String> = features.iter().filter(|f| differs(sources, f, settings.same)).cloned().collect();
    let judge = |subset: &[String]| -> Result<Vec<f64>, MtlError> {
        trials.par_iter().map(|trial| trial.score(subset, learner, seed)).collect()
    };
    let (mut chosen, mut before) = (Vec::new(), judge(&[])?);
    let (mut scores, mut fits) = (vec![mean(&before)], trials.len());
    while chosen.len() < settings.largest && !left.is_empty() {
        let longer = |feature: &String| chosen.iter().chain([feature]).cloned().collect::<Vec<String>>();
        let all = left.iter().map(|feature| judge(&longer(feature))).collect::<Result<Vec<_>, _>>()?;
        fits += all.len() * trials.len();
        let best = first_best(&all.iter().map(|scores| mean(scores)).collect::<Vec<f64>>());
        let (gain, error) = gain(&before, &all[best], count);
        if gain <= error {
            break;
        }
        before.clone_from(&all[best]);
        scores.push(mean(&before));
        chosen.push(left.remove(best));
    }
    Ok(ForwardOutcome { features: chosen, scores, fits })
}

fn mean(scores: &[f64]) -> f64 {
    scores.iter().sum::<f64>() / scores.len() as f64
}

/// The mean gain, and its standard error over the targets: splits of one target are no independent evidence. Scores stand target
/// after target.
fn gain(before: &[f64], after: &[f64], targets: usize) -> (f64, f64) {
    let splits = before.len() / targets;
    let of_target = |(b, a): (&[f64], &[f64])| mean(a) - mean(b);
    let gains: Vec<f64> = before.chunks(splits).zip(after.chunks(splits)).map(of_target).collect();
    let mean = mean(&gains);
    let squares: f64 = gains.iter().map(|g| (g - mean).powi(2)).sum();
    (mean, (squares / (targets * (targets - 1)) as f64).sqrt())
}

/// Whether a feature that all sources have tells them apart.
fn differs(sources: &Sources, feature: &str, same: f64) -> bool {
    let all: Option<Vec<_>> = sources.all().iter().map(|s| s.features.get(feature)).collect();
    let Some(values) = all else { return false };
    let numbers: Option<Vec<f64>> = sources.all().iter().map(|s| number(&s.features, feature)).collect();
    match numbers {
        Some(numbers) if numbers.iter().all(|n| *n > 0.0) => {
            let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
            numbers.iter().copied().fold(0.0, f64::max) > least * (1.0 + same)
        }
        _ => values.iter().any(|v| v != &values[0]),
    }
}

/// Every source as the target, in every split of the inputs.
fn trials(sources: &Sources, splits: usize, seed: u64) -> Result<Vec<Trial>, MtlError> {
    let groups: BTreeSet<u32> = sources.all().iter().flat_map(|s| s.cases.cases()).map(|c| c.group).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let split = |_| {
        let mut order: Vec<u32> = groups.iter().copied().collect();
        order.shuffle(&mut rng);
        let train = ((order.len() as f64 * TRAIN) as usize).clamp(1, order.len().max(2) - 1);
        order[..train.min(order.len())].iter().copied().collect::<BTreeSet<u32>>()
    };
    let splits: Vec<BTreeSet<u32>> = (0..splits).map(split).collect();
    let mut out = Vec::new();
    for at in 0..sources.all().len() {
        for train in &splits {
            let rest = sources.without(at)?.of_groups(|g| train.contains(&g));
            let target = sources.all()[at].of_groups(|g| !train.contains(&g));
            out.push(Trial { rest, target });
        }
    }
    Ok(out)
}

impl Trial {
    fn score(&self, subset: &[String], learner: &dyn FitSelector, seed: u64) -> Result<f64, MtlError> {
        let view = View::concatenated(&self.rest, subset)?;
        let target = (self.target.device.as_str(), &self.target.features);
        let selector = view.fit(&self.rest, target, learner, seed)?;
        Ok(fraction_of_oracle(&selector, &self.target.cases))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_measured_against_its_scatter_over_targets() {
        let (steady, error) = gain(&[0.5, 0.6, 0.5, 0.6], &[0.6, 0.7, 0.6, 0.7], 2);
        assert!((steady - 0.1).abs() < 1e-12 && error < 1e-9, "{steady} {error}");
        let (gain, error) = gain(&[0.5, 0.5], &[0.9, 0.4], 2);
        assert!((gain - 0.15).abs() < 1e-12 && (error - 0.25).abs() < 1e-12, "{gain} {error}");
    }
}
