//! Deciding the configuration of an input: from the cache; else by what a model knows, a strategy that measures, a comparison of
//! the best with each other and a check of the result.

mod answer;
mod asked;
mod bench;
mod decide;
mod pool;
mod settings;

pub use crate::knowledge::Ranking;
pub use answer::{PlanStats, Planned, Searched};
pub use asked::{Asked, Look};
pub use settings::PlanSettings;
pub use tilewright_search::Sampling;

use crate::error::RuntimeError;
use crate::plan_cache::{CachedPlan, Lookup, PlanCache};
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
    /// Words that describe no input, nothing legal, nothing that runs or gives the right result, a device that fails, a
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
        let clock = Instant::now();
        let (mut again, mut remembered, mut looks) = (None, None, Vec::new());
        if let Some(cache) = self.cache.filter(|_| !self.settings.ignore_cached) {
            match cache.get(problem, &self.settings.objective)? {
                Lookup::Hit(plan, point) => match self.settings.asked.exceeds(&plan) {
                    None => return Ok(from_cache(problem, *plan, point, &clock)),
                    Some(why) => {
                        again = Some(format!("the cached plan was looked for again: {why}"));
                        (remembered, looks) = (Some(point), plan.looks);
                    }
                },
                Lookup::Stale(why) => again = Some(why),
                Lookup::Miss => {}
            }
        }
        let planned = decide::decide(self, problem, &clock, (again, remembered))?;
        self.look(&planned).note(&mut looks);
        if let (Some(cache), Some(max_rel_error)) = (self.cache, planned.max_rel_error) {
            let plan = CachedPlan {
                config: planned.config.clone(),
                predicted_s: planned.predicted_s,
                measured_s: planned.measured_s,
                max_rel_error: Some(max_rel_error),
                decision: planned.decision.clone(),
                looks,
            };
            cache.put(problem, &self.settings.objective, &plan)?;
        }
        Ok(planned)
    }

    /// How hard an answer was looked for just now.
    fn look(&self, planned: &Planned) -> Look {
        let settings = &self.settings;
        let (timed, searched) = (planned.stats.timed, planned.searched.clone());
        let budget = if self.predictor.is_some() { settings.refine } else { settings.budget };
        // Where nothing was timed, what the settings allow says nothing.
        let (budget_s, top) = if timed > 0 { (budget.as_secs_f64(), settings.top) } else { (0.0, 0) };
        let (model, profile) = (planned.decision.model.clone(), settings.asked.profile.clone());
        Look { budget_s, top, timed, model, profile, searched }
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
        stats: PlanStats { seconds: clock.now().as_secs_f64(), ..PlanStats::default() },
    }
}
