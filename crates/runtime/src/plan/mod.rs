//! Deciding the kernel and the configuration for an input: from the cache; else by what a model knows, a strategy that measures, a comparison of
//! the best with each other and a check of the result.
//!
//! # The same winner on every run
//!
//! Configurations that noise cannot tell from the best one form a *tie band*, and [`TIE_ORDER`], which knows no times, chooses in it; among
//! kernels [`KERNEL_TIE_ORDER`] does. The answer holds both bands ([`tilewright_core::decision::Tie`]).
//!
//! - *The band.* A finalist belongs to it that is behind the best one by no more than the margin ([`PairedSettings::tie_band`], 1%), or by
//!   half of the margin and what chance makes of the difference, where that is more ([`crate::paired`]). A finalist that truly is within half
//!   of the margin is in the band with 95%, as long as that is no wider than [`PairedSettings::tie_most`] (3%).
//! - *The loss.* By measurement, the choice is behind the best by no more than the width of the band: 1% where the noise is small, and never
//!   more than 3%.
//! - *The promise.* Runs, and ranks on equal devices, choose the same where they have the same profile, the same seed and the same
//!   remembered answer or none, where they measure the same configurations, and where what comes first in the band truly is within half of
//!   the margin of the best, while whatever comes ahead of it in the order is clearly outside. One at the edge of the band is in it on one run
//!   and not on the next: no rule that measures can avoid that.
//! - *What time decides.* A search within a budget measures as many configurations as the machine has time for. Where hundreds of them are
//!   within the noise of the best, two such searches mostly meet others. With [`PlanSettings::refine`] of zero and a profile, all runs measure
//!   the same. Ranks that must agree in any case share one answer: one of them plans, and the others read its plan cache.
//!
//! [`PairedSettings::tie_band`]: crate::paired::PairedSettings::tie_band
//! [`PairedSettings::tie_most`]: crate::paired::PairedSettings::tie_most

mod answer;
mod asked;
mod bench;
mod decide;
mod pool;
mod settings;
mod ties;
mod variants;

pub use crate::knowledge::Ranking;
pub use answer::{PlanStats, Planned, Searched};
pub use asked::{Asked, Look};
pub use settings::PlanSettings;
pub use ties::{KERNEL_TIE_ORDER, TIE_ORDER};
pub use tilewright_search::Sampling;
pub use variants::{Entrant, SEARCHED, Searching, VariantPlanner};

use crate::error::RuntimeError;
use crate::plan_cache::{CachedPlan, Lookup, PlanCache};
use crate::store::StoreError;
use crate::verify::Verifier;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tilewright_core::device::DeviceSpec;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Measure, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_core::timing::Clock;
use tilewright_sampler::Sampler;

/// What a decision works with. Whatever is missing is done without, and the answer says so.
pub struct Planner<'a> {
    /// The kernel.
    pub kernel: &'a dyn AnyKernel,
    /// The device.
    pub device: &'a Arc<DeviceSpec>,
    /// Times configurations; without it the model's first choice is taken. On its device results are checked; where it has
    /// none, nothing is verified, and nothing is cached.
    pub measure: Option<&'a mut dyn Measure>,
    /// The model; without it this very input is tuned within the budget.
    pub predictor: Option<&'a dyn Predictor>,
    /// Draws configurations where there is no model, or what a model is asked about.
    pub sampler: &'a mut dyn Sampler,
    /// Remembers decisions.
    pub cache: Option<&'a PlanCache>,
    /// How to decide.
    pub settings: PlanSettings,
}

