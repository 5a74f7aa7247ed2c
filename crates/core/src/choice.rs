//! Recorded choices among variants: what a selector is fitted on and judged by.

use crate::feature::FeatureSchema;
use crate::selector::{Candidate, Selector};
use crate::setting::SettingError;
use std::collections::HashSet;

/// One candidate of a case, and what came of running it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// What ran.
    pub candidate: Candidate,
    /// Seconds, or the objective's cost, positive; none if it failed or is illegal for the input.
    pub cost: Option<f64>,
}

/// A relative log cost from here on is as bad as a failure.
pub const WORST: f64 = 1.5;

impl Trial {
    /// The natural log of the cost over the best of the case, at most [`WORST`]; a failure is as bad.
    pub fn relative_cost(&self, best: f64) -> f64 {
        self.cost.map_or(WORST, |cost| (cost / best).ln().min(WORST))
    }
}

/// One input on one device with everything that was tried on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Features of the input and of the device.
    pub features: Vec<f32>,
    /// What was tried, each variant once.
    pub trials: Vec<Trial>,
    /// Cases of one group stay on one side of a split.
    pub group: u32,
}

impl Case {
    /// The lowest cost; none if everything failed.
    pub fn best(&self) -> Option<f64> {
        self.trials.iter().filter_map(|t| t.cost).min_by(f64::total_cmp)
    }
}

/// Cases under one schema.
#[derive(Clone, Debug, PartialEq)]
pub struct ChoiceSet {
    schema: FeatureSchema,
    cases: Vec<Case>,
}

/// A case that cannot be learned from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("case {case}: {message}")]
pub struct ChoiceError {
    /// Which case, from 0.
    pub case: usize,
    /// What is wrong with the input, or with which variant.
    pub message: String,
}

impl ChoiceError {
    /// Refuses features of another number than the schema's.
    ///
    /// # Errors
    /// What has them, and both numbers.
    pub fn expect_width(case: usize, what: &str, found: usize, expected: usize) -> Result<(), Self> {
        let message = || format!("{what} has {found} features, the schema has {expected}");
        if found == expected { Ok(()) } else { Err(Self { case, message: message() }) }
    }
}

impl ChoiceSet {
    /// An empty set.
    pub fn new(schema: FeatureSchema) -> Self {
        Self { schema, cases: Vec::new() }
    }

    /// Features of the input, and features of a candidate.
    pub fn schema(&self) -> &FeatureSchema {
        &self.schema
    }

    /// All cases.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// Appends a case. Features may be NaN where they are unknown; costs may not.
    ///
    /// # Errors
    /// The wrong number of features, a cost that is not positive and finite, a variant twice, no variants.
    pub fn push(&mut self, case: Case) -> Result<(), ChoiceError> {
        let at = self.cases.len();
        let refuse = |message| Err(ChoiceError { case: at, message });
        ChoiceError::expect_width(at, "the input", case.features.len(), self.schema.input.len())?;
        if case.trials.is_empty() {
            return refuse("it has no variants".to_owned());
        }
        let mut seen = HashSet::new();
        for Trial { candidate, cost } in &case.trials {
            let variant = &candidate.variant;
            ChoiceError::expect_width(at, variant, candidate.features.len(), self.schema.config.len())?;
            if let Some(cost) = cost.filter(|c| !(c.is_finite() && *c > 0.0)) {
                return refuse(format!("variant {variant:?}: cost {cost}; costs are positive and finite"));
            }
            if !seen.insert(variant.as_str()) {
                return refuse(format!("variant {variant:?} stands twice"));
            }
        }
        self.cases.push(case);
        Ok(())
    }

    /// Number of cases.
    pub fn len(&self) -> usize {
        self.cases.len()
    }

    /// Whether there are no cases.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// The set of the given cases, in that order.
    ///
    /// # Panics
    /// On a number beyond the last case.
    #[must_use]
    pub fn subset(&self, indices: &[usize]) -> Self {
        Self { schema: self.schema.clone(), cases: indices.iter().map(|&i| self.cases[i].clone()).collect() }
    }
}

/// Why a selector could not be fitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// Too little to learn from.
    #[error("{found} {what}, at least {needed} are needed")]
    TooFew {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many are needed.
        needed: usize,
    },
    /// No case has a variant that ran.
    #[error("no case has a variant that ran")]
    NothingLegal,
    /// Every feature is constant or missing.
    #[error("none of the {0} features varies: all are constant or missing")]
    NoUsableFeature(usize),
    /// A setting outside its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A name that the schema does not have.
    #[error("{field}: no feature {name:?}; there are {known}")]
    UnknownFeature {
        /// Where it was named.
        field: &'static str,
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The numbers of an optimiser left the range of finite ones, or it gave up.
    #[error("{method} failed: {message}")]
    Numeric {
        /// What was fitted.
        method: &'static str,
        /// What happened.
        message: String,
    },
}

/// Fits a selector.
pub trait FitSelector: Send + Sync {
    /// Fits on the cases. The same cases and seed give the same selector.
    ///
    /// # Errors
    /// Too little to learn from, settings out of range, an optimiser that failed.
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError>;
}

impl<F: FitSelector + ?Sized> FitSelector for Box<F> {
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        (**self).fit(data, seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_as_bad_as_the_worst() {
        let of = |cost| Trial { candidate: Candidate { variant: "v".into(), features: Vec::new() }, cost };
        assert_eq!(of(None).relative_cost(1.0), of(Some(1e9)).relative_cost(1.0));
    }
}
