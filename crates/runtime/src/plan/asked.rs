//! How hard an answer was looked for, and whether that is enough for who asks now.

use super::answer::Searched;
use crate::plan_cache::CachedPlan;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tilewright_search::stop::Tolerance;

/// Looks of one answer that are remembered; the oldest go first.
const LOOKS_KEPT: usize = 8;

/// One search for the best configuration of an input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Seconds that it had for measuring candidates.
    pub budget_s: f64,
    /// How many of the model's best it timed at first.
    pub top: usize,
    /// Configurations that it measured.
    pub timed: u64,
    /// The kind of model that ranked them; None where this very input was tuned.
    pub model: Option<String>,
    /// Checksum of the profile, or of the weights, that the model was read from.
    pub profile: Option<String>,
    /// How it was searched by measuring; None where it was not, or an older version wrote this.
    #[serde(default)]
    pub searched: Option<Searched>,
}

impl Look {
    fn strategy(&self) -> Option<&str> {
        self.searched.as_ref().map(|searched| searched.strategy.as_str())
    }

    /// Notes one more look. What the same model and strategy looked for twice is as good as the better of both.
    pub(super) fn note(self, looks: &mut Vec<Self>) {
        let same =
            |l: &&mut Self| (&l.model, &l.profile, l.strategy()) == (&self.model, &self.profile, self.strategy());
        if let Some(before) = looks.iter_mut().find(same) {
            before.budget_s = before.budget_s.max(self.budget_s);
            before.top = before.top.max(self.top);
            before.timed += self.timed;
            before.searched = self.searched;
            return;
        }
        if looks.len() >= LOOKS_KEPT {
            looks.remove(0);
        }
        looks.push(self);
    }
}

/// What a remembered answer must live up to. What is not asked for is taken as it comes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Time for measuring candidates, at least.
    pub budget: Option<Duration>,
    /// How many of the model's best are timed, at least.
    pub top: Option<usize>,
    /// The kind of model that ranks.
    pub model: Option<String>,
    /// Checksum of the profile, or of the weights, that the model at hand was read from: an answer that it had no part in
    /// may have become worse than it could be.
    pub profile: Option<String>,
    /// The strategy that searches.
    pub strategy: Option<String>,
    /// What the strategy's bound must promise.
    pub tolerance: Option<Tolerance>,
}

impl Asked {
    /// Why a remembered answer is not enough, as a sentence goes on; None if it is.
    pub fn exceeds(&self, plan: &CachedPlan) -> Option<String> {
        // An older version said which model it was, and nothing else.
        let unknown = [Look { model: plan.decision.model.clone(), ..Look::default() }];
        let looks = if plan.looks.is_empty() { &unknown[..] } else { &plan.looks };
        let mut fit: Vec<&Look> = looks.iter().collect();
        if let Some(model) = &self.model {
            fit.retain(|look| look.model.as_ref() == Some(model));
            if fit.is_empty() {
                return Some(format!("it was decided without the {model} model"));
            }
        }
        if let Some(profile) = &self.profile {
            fit.retain(|look| look.profile.as_ref() == Some(profile));
            if fit.is_empty() {
                return Some("it was decided without the profile that there is now".into());
            }
        }
        if let Some(strategy) = &self.strategy {
            fit.retain(|look| look.strategy() == Some(strategy));
            if fit.is_empty() {
                return Some(format!("it was decided without the strategy {strategy}"));
            }
        }
        if let Some(Tolerance { epsilon, alpha }) = self.tolerance {
            let keeps = |s: &Searched| s.epsilon <= epsilon && s.bound.is_some_and(|bound| bound <= alpha);
            fit.retain(|look| look.searched.as_ref().is_some_and(keeps));
            if fit.is_empty() {
                return Some(format!(
                    "it was decided without the promise of an epsilon of {epsilon} and an alpha of {alpha}"
                ));
            }
        }
        let budget_s = self.budget.map_or(0.0, |b| b.as_secs_f64());
        if fit.iter().all(|look| look.budget_s < budget_s) {
            let most = fit.iter().map(|look| look.budget_s).fold(0.0, f64::max);
            return Some(format!("{most} s were given to measuring, and {budget_s} s are asked for"));
        }
        fit.retain(|look| look.budget_s >= budget_s);
        let top = self.top.unwrap_or(0);
        let most = fit.iter().map(|look| look.top).max().unwrap_or(0);
        (most < top).then(|| format!("the best {most} by model were timed, and {top} are asked for"))
    }
}

#[cfg(test)]
mod tests;
