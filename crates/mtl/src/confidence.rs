//! How much a choice may lose, learned from choices for devices that played the target.

use serde::Serialize;
use tilewright_core::choice::ChoiceSet;
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// A choice that is expected to lose more than this share of the best performance is no answer: the first few are worth timing.
pub const UNSURE: f64 = 0.02;

/// How many are worth timing then.
pub const TIMED: usize = 3;

/// Most groups that rehearsed choices are put into by their margin.
const BINS: usize = 24;

/// Fewest choices in a group.
const FEWEST: usize = 10;

/// What a choice loses by its margin: how much less the chosen variant is expected to cost than the next one, as a difference of
/// logarithms. The larger the margin, the smaller the loss, which is what the fit enforces (pool adjacent violators).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confidence {
    /// Mean margin of each group, ascending, with the mean loss in it, descending.
    groups: Vec<(f64, f64)>,
}

/// One rehearsed choice: its margin, and the share of the best performance that it lost.
pub(crate) type Rehearsed = (f64, f64);

impl Confidence {
    /// Learns from rehearsed choices; none where there are too few.
    pub(crate) fn fit(mut choices: Vec<Rehearsed>) -> Option<Self> {
        choices.retain(|(margin, loss)| margin.is_finite() && loss.is_finite());
        if choices.len() < FEWEST {
            return None;
        }
        choices.sort_by(|a, b| a.0.total_cmp(&b.0));
        let size = choices.len().div_ceil(BINS).max(FEWEST);
        let mut pooled: Vec<(f64, f64, f64)> = Vec::new();
        for group in choices.chunks(size) {
            let n = group.len() as f64;
            let mean = |of: fn(&Rehearsed) -> f64| group.iter().map(of).sum::<f64>() / n;
            let mut own = (mean(|c| c.0), mean(|c| c.1), n);
            while let Some(last) = pooled.pop_if(|last| last.1 <= own.1) {
                let sum = last.2 + own.2;
                let both = |a: f64, b: f64| (a * last.2 + b * own.2) / sum;
                own = (both(last.0, own.0), both(last.1, own.1), sum);
            }
            pooled.push(own);
        }
        Some(Self { groups: pooled.into_iter().map(|(margin, loss, _)| (margin, loss)).collect() })
    }

    /// The share of the best performance that a choice of this margin is expected to lose.
    pub fn expected_loss(&self, margin: f64) -> f64 {
        let after = self.groups.partition_point(|group| group.0 < margin);
        match (after.checked_sub(1).map(|i| self.groups[i]), self.groups.get(after)) {
            (Some(low), Some(high)) => {
                let share = (margin - low.0) / (high.0 - low.0);
                low.1 + share * (high.1 - low.1)
            }
            (Some((_, loss)), None) | (None, Some(&(_, loss))) => loss,
            (None, None) => 1.0,
        }
    }

    /// What the first choice of a selector is expected to lose on an input. A candidate that the selector knows nothing of may be
    /// the best, so that the choice is as uncertain as any; a single candidate loses nothing.
    pub fn of(&self, selector: &dyn Selector, input: &[f32], candidates: &[Candidate]) -> f64 {
        if candidates.len() < 2 {
            return 0.0;
        }
        self.expected_loss(margin(selector, input, candidates).unwrap_or(f64::NEG_INFINITY))
    }
}

/// By how much the first choice is ahead of the next; none where a candidate is not known, or the selector only ranks.
fn margin(selector: &dyn Selector, input: &[f32], candidates: &[Candidate]) -> Option<f64> {
    let (mut order, mut costs) = (VariantOrder::new(), Vec::new());
    selector.rank(input, candidates, &mut order);
    if !selector.relative_costs(input, candidates, &mut costs) || costs.iter().any(|c| !c.is_finite()) {
        return None;
    }
    let first = *order.first()?;
    let others = costs.iter().enumerate().filter(|(i, _)| *i != first);
    let next = others.map(|(_, c)| f64::from(*c)).fold(f64::INFINITY, f64::min);
    Some(next - f64::from(costs[first]))
}

