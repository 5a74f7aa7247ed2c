//! How much a choice may lose, learned from choices for devices that played the target.

use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use tilewright_core::choice::{Case, ChoiceSet, FitSelector, Trial};
use tilewright_core::feature::{Feature, FeatureSchema};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};
use tilewright_variant_select::extra::ExtraTrees;

/// A choice that is expected to lose more than this share of the best performance is no answer: the first few are worth timing.
pub const UNSURE: f64 = 0.02;

/// How many are worth timing then.
pub const TIMED: usize = 3;

/// Fewest rehearsed choices that teach anything.
const FEWEST: usize = 20;

/// What a choice loses, by the input, by how far the chosen variant is expected to be ahead of the next one, and by how far apart all
/// are expected to be: extremely randomised trees of what choices lost.
#[derive(Clone)]
pub struct Confidence {
    model: Arc<dyn Selector>,
    /// What choices lost that were not the best, on average.
    wrong: f64,
}

impl fmt::Debug for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Confidence").field("wrong", &self.wrong).finish_non_exhaustive()
    }
}

/// One rehearsed choice: its input, and its margin and spread; the share of the best performance that it lost.
pub(crate) type Rehearsed = (Vec<f32>, f64);

/// The names of the candidates of the model.
const NAMES: [&str; 2] = ["chosen", "best"];

fn candidate(name: &str) -> Candidate {
    Candidate { variant: name.to_owned(), features: Vec::new() }
}

impl Confidence {
    /// Learns from rehearsed choices for inputs of a schema; none where there are too few, or they say nothing.
    pub(crate) fn fit(schema: &FeatureSchema, choices: &[Rehearsed], seed: u64) -> Option<Self> {
        if choices.len() < FEWEST {
            return None;
        }
        let more = ["margin of the choice", "spread of the candidates"].map(Feature::size);
        let input = schema.input.iter().cloned().chain(more).collect();
        let mut cases = ChoiceSet::new(FeatureSchema { input, config: Vec::new() });
        for (at, (features, loss)) in choices.iter().enumerate() {
            let trial = |name: &str, cost| Trial { candidate: candidate(name), cost: Some(cost) };
            // The trees learn logarithms.
            let trials = vec![trial(NAMES[0], loss.exp()), trial(NAMES[1], 1.0)];
            cases.push(Case { features: features.clone(), trials, group: at as u32 }).ok()?;
        }
        let trees = ExtraTrees { least: 8, ..ExtraTrees::default() };
        let model = trees.fit(&cases, seed).ok()?.into();
        let wrong: Vec<f64> = choices.iter().map(|c| c.1).filter(|loss| *loss > 0.0).collect();
        Some(Self { model, wrong: wrong.iter().sum::<f64>() / wrong.len().max(1) as f64 })
    }

    /// What the first choice of a selector is expected to lose on an input. A candidate that the selector knows nothing of may be
    /// the best, so that the choice counts as wrong; a single candidate loses nothing.
    pub fn of(&self, selector: &dyn Selector, input: &[f32], candidates: &[Candidate]) -> f64 {
        if candidates.len() < 2 {
            return 0.0;
        }
        let mut costs = Vec::new();
        match choice(selector, input, candidates) {
            Some((_, features)) if self.model.relative_costs(&features, &NAMES.map(candidate), &mut costs) => {
                f64::from(costs[0]).max(0.0)
            }
            _ => self.wrong,
        }
    }
}

/// The first choice, and what its loss is learned from; none where a candidate is not known, or the selector only ranks.
fn choice(selector: &dyn Selector, input: &[f32], candidates: &[Candidate]) -> Option<(usize, Vec<f32>)> {
    let (mut order, mut costs) = (VariantOrder::new(), Vec::new());
    selector.rank(input, candidates, &mut order);
    if !selector.relative_costs(input, candidates, &mut costs) || costs.iter().any(|c| !c.is_finite()) {
        return None;
    }
    let first = *order.first()?;
    let others = costs.iter().enumerate().filter(|(i, _)| *i != first);
    let next = others.map(|(_, c)| *c).fold(f32::INFINITY, f32::min);
    let mean = costs.iter().sum::<f32>() / costs.len() as f32;
    let spread = (costs.iter().map(|c| (c - mean).powi(2)).sum::<f32>() / costs.len() as f32).sqrt();
    let features = input.iter().copied().chain([next - costs[first], spread]).collect();
    Some((first, features))
}

