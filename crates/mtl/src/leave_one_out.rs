//! What transfers, by leaving one device out: an improved Algorithm 2.
//!
//! Algorithm 2 counts which features are in the best subset of each source; with few sources most subsets tie, and their count says
//! little. Here a few plans (what a model sees of devices, and which sources it learns from) compete as wholes by their mean performance over all sources, and those that are about the best vote.

use crate::confidence::{Confidence, Rehearsed, rehearse};
use crate::device::number;
use crate::error::MtlError;
use crate::near::shares;
use crate::protocol::fraction_of_oracle;
use crate::sources::{Source, Sources};
use crate::view::{OnDevice, View};
use rayon::prelude::*;
use serde::Serialize;
use tilewright_core::choice::FitSelector;
use tilewright_core::space::Config;

/// How far behind the best a plan may be to have a vote, in fraction of the oracle: comparisons over few sources tell no less.
const MARGIN: f64 = 0.01;

/// Most cases of a device that plans are compared with.
const CASES: usize = 600;

/// A source is judged on one in so many of its groups of inputs.
const PARTS: u32 = 3;

/// How the plans did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeaveOneOut {
    /// The plans that vote.
    pub chosen: Vec<&'static str>,
    /// Every plan with its mean fraction of the oracle's performance over the sources as targets; empty where there was
    /// nothing to compare.
    pub plans: Vec<(&'static str, f64)>,
    /// Every source with the mean fraction of the oracle's performance that the chosen plans had where it was the target.
    pub sources: Vec<(String, f64)>,
}

/// Plans for a target, how all did, and what a choice by them may lose.
pub type Compared = (Vec<Plan>, LeaveOneOut, Option<Confidence>);

/// A way to learn from sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its name in reports.
    pub name: &'static str,
    /// What the model sees of devices.
    pub view: View,
    /// Whether sources count by how near they are to the target.
    pub near: bool,
}

impl Plan {
    /// Fits a model for the target.
    ///
    /// # Errors
    /// A feature of the view that a device lacks, a learner that fails.
    pub fn fit(
        &self,
        sources: &Sources,
        target: (&str, &Config),
        learner: &dyn FitSelector,
        seed: u64,
    ) -> Result<OnDevice, MtlError> {
        if self.near {
            let near = sources.shared(&shares(&sources.devices(), target.1));
            return self.view.fit(&near, target, learner, seed);
        }
        self.view.fit(sources, target, learner, seed)
    }
}

/// The plans, the simple ones first.
fn plans(sources: &Sources, target: &Config, all: &[String]) -> Result<Vec<Plan>, MtlError> {
    let ratios = View::blind().with_ratios(sources, target);
    let named = View::concatenated(sources, all)?.with_words_shared(sources, target);
    let both = named.clone().with_ratios(sources, target);
    let plan = |name, view, near| Plan { name, view, near };
    Ok(vec![
        plan("blind", View::blind(), false),
        plan("ratios", ratios.clone(), false),
        plan("features", named, false),
        plan("features and ratios", both, false),
        plan("near", View::blind(), true),
        plan("near, ratios", ratios, true),
    ])
}

/// Features that the target and every source have, either all as numbers or all as words.
pub(crate) fn shared(sources: &Sources, target: &Config) -> Vec<String> {
    let devices = || sources.all().iter().map(|s| &s.features).chain([target]);
    let everywhere = |name: &String| {
        let numbers = devices().filter(|d| number(d, name).is_some()).count();
        let words = devices().filter(|d| d.get(name).is_some_and(|v| v.as_str().is_some())).count();
        numbers.max(words) == sources.all().len() + 1
    };
    sources.features().into_iter().filter(everywhere).collect()
}

/// Which of the plans are not another one again: those with ratios are where no feature's name is known, those by nearness where
/// no source is nearer than another.
fn distinct(plans: &[Plan], sources: &Sources, target: &Config) -> Vec<usize> {
    let apart = shares(&sources.devices(), target).iter().any(|share| *share < 1.0);
    let again = |i: usize| plans[..i].iter().any(|p| p.view == plans[i].view && p.near == plans[i].near);
    (0..plans.len()).filter(|&i| (apart || !plans[i].near) && !again(i)).collect()
}

/// A source as the target, and what the others learn from: inputs that the target is not judged on, so that both are unseen. Where
/// that leaves nothing, inputs are shared.
fn rehearsal(sources: &Sources, at: usize) -> Result<(Source, Sources), MtlError> {
    let rest = sources.without(at)?;
    let is_judged = |group: u32| group % PARTS == at as u32 % PARTS;
    let target = sources.all()[at].of_groups(is_judged);
    let learned = rest.of_groups(|group| !is_judged(group));
    let ran = |source: &Source| source.cases.cases().iter().any(|case| case.best().is_some());
    let is_whole = ran(&target) && learned.all().iter().all(ran);
    Ok(if is_whole { (target, learned) } else { (sources.all()[at].clone(), rest) })
}