/// What a selector's choices for these cases lose, with their margins. A case with one candidate, or of which nothing ran, is no choice.
pub(crate) fn rehearse(selector: &dyn Selector, cases: &ChoiceSet) -> Vec<Rehearsed> {
    let mut order = VariantOrder::new();
    let choice = |case: &tilewright_core::choice::Case| {
        let best = case.best()?;
        let candidates: Vec<Candidate> = case.trials.iter().map(|t| t.candidate.clone()).collect();
        let margin = margin(selector, &case.features, &candidates).filter(|_| candidates.len() > 1)?;
        selector.rank(&case.features, &candidates, &mut order);
        Some((margin, 1.0 - case.trials[*order.first()?].cost.map_or(0.0, |cost| best / cost)))
    };
    cases.cases().iter().filter_map(choice).collect()
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
    use tilewright_core::choice::{Case, Trial};
    use tilewright_core::feature::{Feature, FeatureSchema};

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

    fn candidate(variant: &str) -> Candidate {
        Candidate { variant: variant.into(), features: Vec::new() }
    }

    #[test]
    fn losses_fall_as_margins_grow() {
        // Noisy losses that fall from .2 to 0.
        let choice = |i: usize| {
            let margin = i as f64 / 400.0;
            (margin, (0.2 * (1.0 - margin)).max(0.0) + if i % 7 == 0 { 0.05 } else { 0.0 })
        };
        let learned = Confidence::fit((0..400).map(choice).collect()).unwrap();
        let at: Vec<f64> = (0..=20).map(|i| learned.expected_loss(f64::from(i) / 20.0)).collect();
        assert!(at.windows(2).all(|w| w[0] >= w[1]), "{at:?}");
        assert!((at[10] - 0.107).abs() < 0.02 && at[20] < 0.03, "{at:?}");
        assert_eq!(Confidence::fit(vec![(1.0, 0.1); 5]), None);
    }

    #[test]
    fn unknown_candidates_are_as_uncertain_as_anything_and_single_ones_lose_nothing() {
        let learned = Confidence::fit((0..100).map(|i| (f64::from(i), 0.5 - f64::from(i) / 200.0)).collect()).unwrap();
        let [sure, unsure] = [90.0f32, 0.1].map(|margin| learned.of(&ByInput, &[margin], &["a", "b"].map(candidate)));
        assert!(sure < 0.1 && unsure > 0.4, "{sure} {unsure}");
        assert_eq!(learned.of(&ByInput, &[90.0], &["a", "c"].map(candidate)), learned.expected_loss(f64::NEG_INFINITY));
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
        let mut cases = ChoiceSet::new(FeatureSchema { input: vec![Feature::size("n")], config: Vec::new() });
        for i in 0..100u32 {
            // The wider the margin, the more often the first is right.
            let right = i >= 50 || i % 2 == 0;
            let trial = |v: &str, cost| Trial { candidate: candidate(v), cost: Some(cost) };
            let trials = vec![trial("a", if right { 1.0 } else { 2.0 }), trial("b", if right { 2.0 } else { 1.0 })];
            cases.push(Case { features: vec![i as f32], trials, group: i }).unwrap();
        }
        let learned = Confidence::fit(rehearse(&ByInput, &cases)).unwrap();
        let scores = ConfidenceScores::of(&Knows(learned), &cases).unwrap();
        assert!((scores.loss - 0.125).abs() < 1e-9 && (scores.expected_loss - scores.loss).abs() < 0.02, "{scores:?}");
        assert!(scores.sure > 0.25 && scores.sure_of_oracle > 0.99 && scores.unsure_of_oracle < 0.85, "{scores:?}");
        assert!(scores.timed_of_oracle > 0.99);
        assert_eq!(ConfidenceScores::of(&ByInput, &cases), None);
    }
}
