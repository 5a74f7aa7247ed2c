//! A model for a device that ran nothing, from what others recorded.

use crate::baselines::Majority;
use crate::confidence::Confidence;
use crate::cvdfs::{CvDfs, CvDfsOutcome, cvdfs};
use crate::error::MtlError;
use crate::forward::{Forward, ForwardOutcome, forward};
use crate::leave_one_out::{LeaveOneOut, Plan, leave_one_out};
use crate::pdfs::{PdfsOutcome, Proxy, pdfs};
use crate::profile::{Profile, ProxyRun};
use crate::sources::Sources;
use crate::view::View;
use rayon::prelude::*;
use serde::Serialize;
use tilewright_core::choice::FitSelector;
use tilewright_core::selector::{Candidate, Selector, VariantOrder};
use tilewright_core::space::Config;

/// Which features of devices a model sees.
#[derive(Clone, Debug, PartialEq)]
pub enum Dfs {
    /// All that the sources have.
    Full,
    /// Those that the profiles of the variants point to (Algorithm 1).
    Profiled(Profiles),
    /// Those that predict one source from the others (Algorithm 2), of those that profiles point to where there are profiles.
    CrossValidated(CvDfs, Option<Profiles>),
    /// Features that predict sources from the others, added one by one ([`forward`]: Algorithm 2 improved).
    Forward(Forward),
    /// A vote of the plans that do best when every source plays the target ([`leave_one_out()`]): what the project recommends.
    LeaveOneOut,
}

/// What profilers or counters saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profiles {
    /// Of the variants.
    pub variants: Vec<Profile>,
    /// Of the proxies; counted ones where there are none.
    pub proxies: Vec<ProxyRun>,
}

impl Profiles {
    fn select(&self, features: &[String]) -> Result<PdfsOutcome, MtlError> {
        let counted;
        let runs = if self.proxies.is_empty() {
            counted = Proxy::counted_runs();
            &counted
        } else {
            &self.proxies
        };
        pdfs(&Proxy::all(), runs, &self.variants, features)
    }
}

/// A model for the target, and how its view of devices was chosen.
pub struct Tuned {
    /// Ranks variants by features of the input alone.
    pub selector: Box<dyn Selector>,
    /// The features of devices that it uses.
    pub features: Vec<String>,
    /// How they were chosen.
    pub reason: Reason,
    /// What a choice may lose, where sources played the target.
    pub confidence: Option<Confidence>,
}

impl Selector for Tuned {
    fn rank(&self, input: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        self.selector.rank(input, candidates, out);
    }

    fn relative_costs(&self, input: &[f32], candidates: &[Candidate], out: &mut Vec<f32>) -> bool {
        self.selector.relative_costs(input, candidates, out)
    }

    fn expected_loss(&self, input: &[f32], candidates: &[Candidate]) -> Option<f64> {
        Some(self.confidence.as_ref()?.of(&*self.selector, input, candidates))
    }
}

/// Builds a model for a target of which only the features are known (the paper's `tune_from_source`): features of devices are
/// chosen, appended to those of the inputs, and the learner is fitted on all sources together. Sources on which nothing ran are left
/// out.
///
/// # Errors
/// A feature that the target or a source lacks, too few sources for a cross-validation, profiles that cannot be used, a learner that
/// fails.
pub fn tune_from_source(
    sources: &Sources,
    target: (&str, &Config),
    dfs: &Dfs,
    learner: &dyn FitSelector,
    seed: u64,
) -> Result<Tuned, MtlError> {
    let mut reason = Reason::default();
    let sources = &sources.that_ran();
    if sources.all().is_empty() {
        return Err(MtlError::TooFew { what: "source devices on which anything ran", found: 0, needed: 1 });
    }
    let (plans, confidence) = plans(sources, target, dfs, learner, seed, &mut reason)?;
    let fit = |plan: &Plan| -> Result<Box<dyn Selector>, MtlError> {
        Ok(Box::new(plan.fit(sources, target, learner, seed)?))
    };
    let mut voters = plans.par_iter().map(fit).collect::<Result<Vec<_>, MtlError>>()?;
    let single = if voters.len() == 1 { voters.pop() } else { None };
    let selector = single.unwrap_or_else(|| Box::new(Majority::of(voters)));
    let mut features: Vec<String> = Vec::new();
    for name in plans.iter().flat_map(|p| p.view.features()) {
        if !features.contains(&name) {
            features.push(name);
        }
    }
    Ok(Tuned { selector, features, reason, confidence })
}

/// The best of several learners, by what their plans come to where sources play the target: [`tune_from_source`] with each, and which it
/// was. Without such a comparison it is the first.
///
/// # Errors
/// As there, and no learner.
pub fn tune_by_best(
    sources: &Sources,
    target: (&str, &Config),
    dfs: &Dfs,
    learners: &[&dyn FitSelector],
    seed: u64,
) -> Result<(Tuned, usize), MtlError> {
    let is_compared = *dfs == Dfs::LeaveOneOut && sources.that_ran().all().len() > 1;
    let asked = if is_compared { learners } else { &learners[..learners.len().min(1)] };
    let tuned = asked.iter().map(|learner| tune_from_source(sources, target, dfs, *learner, seed));
    let all = tuned.collect::<Result<Vec<_>, _>>()?;
    let rehearsed = |tuned: &Tuned| {
        let plans = tuned.reason.leave_one_out.iter().flat_map(|compared| &compared.plans);
        plans.map(|(_, mean)| *mean).fold(0.0, f64::max)
    };
    // Ties go to the first.
    let best = all.into_iter().enumerate().rev().max_by(|a, b| rehearsed(&a.1).total_cmp(&rehearsed(&b.1)));
    let (at, tuned) = best.ok_or(MtlError::TooFew { what: "learners", found: 0, needed: 1 })?;
    Ok((tuned, at))
}

fn plans(
    sources: &Sources,
    target: (&str, &Config),
    dfs: &Dfs,
    learner: &dyn FitSelector,
    seed: u64,
    reason: &mut Reason,
) -> Result<(Vec<Plan>, Option<Confidence>), MtlError> {
    let all = sources.features();
    let chosen = match dfs {
        Dfs::Full => all,
        Dfs::Profiled(profiles) => reason.profiled.insert(profiles.select(&all)?).features.clone(),
        Dfs::CrossValidated(settings, profiles) => {
            let from = match profiles {
                Some(profiles) => reason.profiled.insert(profiles.select(&all)?).features.clone(),
                None => all,
            };
            reason.cross_validated.insert(cvdfs(sources, &from, learner, *settings, seed)?).features.clone()
        }
        Dfs::Forward(settings) => {
            reason.forward.insert(forward(sources, &all, learner, *settings, seed)?).features.clone()
        }
        Dfs::LeaveOneOut => {
            let (plans, compared, confidence) = leave_one_out(sources, target, learner, seed)?;
            reason.leave_one_out = Some(compared);
            return Ok((plans, confidence));
        }
    };
    let view = View::concatenated(sources, &chosen)?;
    Ok((vec![Plan { name: "features", view, near: false }], None))
}

/// What chose the view, for a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reason {
    /// What Algorithm 1 found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profiled: Option<PdfsOutcome>,
    /// What Algorithm 2 found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cross_validated: Option<CvDfsOutcome>,
    /// What Algorithm 2 improved found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward: Option<ForwardOutcome>,
    /// How every view did with sources as targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leave_one_out: Option<LeaveOneOut>,
}