impl Planner<'_> {
    /// Decides the configuration of an input.
    ///
    /// # Errors
    /// Fields that describe no input, nothing legal, nothing that runs or gives the right result, a device that fails, a
    /// model of another schema, or a file (a damaged cache entry among them).
    pub fn plan(&mut self, input: &Config) -> Result<Planned, RuntimeError> {
        let problem = self.kernel.problem(self.device, input)?;
        self.plan_problem(&*problem)
    }

    /// [`Planner::plan`] for a problem of this kernel and device.
    ///
    /// # Errors
    /// See [`Planner::plan`].
    pub fn plan_problem(&mut self, problem: &dyn Problem) -> Result<Planned, RuntimeError> {
        let mut verifier = Verifier::new(self.settings.verify.clone());
        let planned = self.plan_checked(problem, &mut verifier, &mut |_| {})?;
        warn_unstored(&planned);
        Ok(planned)
    }

    /// [`Planner::plan_problem`] with references that kernels of one computation share; says `anew` before it decides, where the
    /// cache has no answer that is enough.
    fn plan_checked(
        &mut self,
        problem: &dyn Problem,
        verifier: &mut Verifier,
        anew: &mut dyn FnMut(&PlanSettings),
    ) -> Result<Planned, RuntimeError> {
        let clock = Instant::now();
        let found = match self.cache.filter(|_| !self.settings.ignore_cached) {
            Some(cache) => cache.get(problem, &self.settings.objective)?,
            None => Lookup::Miss,
        };
        let (again, remembered, mut looks) = match recall(found, &self.settings.asked) {
            Recalled::Enough(plan, point) => return Ok(from_cache(problem, *plan, point, &clock)),
            Recalled::Not { why, point, looks } => (why, point, looks),
        };
        anew(&self.settings);
        let mut planned = decide::decide(self, problem, (&clock, verifier), (again, remembered))?;
        look(&self.settings, (self.predictor.is_some(), planned.stats.timed > 0), &planned).note(&mut looks);
        if let (Some(cache), Some(plan)) = (self.remembering(), to_cache(&planned, looks)) {
            planned.unstored = unstored(cache.put(problem, &self.settings.objective, &plan));
        }
        Ok(planned)
    }

    /// The cache, where answers are kept in it.
    fn remembering(&self) -> Option<&PlanCache> {
        self.cache.filter(|_| self.settings.remember)
    }
}

/// How hard an answer was looked for just now.
fn look(settings: &PlanSettings, (is_modelled, is_timed): (bool, bool), planned: &Planned) -> Look {
    let budget = if is_modelled { settings.refine } else { settings.budget };
    // Where nothing was timed, what the settings allow says nothing.
    let (budget_s, top) = if is_timed { (budget.as_secs_f64(), settings.top) } else { (0.0, 0) };
    // A kernel of one configuration may have no model, whichever was asked for.
    let model = settings.asked.model.clone().or_else(|| planned.decision.model.clone());
    let (timed, profile, searched) = (planned.stats.timed, settings.asked.profile.clone(), planned.searched.clone());
    Look { budget_s, top, timed, model, profile, searched }
}

/// What the cache's word is worth.
enum Recalled {
    /// It lives up to what is asked for.
    Enough(Box<CachedPlan>, Point),
    /// It does not, and `why`; the remembered configuration where it is still legal, and how it was looked for.
    Not { why: Option<String>, point: Option<Point>, looks: Vec<Look> },
}

fn recall(found: Lookup, asked: &Asked) -> Recalled {
    match found {
        Lookup::Hit(plan, point) => match asked.exceeds(&plan) {
            None => Recalled::Enough(plan, point),
            Some(why) => {
                let why = Some(format!("the cached plan was looked for again: {why}"));
                Recalled::Not { why, point: Some(point), looks: plan.looks }
            }
        },
        Lookup::Stale(why) => Recalled::Not { why: Some(why), point: None, looks: Vec::new() },
        Lookup::Miss => Recalled::Not { why: None, point: None, looks: Vec::new() },
    }
}

/// What is remembered of a decision; nothing of one that was not verified.
fn to_cache(planned: &Planned, looks: Vec<Look>) -> Option<CachedPlan> {
    Some(CachedPlan {
        config: planned.config.clone(),
        predicted_s: planned.predicted_s,
        measured_s: planned.measured_s,
        max_rel_error: Some(planned.max_rel_error?),
        decision: planned.decision.clone(),
        looks,
    })
}

/// Why a plan was not kept. It is an answer all the same.
fn unstored(put: Result<PathBuf, StoreError>) -> Option<String> {
    put.err().map(|error| error.to_string())
}

/// Says so, once for an answer: what keeps one kernel's plan from being stored keeps those of all.
fn warn_unstored(planned: &Planned) {
    if let Some(error) = &planned.unstored {
        tracing::warn!(%error, "the plan is not remembered");
    }
}

fn from_cache(problem: &dyn Problem, plan: CachedPlan, point: Point, clock: &Instant) -> Planned {
    Planned {
        kernel: problem.kernel(),
        input: problem.input(),
        config: plan.config,
        point,
        predicted_s: plan.predicted_s,
        measured_s: plan.measured_s,
        verified: plan.max_rel_error.is_some(),
        max_rel_error: plan.max_rel_error,
        considered: plan.decision.considered_count,
        cached: true,
        looked_again: None,
        searched: plan.looks.into_iter().rev().find_map(|look| look.searched),
        reason: format!("from the plan cache; when it was decided: {}", plan.decision.reason),
        decision: plan.decision,
        unstored: None,
        damaged: Vec::new(),
        stats: PlanStats { seconds: clock.now().as_secs_f64(), ..PlanStats::default() },
    }
}
