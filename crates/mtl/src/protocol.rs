//! How transfer is judged: on held-out inputs of a target of which nothing is learned, beside what its own measurements would have
//! taught, and what simple rules give.

use crate::baselines::{BestOnSources, Majority};
use crate::confidence::ConfidenceScores;
use crate::error::MtlError;
use crate::experts::Experts;
use crate::shots::{ShotScores, curve, likeness};
use crate::sources::{Source, Sources};
use crate::transfer::{Dfs, Reason, tune_by_best};
use serde::Serialize;
use std::time::Instant;
use tilewright_core::choice::{ChoiceSet, FitSelector};
use tilewright_core::metrics::ChoiceScores;
use tilewright_core::selector::Selector;
use tilewright_core::space::Config;

/// The mean fraction of the oracle's performance that a selector's choices have; 0 where nothing ran in any case.
pub(crate) fn fraction_of_oracle(selector: &dyn Selector, cases: &ChoiceSet) -> f64 {
    ChoiceScores::of(selector, cases).map_or(0.0, |scores| scores.fraction_of_oracle)
}

/// What stays the same over all splits.
#[derive(Clone, Copy)]
pub struct Protocol<'a> {
    /// The name of the target.
    pub target: &'a str,
    /// The features of the target.
    pub features: &'a Config,
    /// Which features of devices a model sees.
    pub dfs: &'a Dfs,
    /// What is fitted on all sources together, and on the target for comparison, by name: of several the best by [`tune_by_best`].
    pub learners: &'a [(&'a str, &'a dyn FitSelector)],
    /// Numbers of inputs of the target that are timed, ascending; none to choose without.
    pub shots: &'a [usize],
}

/// What one split gave, or the mean over several. Fractions are of the oracle's performance on the held-out cases.
#[derive(Clone, Debug, Serialize)]
pub struct TransferScores {
    /// Of the transferred model, after the most shots where there are any.
    #[serde(flatten)]
    pub scores: ChoiceScores,
    /// The same learner on the target's own training cases; NaN where there are none.
    pub native: f64,
    /// Choosing at random among what ran.
    pub random: f64,
    /// The majority of the sources' own models.
    pub majority: f64,
    /// The variant that was best on the sources.
    pub fixed_best: f64,
    /// The variant that was best on the target's own training cases, which no transfer can know; NaN where there are none.
    pub fixed_best_of_target: f64,
    /// Features of devices that any split chose, most often first.
    pub features: Vec<String>,
    /// The same with how often.
    pub chosen: Vec<(String, usize)>,
    /// The learners that did best where sources played the target, with how often.
    pub learned_by: Vec<(String, usize)>,
    /// How well the transferred model knows what its choices lose, before any shot; none where nothing was rehearsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<ConfidenceScores>,
    /// Seconds of building one model, the choice of features included.
    pub seconds: f64,
    /// How the features of the last split were chosen.
    pub reason: Reason,
    /// By how many inputs of the target were timed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shots: Vec<ShotScores>,
}

impl Protocol<'_> {
    /// Judges one split: `own` are the target's training cases, of which the transferred model sees nothing but the shots. None where
    /// nothing of what is held out ran.
    ///
    /// # Errors
    /// As [`tune_by_best`]'s.
    pub fn split(
        &self,
        sources: Vec<Source>,
        own: ChoiceSet,
        held_out: &ChoiceSet,
        seed: u64,
    ) -> Result<Option<TransferScores>, MtlError> {
        let sources = Sources::overlapping(sources)?;
        let start = Instant::now();
        let learners: Vec<&dyn FitSelector> = self.learners.iter().map(|(_, learner)| *learner).collect();
        let (tuned, at) = tune_by_best(&sources, (self.target, self.features), self.dfs, &learners, seed)?;
        let (name, learner) = self.learners[at];
        let seconds = start.elapsed().as_secs_f64();
        let Some(scores) = ChoiceScores::of(&tuned, held_out) else { return Ok(None) };
        let confidence = ConfidenceScores::of(&tuned, held_out);
        let native = learner.fit(&own, seed).map_or(f64::NAN, |s| fraction_of_oracle(&*s, held_out));
        let voters = Majority::fit(&sources, learner, seed)?;
        let majority = fraction_of_oracle(&voters, held_out);
        let like = sources.all().first().map_or(&own, |first| &first.cases);
        let shots = match self.shots {
            [] => Vec::new(),
            counts => {
                let experts = Experts::led_by(tuned.selector, voters.into_experts());
                let weights = likeness(&sources);
                curve((experts, tuned.confidence), (like, &weights), &own, held_out, counts)?
            }
        };
        let scores = shots.last().map_or(scores, |last| last.scores);
        let own = Source { device: self.target.to_owned(), features: self.features.clone(), cases: own };
        let own = Sources::overlapping(vec![own]).ok().map(|own| own.that_ran()).filter(|own| !own.all().is_empty());
        let fixed_best_of_target = own.map_or(f64::NAN, |own| fraction_of_oracle(&BestOnSources::fit(&own), held_out));
        Ok(Some(TransferScores {
            scores,
            native,
            random: ChoiceScores::at_random(held_out),
            majority,
            fixed_best: fraction_of_oracle(&BestOnSources::fit(&sources), held_out),
            fixed_best_of_target,
            chosen: tuned.features.iter().map(|name| (name.clone(), 1)).collect(),
            features: tuned.features,
            learned_by: vec![(name.to_owned(), 1)],
            confidence,
            seconds,
            reason: tuned.reason,
            shots,
        }))
    }
}

/// Names with how often they were chosen, most often first.
fn counted<'n>(names: impl Iterator<Item = &'n (String, usize)>) -> Vec<(String, usize)> {
    let mut out: Vec<(String, usize)> = Vec::new();
    for (name, times) in names {
        match out.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += times,
            None => out.push((name.clone(), *times)),
        }
    }
    out.sort_by_key(|c| std::cmp::Reverse(c.1));
    out
}

impl TransferScores {
    /// The mean over splits; none of none.
    pub fn mean(splits: &[Self]) -> Option<Self> {
        let mean = |of: fn(&Self) -> f64| splits.iter().map(of).sum::<f64>() / splits.len() as f64;
        let scores: Vec<ChoiceScores> = splits.iter().map(|s| s.scores).collect();
        let chosen = counted(splits.iter().flat_map(|s| &s.chosen));
        Some(Self {
            scores: ChoiceScores::mean(&scores)?,
            native: mean(|s| s.native),
            random: mean(|s| s.random),
            majority: mean(|s| s.majority),
            fixed_best: mean(|s| s.fixed_best),
            fixed_best_of_target: mean(|s| s.fixed_best_of_target),
            features: chosen.iter().map(|(name, _)| name.clone()).collect(),
            chosen,
            learned_by: counted(splits.iter().flat_map(|s| &s.learned_by)),
            confidence: ConfidenceScores::mean(&splits.iter().filter_map(|s| s.confidence).collect::<Vec<_>>()),
            seconds: mean(|s| s.seconds),
            reason: splits.last()?.reason.clone(),
            shots: (0..splits.last()?.shots.len())
                .filter_map(|i| {
                    ShotScores::mean(&splits.iter().filter_map(|s| s.shots.get(i).copied()).collect::<Vec<_>>())
                })
                .collect(),
        })
    }
}