/// What a selector's choices for these cases lose. A case with one candidate, or of which nothing ran, is no choice.
pub(crate) fn rehearse(selector: &dyn Selector, cases: &ChoiceSet) -> Vec<Rehearsed> {
    let rehearsed = |case: &Case| {
        let best = case.best()?;
        let candidates: Vec<Candidate> = case.trials.iter().map(|t| t.candidate.clone()).collect();
        let (first, features) = choice(selector, &case.features, &candidates).filter(|_| candidates.len() > 1)?;
        Some((features, 1.0 - case.trials[first].cost.map_or(0.0, |cost| best / cost)))
    };
    cases.cases().iter().filter_map(rehearsed).collect()
}

/// What is expected of choices, and what they were. Shares of the best performance; NaN of no input.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ConfidenceScores {
    /// The mean that choices are expected to lose.
    pub expected_loss: f64,
    /// The mean that they lost.
    pub loss: f64,
    /// The share of the inputs whose choice is expected to lose at most [`UNSURE`].
    pub sure: f64,
    /// The performance of their choices.
    pub sure_of_oracle: f64,
    /// The performance of the other choices.
    pub unsure_of_oracle: f64,
    /// The performance over all inputs where the first [`TIMED`] are timed of those that are not sure.
    pub timed_of_oracle: f64,
}

