//! What transfers, by rehearsal: an improved Algorithm 2.
//!
//! Algorithm 2 counts which features are in the best subset of each source; with few sources most subsets tie, and their count says
//! little. Here a few plans (what a model sees of devices, and which sources it learns from) compete as wholes by their mean performance
//! over all sources, on inputs that no model of the rehearsal has seen, and those that are about the best vote.

use crate::baselines::Majority;
use crate::device::number;
use crate::error::MtlError;
use crate::near::shares;
use crate::score::Score;
use crate::sources::Sources;
use crate::trial::{Trial, trials};
use crate::view::{OnDevice, View};
use rayon::prelude::*;
use serde::Serialize;
use tilewright_core::choice::FitSelector;
use tilewright_core::selector::Selector;
use tilewright_core::space::Config;

/// How far behind the best a plan may be to have a vote, in fraction of the oracle: rehearsals with few sources tell no less.
const MARGIN: f64 = 0.01;

/// Most cases of a device that plans are compared on.
const CASES: usize = 400;

/// Splits of the inputs that a rehearsal averages over.
const SPLITS: usize = 2;

/// How the plans did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rehearsal {
    /// The plans that vote.
    pub chosen: Vec<&'static str>,
    /// Every plan with its mean fraction of the oracle's performance over the sources as targets; empty where there was
    /// nothing to compare.
    pub plans: Vec<(&'static str, f64)>,
}

/// A way to learn from sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its name in reports.
    pub name: &'static str,
    /// What the model sees of devices.
    pub view: View,
    /// How sources count.
    pub sources: Weighing,
}

/// What the sources of a plan are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Weighing {
    /// One model of all, each source with all its cases.
    Alike,
    /// One model of all, sources counting by how near they are to the target.
    Near,
    /// A model of each, which vote.
    Votes,
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
    ) -> Result<Box<dyn Selector>, MtlError> {
        let values = self.view.values(target.0, target.1)?;
        let pooled = match self.sources {
            Weighing::Votes => return Ok(Box::new(Majority::fit(sources, learner, seed)?)),
            Weighing::Near => self.view.pool(&sources.shared(&shares(sources, target.1)))?,
            Weighing::Alike => self.view.pool(sources)?,
        };
        Ok(Box::new(OnDevice { inner: learner.fit(&pooled, seed)?, values }))
    }
}

/// The plans, the simple ones first.
fn plans(sources: &Sources, target: &Config, all: &[String]) -> Result<Vec<Plan>, MtlError> {
    let ratios = View::blind().with_ratios(sources, target);
    let named = View::concatenated(sources, all)?;
    let both = named.clone().with_ratios(sources, target);
    let plan = |name, view, sources| Plan { name, view, sources };
    Ok(vec![
        plan("blind", View::blind(), Weighing::Alike),
        plan("ratios", ratios.clone(), Weighing::Alike),
        plan("features", named, Weighing::Alike),
        plan("features and ratios", both, Weighing::Alike),
        plan("near", View::blind(), Weighing::Near),
        plan("near, ratios", ratios, Weighing::Near),
        plan("majority", View::blind(), Weighing::Votes),
    ])
}

/// Features that the target and every source have, either all as numbers or all as words.
fn shared(sources: &Sources, target: &Config) -> Vec<String> {
    let devices = || sources.all().iter().map(|s| &s.features).chain([target]);
    let everywhere = |name: &String| {
        let numbers = devices().filter(|d| number(d, name).is_some()).count();
        let words = devices().filter(|d| d.get(name).is_some_and(|v| v.as_str().is_some())).count();
        numbers.max(words) == sources.all().len() + 1
    };
    sources.features().into_iter().filter(everywhere).collect()
}

/// The plans for a target by rehearsals with each source in its place, and how all plans did. Only features that the target has
/// and every source count. Plans that see the same, as those with ratios do where no feature's name is known, are one.
///
/// # Errors
/// A target without a single feature that all sources have, a learner that fails.
pub fn rehearse(
    sources: &Sources,
    target: (&str, &Config),
    learner: &dyn FitSelector,
    seed: u64,
) -> Result<(Vec<Plan>, Rehearsal), MtlError> {
    let shared = shared(sources, target.1);
    if let (true, Some(first)) = (shared.is_empty(), sources.features().first()) {
        return Err(MtlError::MissingFeature { device: target.0.to_owned(), feature: first.clone() });
    }
    let mut full = plans(sources, target.1, &shared)?;
    if sources.all().len() < 2 {
        // One source: nothing tells how devices differ.
        full.truncate(1);
        let chosen = full.iter().map(|p| p.name).collect();
        return Ok((full, Rehearsal { chosen, plans: Vec::new() }));
    }
    let seen: Vec<Plan> = full.clone();
    let distinct = |plan: &Plan| !seen.iter().take_while(|p| p.name != plan.name).any(|p| p.alike(plan));
    full.retain(distinct);
    // Where no source is nearer than another, they are alike.
    let apart = shares(sources, target.1).iter().any(|share| *share < 1.0);
    full.retain(|plan| plan.sources != Weighing::Near || apart);
    let mut trials = trials(&sources.thinned(CASES), SPLITS, seed)?;
    trials.retain(|t| t.target.ran() && t.rest.all().iter().any(|s| s.ran()));
    let count = trials.len();
    let jobs: Vec<(&Plan, &Trial)> = full.iter().flat_map(|p| trials.iter().map(move |t| (p, t))).collect();
    let score = |&(plan, trial): &(&Plan, &Trial)| trial.rehearsed(plan.name, &shared, learner, seed);
    let scores = jobs.par_iter().map(score).collect::<Result<Vec<f64>, MtlError>>()?;
    // Without a trial, nothing speaks against any plan.
    let mean = |p: usize| scores[p * count..(p + 1) * count].iter().sum::<f64>() / count.max(1) as f64;
    let means: Vec<f64> = (0..full.len()).map(mean).collect();
    let best = means.iter().copied().fold(0.0, f64::max);
    let plans: Vec<(&'static str, f64)> = full.iter().map(|p| p.name).zip(means).collect();
    let chosen: Vec<Plan> =
        full.into_iter().zip(&plans).filter(|(_, (_, mean))| *mean >= best - MARGIN).map(|(plan, _)| plan).collect();
    let names = chosen.iter().map(|p| p.name).collect();
    Ok((chosen, Rehearsal { chosen: names, plans }))
}

impl Plan {
    fn alike(&self, other: &Self) -> bool {
        self.view == other.view && self.sources == other.sources
    }
}

impl Trial {
    /// How well the plan of this name does on the device in the target's place.
    fn rehearsed(&self, name: &str, shared: &[String], learner: &dyn FitSelector, seed: u64) -> Result<f64, MtlError> {
        let target = (self.target.device.as_str(), &self.target.features);
        let rest = self.rest.that_ran();
        let plan = plans(&rest, target.1, shared)?.into_iter().find(|p| p.name == name);
        let selector = plan.map(|p| p.fit(&rest, target, learner, seed)).transpose()?;
        Ok(selector.map_or(0.0, |s| Score::of(&*s, &self.target.cases).fraction_of_oracle))
    }
}
