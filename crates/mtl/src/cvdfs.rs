//! Cross-validation device feature selection (Algorithm 2): sources play the target in turn.

use crate::error::MtlError;
use crate::sources::Sources;
use crate::view::{OnDevice, View};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use tilewright_core::choice::{ChoiceSet, FitSelector};
use tilewright_core::metrics::ChoiceScores;
use tilewright_core::setting::SettingError;

/// What "accuracy" in Algorithm 2 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Judge {
    /// The fraction of fastest choices.
    Labels,
    /// The fraction of the oracle's performance: a near tie is no mistake.
    Performance,
}

/// How subsets are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CvDfs {
    /// The largest subset.
    pub largest: usize,
    /// How many of the most frequent features are returned.
    pub k: usize,
    /// Most cases of a device that models are fitted and judged on, evenly spread.
    pub cases: usize,
    /// What is compared.
    pub judge: Judge,
    /// Most subsets. Where features have more, only those that do best alone, on average over the targets, are combined: the number
    /// of subsets of three grows as the cube.
    pub subsets: usize,
}

impl Default for CvDfs {
    /// As in the paper: subsets of up to three, one feature is returned.
    fn default() -> Self {
        Self { largest: 3, k: 1, cases: 400, judge: Judge::Performance, subsets: 1000 }
    }
}

/// What Algorithm 2 found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CvDfsOutcome {
    /// The most frequent features, the most frequent first.
    pub features: Vec<String>,
    /// For each temporary target, its best subset and how well that did.
    pub of_targets: Vec<(String, Vec<String>, f64)>,
    /// Models that were fitted.
    pub fits: usize,
}

/// Algorithm 2. With two devices left to learn from, all numeric features are the same up to a scale, and a learner that
/// standardises them gives the same model for many subsets; nothing is assumed about the learner here, so each is fitted.
///
/// # Errors
/// Fewer than three sources (a model of one device has nothing to tell features apart by), no features, a setting of 0, a
/// learner that fails.
pub fn cvdfs(
    sources: &Sources,
    features: &[String],
    learner: &dyn FitSelector,
    settings: CvDfs,
    seed: u64,
) -> Result<CvDfsOutcome, MtlError> {
    let count = sources.all().len();
    if count < 3 {
        return Err(MtlError::TooFew { what: "source devices", found: count, needed: 3 });
    }
    if features.is_empty() {
        return Err(MtlError::TooFew { what: "device features", found: 0, needed: 1 });
    }
    let CvDfs { largest, k, cases, subsets: most, .. } = settings;
    for (field, value) in [("largest", largest), ("k", k), ("cases", cases), ("subsets", most)] {
        SettingError::check(field, value, value > 0, "at least 1")?;
    }
    let thinned = sources.thinned(settings.cases);
    let judged = |subsets: &[Vec<String>], at: usize| settings.judged(&thinned, at, subsets, learner, seed);
    let (mut fits, mut features) = (0, features.to_vec());
    if subset_count(features.len(), largest) > most {
        let alone = subsets(&features, 1);
        let scores = (0..count).map(|at| judged(&alone, at)).collect::<Result<Vec<_>, _>>()?;
        fits += count * alone.len();
        features = best_alone(&features, &scores, largest, most);
    }
    let features = &features;
    let subsets = subsets(features, largest);
    let mut frequency: BTreeMap<&String, usize> = BTreeMap::new();
    let mut of_targets = Vec::new();
    for at in 0..count {
        let (target, scores) = (&thinned.all()[at], judged(&subsets, at)?);
        // The first of the best, as the algorithm's ">" has it: subsets come by size.
        let best = first_best(&scores);
        subsets[best].iter().for_each(|f| *frequency.entry(f).or_default() += 1);
        of_targets.push((target.device.clone(), subsets[best].clone(), scores[best]));
    }
    let mut order: Vec<(&String, usize)> = frequency.into_iter().collect();
    let place = |f: &String| features.iter().position(|g| g == f);
    order.sort_by(|a, b| b.1.cmp(&a.1).then(place(a.0).cmp(&place(b.0))));
    Ok(CvDfsOutcome {
        features: order.into_iter().take(settings.k).map(|(f, _)| f.clone()).collect(),
        of_targets,
        fits: fits + count * subsets.len(),
    })
}

