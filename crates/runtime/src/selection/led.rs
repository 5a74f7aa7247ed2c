//! Methods whose selectors the kernels' own rating leads, to be judged beside the methods alone.

use super::Cases;
use super::suited::{lead, leader};
use tilewright_core::choice::{Case, ChoiceError, ChoiceSet, FitSelector, SelectError, Trial};
use tilewright_core::feature::{Feature, FeatureSchema};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// The cases, with each kernel's rating as its one feature.
pub(super) fn with_ratings(cases: &Cases) -> Result<ChoiceSet, ChoiceError> {
    let config = vec![Feature::flag("suits")];
    let mut out = ChoiceSet::new(FeatureSchema { config, ..cases.set.schema().clone() });
    for (case, ratings) in cases.set.cases().iter().zip(&cases.suits) {
        let trial = |(trial, rating): (&Trial, &f64)| Trial {
            candidate: Candidate { features: vec![*rating as f32], ..trial.candidate.clone() },
            ..trial.clone()
        };
        out.push(Case { trials: case.trials.iter().zip(ratings).map(trial).collect(), ..case.clone() })?;
    }
    Ok(out)
}

/// A method whose selectors the kernels' own rating leads, for cases [`with_ratings`].
pub(super) struct Led<'a>(pub(super) &'a dyn FitSelector);

impl FitSelector for Led<'_> {
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        let mut plain = ChoiceSet::new(FeatureSchema { config: Vec::new(), ..data.schema().clone() });
        for case in data.cases() {
            let trial = |trial: &Trial| Trial { candidate: without_rating(&trial.candidate), ..trial.clone() };
            // What was accepted with a feature more is without it.
            plain.push(Case { trials: case.trials.iter().map(trial).collect(), ..case.clone() }).ok();
        }
        Ok(Box::new(LedSelector(self.0.fit(&plain, seed)?)))
    }
}

struct LedSelector(Box<dyn Selector>);

impl Selector for LedSelector {
    fn rank(&self, input: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        let plain: Vec<Candidate> = candidates.iter().map(without_rating).collect();
        self.0.rank(input, &plain, out);
        let suits = |at: usize| candidates[at].features.first().map_or(0.0, |rating| f64::from(*rating));
        if let Some(leader) = leader(out, suits) {
            lead(out, leader);
        }
    }
}

fn without_rating(candidate: &Candidate) -> Candidate {
    Candidate { variant: candidate.variant.clone(), features: Vec::new() }
}