/// The plans for a target by leaving each source out in turn, and how all plans did. Only features that the target has
/// and every source count. Plans that see the same are one.
///
/// # Errors
/// A target without a single feature that all sources have, a learner that fails.
pub fn leave_one_out(
    sources: &Sources,
    target: (&str, &Config),
    learner: &dyn FitSelector,
    seed: u64,
) -> Result<Compared, MtlError> {
    let shared = shared(sources, target.1);
    if let (true, Some(first)) = (shared.is_empty(), sources.features().first()) {
        return Err(MtlError::MissingFeature { device: target.0.to_owned(), feature: first.clone() });
    }
    let mut full = plans(sources, target.1, &shared)?;
    let count = sources.all().len();
    if count < 2 {
        // One source: nothing tells how devices differ.
        full.truncate(1);
        let chosen = full.iter().map(|p| p.name).collect();
        return Ok((full, LeaveOneOut { chosen, plans: Vec::new(), sources: Vec::new() }, None));
    }
    let thinned = sources.thinned(CASES);
    let places = distinct(&full, sources, target.1);
    let jobs: Vec<(usize, usize)> = places.iter().flat_map(|&p| (0..count).map(move |s| (p, s))).collect();
    let score = |&(plan, at): &(usize, usize)| -> Result<(f64, Vec<Rehearsed>), MtlError> {
        let (target, rest) = rehearsal(&thinned, at)?;
        let plan = plans(&rest, &target.features, &shared)?.swap_remove(plan);
        let selector = plan.fit(&rest, (&target.device, &target.features), learner, seed)?;
        Ok((fraction_of_oracle(&selector, &target.cases), rehearse(&selector, &target.cases)))
    };
    let scores = jobs.par_iter().map(score).collect::<Result<Vec<_>, MtlError>>()?;
    let full: Vec<Plan> = places.into_iter().map(|p| full[p].clone()).collect();
    Ok(compared(full, sources, &scores, seed))
}

/// What follows from the scores of every plan with every source as the target.
fn compared(full: Vec<Plan>, sources: &Sources, scores: &[(f64, Vec<Rehearsed>)], seed: u64) -> Compared {
    let count = sources.all().len();
    let mean = |of: &mut dyn Iterator<Item = f64>| {
        let all: Vec<f64> = of.collect();
        all.iter().sum::<f64>() / all.len() as f64
    };
    let means: Vec<f64> = scores.chunks(count).map(|s| mean(&mut s.iter().map(|s| s.0))).collect();
    let best = means.iter().copied().fold(0.0, f64::max);
    let is_chosen: Vec<bool> = means.iter().map(|mean| *mean >= best - MARGIN).collect();
    let of_chosen: Vec<&[(f64, Vec<Rehearsed>)]> =
        scores.chunks(count).zip(&is_chosen).filter(|(_, chosen)| **chosen).map(|(s, _)| s).collect();
    let of_source = |(at, source): (usize, &Source)| {
        (source.device.clone(), mean(&mut of_chosen.iter().map(|scores| scores[at].0)))
    };
    let of = sources.all();
    let sources = of.iter().enumerate().map(of_source).collect();
    let rehearsed: Vec<Rehearsed> =
        of_chosen.iter().flat_map(|scores| scores.iter()).flat_map(|s| s.1.iter().cloned()).collect();
    let confidence = of.first().and_then(|source| Confidence::fit(source.cases.schema(), &rehearsed, seed));
    let plans: Vec<(&'static str, f64)> = full.iter().map(|p| p.name).zip(means).collect();
    let chosen: Vec<Plan> = full.into_iter().zip(is_chosen).filter(|(_, chosen)| *chosen).map(|(p, _)| p).collect();
    let names = chosen.iter().map(|p| p.name).collect();
    (chosen, LeaveOneOut { chosen: names, plans, sources }, confidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tilewright_core::choice::{Case, ChoiceSet, Trial};
    use tilewright_core::feature::{Feature, FeatureSchema};
    use tilewright_core::selector::Candidate;

    fn three(groups: u32) -> Sources {
        let source = |device: &str| {
            let mut cases = ChoiceSet::new(FeatureSchema { input: vec![Feature::size("n")], config: vec![] });
            for i in 0..30 {
                let trials = ["a", "b"]
                    .map(|v| Trial { candidate: Candidate { variant: v.into(), features: vec![] }, cost: Some(1.0) });
                cases.push(Case { features: vec![i as f32], trials: trials.to_vec(), group: i % groups }).unwrap();
            }
            Source { device: device.into(), features: Config::parse("cores=4").unwrap(), cases }
        };
        Sources::new(["x", "y", "z"].map(source).to_vec()).unwrap()
    }

    fn groups(of: &Source) -> BTreeSet<u32> {
        of.cases.cases().iter().map(|case| case.group).collect()
    }

    /// What a plan is judged on has a device and inputs that its models have not seen.
    #[test]
    fn rehearsals_hold_back_a_device_and_inputs() {
        for at in 0..3 {
            let (target, rest) = rehearsal(&three(10), at).unwrap();
            assert_eq!(rest.all().len(), 2);
            for source in rest.all() {
                assert!(source.device != target.device && groups(source).is_disjoint(&groups(&target)), "{at}");
                assert_eq!(groups(source).len() + groups(&target).len(), 10, "all others are learned from");
            }
        }
        let (target, rest) = rehearsal(&three(1), 0).unwrap();
        assert_eq!((target.cases.len(), rest.all()[0].cases.len()), (30, 30), "one group cannot be parted");
    }
}