/// The place of the first of the highest scores.
pub(crate) fn first_best(scores: &[f64]) -> usize {
    (0..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best })
}

impl CvDfs {
    /// How well a model of the other devices does on one of them, for each subset.
    fn judged(
        &self,
        sources: &Sources,
        at: usize,
        subsets: &[Vec<String>],
        learner: &dyn FitSelector,
        seed: u64,
    ) -> Result<Vec<f64>, MtlError> {
        let (target, rest) = (&sources.all()[at], sources.without(at)?);
        let accuracy = |subset: &Vec<String>| -> Result<f64, MtlError> {
            let view = View::concatenated(&rest, subset)?;
            let selector = view.fit(&rest, (&target.device, &target.features), learner, seed)?;
            Ok(self.judge.of(&selector, &target.cases))
        };
        subsets.par_iter().map(accuracy).collect()
    }
}

impl Judge {
    fn of(self, selector: &OnDevice, cases: &ChoiceSet) -> f64 {
        // A target on which nothing ran says nothing for any subset.
        ChoiceScores::of(selector, cases).map_or(0.0, |score| match self {
            Self::Labels => 1.0 - score.delta_miss,
            Self::Performance => score.fraction_of_oracle,
        })
    }
}

/// How many subsets of 1 to `largest` of `n` features there are; beyond any number where that overflows.
fn subset_count(n: usize, largest: usize) -> usize {
    let mut of_size = 1usize;
    let mut sum = 0usize;
    for size in 1..=largest.min(n) {
        of_size = of_size.saturating_mul(n - size + 1) / size;
        sum = sum.saturating_add(of_size);
    }
    sum
}

/// As many features as have at most `most` subsets (but one at least): those with the best sums of scores, in their order.
fn best_alone(features: &[String], scores: &[Vec<f64>], largest: usize, most: usize) -> Vec<String> {
    let sum = |f: usize| scores.iter().map(|of_target| of_target[f]).sum::<f64>();
    let mut order: Vec<usize> = (0..features.len()).collect();
    order.sort_by(|&a, &b| sum(b).total_cmp(&sum(a)));
    let kept = (1..=features.len()).take_while(|&n| n == 1 || subset_count(n, largest) <= most).count();
    order.truncate(kept);
    order.sort_unstable();
    order.into_iter().map(|f| features[f].clone()).collect()
}

/// All subsets of 1 to `largest` features, the small ones first.
fn subsets(features: &[String], largest: usize) -> Vec<Vec<String>> {
    let mut out: Vec<Vec<usize>> = Vec::new();
    let mut last: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..largest.min(features.len()) {
        let longer = |s: &Vec<usize>| {
            let from = s.last().map_or(0, |l| l + 1);
            let s = s.clone();
            (from..features.len()).map(move |f| s.iter().copied().chain([f]).collect::<Vec<usize>>())
        };
        last = last.iter().flat_map(longer).collect();
        out.extend(last.iter().cloned());
    }
    out.into_iter().map(|s| s.into_iter().map(|i| features[i].clone()).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_features_are_cut_to_those_that_do_best_alone() {
        assert_eq!((subset_count(4, 3), subset_count(12, 3), subset_count(3, 9), subset_count(0, 3)), (14, 298, 7, 0));
        assert!(subset_count(usize::MAX, 3) > 1 << 40);
        let features: Vec<String> = ["a", "b", "c", "d"].map(String::from).to_vec();
        let scores = [vec![0.1, 0.9, 0.2, 0.5], vec![0.1, 0.2, 0.2, 0.9]];
        assert_eq!(best_alone(&features, &scores, 3, 7), ["b", "c", "d"]);
        assert_eq!(best_alone(&features, &scores, 3, 0), ["d"]);
    }

    #[test]
    fn subsets_are_all_there_and_small_first() {
        let features: Vec<String> = ["a", "b", "c", "d"].map(String::from).to_vec();
        let all = subsets(&features, 3);
        assert_eq!(all.len(), 4 + 6 + 4);
        assert_eq!(
            (all[0].len(), all[4].clone(), all[13].clone()),
            (1, vec!["a".into(), "b".into()], features[1..].to_vec())
        );
    }
}