impl ConfidenceScores {
    /// Judges a selector that says what its choices may lose; none where it does not, or nothing ran.
    pub fn of(selector: &dyn Selector, cases: &ChoiceSet) -> Option<Self> {
        let (mut expected, mut sure, mut unsure, mut timed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut order = VariantOrder::new();
        for case in cases.cases() {
            let Some(best) = case.best() else { continue };
            let candidates: Vec<Candidate> = case.trials.iter().map(|t| t.candidate.clone()).collect();
            let loss = selector.expected_loss(&case.features, &candidates)?;
            selector.rank(&case.features, &candidates, &mut order);
            let of = |at: &usize| case.trials[*at].cost.map_or(0.0, |cost| best / cost);
            let first = order.first().map_or(0.0, of);
            let group = if loss > UNSURE { &mut unsure } else { &mut sure };
            group.push(first);
            expected.push(loss);
            let tried = if loss > UNSURE { TIMED } else { 1 };
            timed.push(order.iter().take(tried).map(of).fold(0.0, f64::max));
        }
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        (!expected.is_empty()).then(|| Self {
            expected_loss: mean(&expected),
            loss: 1.0 - (sure.iter().sum::<f64>() + unsure.iter().sum::<f64>()) / expected.len() as f64,
            sure: sure.len() as f64 / expected.len() as f64,
            sure_of_oracle: mean(&sure),
            unsure_of_oracle: mean(&unsure),
            timed_of_oracle: mean(&timed),
        })
    }

    /// The mean over splits or devices; a figure of no input in one of them counts there not.
    pub fn mean(all: &[Self]) -> Option<Self> {
        let mean = |of: fn(&Self) -> f64| {
            let known: Vec<f64> = all.iter().map(of).filter(|v| !v.is_nan()).collect();
            known.iter().sum::<f64>() / known.len() as f64
        };
        (!all.is_empty()).then(|| Self {
            expected_loss: mean(|s| s.expected_loss),
            loss: mean(|s| s.loss),
            sure: mean(|s| s.sure),
            sure_of_oracle: mean(|s| s.sure_of_oracle),
            unsure_of_oracle: mean(|s| s.unsure_of_oracle),
            timed_of_oracle: mean(|s| s.timed_of_oracle),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expects `b` to cost as much more than `a` as the input says.
    struct ByInput;

    impl Selector for ByInput {
        fn rank(&self, input: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
            let mut costs = Vec::new();
            self.relative_costs(input, candidates, &mut costs);
            out.clear();
            out.extend(0..costs.len());
            out.sort_by(|&i, &j| costs[i].total_cmp(&costs[j]));
        }

        fn relative_costs(&self, input: &[f32], candidates: &[Candidate], out: &mut Vec<f32>) -> bool {
            let cost = |c: &Candidate| match c.variant.as_str() {
                "a" => 0.0,
                "b" => input[0],
                _ => f32::NAN,
            };
            out.clear();
            out.extend(candidates.iter().map(cost));
            true
        }
    }

    fn schema() -> FeatureSchema {
        FeatureSchema { input: vec![Feature::size("n")], config: Vec::new() }
    }

    /// Choices that lose the less the wider their margin is.
    fn learned() -> Confidence {
        let choice = |i: usize| {
            let margin = i as f32 / 400.0;
            let noise = if i.is_multiple_of(7) { 0.05 } else { 0.0 };
            (vec![margin, margin, margin / 2.0], 0.2 * (1.0 - f64::from(margin)) + noise)
        };
        Confidence::fit(&schema(), &(0..400).map(choice).collect::<Vec<_>>(), 0).unwrap()
    }

    #[test]
    fn losses_fall_as_margins_grow() {
        let at = |margin: f32| learned().of(&ByInput, &[margin], &["a", "b"].map(candidate));
        assert!((at(0.5) - 0.107).abs() < 0.02 && at(0.05) > 0.17 && at(0.98) < 0.04, "{}", at(0.5));
        assert!(Confidence::fit(&schema(), &[(vec![1.0, 0.5, 0.1], 0.1)], 0).is_none());
    }

    #[test]
    fn unknown_candidates_make_a_choice_wrong_and_single_ones_lose_nothing() {
        let learned = learned();
        assert_eq!(learned.of(&ByInput, &[0.9], &["a", "c"].map(candidate)), learned.wrong);
        assert_eq!(learned.of(&ByInput, &[0.0], &[candidate("a")]), 0.0);
    }

    /// Knows what it may lose.
    struct Knows(Confidence);

    impl Selector for Knows {
        fn rank(&self, input: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
            ByInput.rank(input, candidates, out);
        }

        fn expected_loss(&self, input: &[f32], candidates: &[Candidate]) -> Option<f64> {
            Some(self.0.of(&ByInput, input, candidates))
        }
    }

    #[test]
    fn timing_three_where_a_choice_is_unsure_finds_the_best() {
        let mut cases = ChoiceSet::new(schema());
        for i in 0..1000u32 {
            // The wider the margin, the more often the first is right.
            let right = i >= 500 || i.is_multiple_of(2);
            let trial = |v: &str, cost| Trial { candidate: candidate(v), cost: Some(cost) };
            let trials = vec![trial("a", if right { 1.0 } else { 2.0 }), trial("b", if right { 2.0 } else { 1.0 })];
            cases.push(Case { features: vec![i as f32], trials, group: i }).unwrap();
        }
        let learned = Confidence::fit(&schema(), &rehearse(&ByInput, &cases), 0).unwrap();
        let scores = ConfidenceScores::of(&Knows(learned), &cases).unwrap();
        assert!((scores.loss - 0.125).abs() < 1e-9 && (scores.expected_loss - scores.loss).abs() < 0.02, "{scores:?}");
        assert!(scores.sure > 0.25 && scores.sure_of_oracle > 0.99 && scores.unsure_of_oracle < 0.85, "{scores:?}");
        assert!(scores.timed_of_oracle > 0.99);
        assert_eq!(ConfidenceScores::of(&ByInput, &cases), None);
    }
}
