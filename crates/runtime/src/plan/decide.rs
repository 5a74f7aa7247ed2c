//! One decision, step by step.

use super::Planner;
use super::answer::{PlanStats, Planned};
use super::pool::Pool;
use super::settings::Ranking;
use super::spread::{RANKED_PER_TIMED, spread};
use crate::error::RuntimeError;
use crate::nothing_legal::nothing_legal;
use crate::paired::compare;
use crate::timing::{Clock, HostClock};
use crate::verify::{Verifier, VerifyError};
use std::time::Duration;
use tilewright_core::decision::{Alternative, Decision};
use tilewright_core::measurement::{Failure, FailureKind, Outcome, Timing};
use tilewright_core::objective::Objective;
use tilewright_core::predictor::Scorer;
use tilewright_core::problem::{MeasureError, Problem};
use tilewright_core::program::DeviceError;
use tilewright_core::search::Ranked;
use tilewright_core::space::Point;
use tilewright_sampler::DrawError;
use tilewright_search::{Options, exhaustive, sampled};

/// Alternatives that a decision lists.
const LISTED: usize = 10;

/// With a model: the share of what is timed around its best that is drawn, for where the model is blind.
const DRAWN_BESIDE_MODEL: f64 = 0.05;

/// Without a model: the share that is drawn.
const DRAWN_SHARE: f64 = 0.4;

/// Seconds a configuration from which on a model is asked once, for its ranking, and not for hundreds of neighbours before each
/// measurement.
const DEAR: f64 = 3e-4;

pub(super) struct Deciding<'d, 'a> {
    pub(super) planner: &'d mut Planner<'a>,
    pub(super) problem: &'d dyn Problem,
    pub(super) clock: &'d HostClock,
    pub(super) pool: Pool,
    /// The model's best, more than are timed at first.
    pub(super) ranked: Vec<Point>,
    /// The answer of the plan cache, which wins unless a better one is found.
    pub(super) remembered: Option<usize>,
    stats: PlanStats,
    considered: u64,
    /// Whether the model takes too long to be asked while looking around.
    pub(super) is_dear: bool,
    /// What kind of model ranked.
    model: Option<String>,
    /// Sentences of the reason.
    told: Vec<String>,
}

impl<'d, 'a> Deciding<'d, 'a> {
    pub(super) fn new(planner: &'d mut Planner<'a>, problem: &'d dyn Problem, clock: &'d HostClock) -> Self {
        let (pool, stats) = (Pool::default(), PlanStats::default());
        Self {
            planner,
            problem,
            clock,
            pool,
            ranked: Vec::new(),
            remembered: None,
            stats,
            considered: 0,
            is_dear: false,
            model: None,
            told: Vec::new(),
        }
    }

    pub(super) fn objective(&self) -> Objective {
        self.planner.settings.objective.clone()
    }

    /// Decides; `again` says why the plan cache's answer was not enough, and `remembered` is that answer where it is still
    /// legal.
    pub(super) fn decide(mut self, again: Option<String>, remembered: Option<Point>) -> Result<Planned, RuntimeError> {
        self.told.extend(again.clone());
        // First of all, so that ties go to it and little time is enough for it.
        self.remembered = remembered.map(|point| self.pool.add(point, None));
        let default = self.problem.default_point().filter(|p| self.problem.space().is_legal(p));
        let modelled = self.ask_model(default.as_ref())?;
        let default = default.map(|p| self.pool.add(p, None));
        let order = if self.planner.measure.is_none() || (modelled && self.planner.settings.top == 0) {
            self.unmeasured(modelled)?
        } else {
            self.measured(modelled, default)?
        };
        let (winner, max_rel_error) = self.verified(&order)?;
        Ok(Planned { looked_again: again, ..self.answer(winner, &order, default, max_rel_error) })
    }

    /// Fills the pool with the model's best, behind its first choice the default; whether there is a model.
    fn ask_model(&mut self, default: Option<&Point>) -> Result<bool, RuntimeError> {
        let Some(predictor) = self.planner.predictor else { return Ok(false) };
        let scorer = predictor.bind(self.problem)?;
        self.model = Some(predictor.kind().to_owned());
        let top = self.planner.settings.top.max(1);
        let ranked = self.rank(&*scorer, predictor.kind(), top.saturating_mul(RANKED_PER_TIMED))?;
        if ranked.points.is_empty() {
            return Err(nothing_legal(self.problem));
        }
        self.considered = ranked.considered;
        self.ranked = ranked.points.iter().map(|(point, _)| point.clone()).collect();
        let mut chosen = spread(ranked.points, top).into_iter();
        if let Some((point, predicted_s)) = chosen.next() {
            self.pool.add(point, Some(predicted_s));
        }
        if let Some(default) = default {
            // Early: large inputs leave no time for all.
            let predicted_s = chosen.as_slice().iter().find(|(point, _)| point == default).map(|(_, s)| *s);
            self.pool.add(default.clone(), predicted_s);
        }
        for (point, predicted_s) in chosen {
            self.pool.add(point, Some(predicted_s));
        }
        Ok(true)
    }

    /// The model's best, by looking at as much as the settings say.
    fn rank(&mut self, scorer: &dyn Scorer, kind: &str, k: usize) -> Result<Ranked, RuntimeError> {
        let (ranked, seconds, looked) = match &self.planner.settings.ranking {
            Ranking::Everything => {
                let found = exhaustive(self.problem, scorer, &Options::top(k));
                (found.ranked, found.statistics.seconds, "searched over {} legal configurations")
            }
            Ranking::Sample(how) => {
                let seed = self.planner.settings.seed;
                let found = sampled(self.problem, scorer, &mut *self.planner.sampler, k, how, seed);
                let found = found.map_err(|e| self.not_drawn(e))?;
                (found.ranked, found.seconds, "asked about {} legal configurations, drawn and climbed to,")
            }
        };
        self.stats.search_s = seconds;
        self.is_dear = seconds > DEAR * ranked.considered as f64;
        let looked = looked.replace("{}", &ranked.considered.to_string());
        self.told.push(format!("the {kind} model was {looked} in {seconds:.2} s"));
        Ok(ranked)
    }

    /// Why nothing was drawn.
    pub(super) fn not_drawn(&self, error: DrawError) -> RuntimeError {
        match error {
            DrawError::Exhausted { .. } => nothing_legal(self.problem),
            e @ (DrawError::OtherSpace { .. } | DrawError::Uncounted(_)) => {
                RuntimeError::Setting { field: "sampler", message: e.to_string() }
            }
        }
    }

    /// The order of preference where nothing is timed: the model's, else the default alone.
    fn unmeasured(&mut self, modelled: bool) -> Result<Vec<usize>, RuntimeError> {
        if self.pool.len() == 0 {
            let first = self.problem.space().first_legal().ok_or_else(|| nothing_legal(self.problem))?;
            self.pool.add(first, None);
        }
        self.considered = self.considered.max(self.pool.len() as u64);
        let what = match (self.remembered, modelled) {
            (Some(_), _) => "the remembered configuration was kept",
            (None, true) => "the model's first choice was taken",
            (None, false) => "the default was taken: there is no model",
        };
        self.told.push(format!("{what}, nothing was timed"));
        Ok((0..self.pool.len()).collect())
    }

    /// The order of preference by measuring.
    fn measured(&mut self, modelled: bool, default: Option<usize>) -> Result<Vec<usize>, RuntimeError> {
        let settings = self.planner.settings.clone();
        if modelled {
            let count = self.pool.len();
            let order = self.compare(&(0..count).collect::<Vec<_>>())?;
            let count = order.len();
            self.told.push(format!("the best {count}, by model and by default, were timed against each other"));
            if settings.refine > Duration::ZERO && self.pool.any_measured() {
                let before = self.pool.len();
                let favourites = self.explore(settings.refine, DRAWN_BESIDE_MODEL)?;
                self.told.push(format!("{} neighbours of the best were timed", self.pool.len() - before));
                return self.finals(&order, favourites);
            }
            return self.nothing_ran_or(order);
        }
        self.told.push(format!(
            "there is no profile for this kernel on this device, so this input was tuned for {:.1} s",
            settings.budget.as_secs_f64()
        ));
        // Ahead of the default: neighbours of what is remembered are the first that are looked at.
        for known in [self.remembered, default].into_iter().flatten() {
            self.time(known)?;
        }
        let favourites = self.explore(settings.budget, DRAWN_SHARE)?;
        self.considered = self.pool.len() as u64;
        if self.pool.len() == 0 {
            return Err(nothing_legal(self.problem));
        }
        self.finals(&[], favourites)
    }

    pub(super) fn nothing_ran_or(&self, order: Vec<usize>) -> Result<Vec<usize>, RuntimeError> {
        if self.pool.any_measured() {
            return Ok(order);
        }
        let unknown = || Failure { kind: FailureKind::Launch, message: "nothing was timed".into() };
        Err(RuntimeError::NothingRuns {
            kernel: self.problem.kernel(),
            input: self.problem.input(),
            tried: self.pool.len() as u64,
            last: self.pool.last_failure().cloned().unwrap_or_else(unknown),
        })
    }

    /// Times candidates in interleaved rounds; their order, the winner first.
    pub(super) fn compare(&mut self, candidates: &[usize]) -> Result<Vec<usize>, RuntimeError> {
        let (paired, objective, clock) = (self.planner.settings.paired.clone(), self.objective(), self.clock);
        let points: Vec<Point> = candidates.iter().map(|at| self.pool.get(*at).point.clone()).collect();
        self.announce(&points);
        let found = compare(candidates.len(), &objective, &paired, clock, &mut |i| self.outcome(candidates[i]))?;
        for contender in &found {
            self.pool.get_mut(candidates[contender.index]).outcome = Some(contender.outcome.clone());
        }
        Ok(found.iter().map(|c| candidates[c.index]).collect())
    }

    /// How many points are best announced at once.
    pub(super) fn ahead(&self) -> usize {
        self.planner.measure.as_deref().map_or(1, |measure| measure.ahead()).max(1)
    }

    /// Lets the device prepare points that will be timed.
    pub(super) fn announce(&mut self, points: &[Point]) {
        if let Some(measure) = self.planner.measure.as_deref_mut().filter(|m| m.ahead() > 1) {
            measure.expect(self.problem, points);
        }
    }

    pub(super) fn time(&mut self, at: usize) -> Result<(), DeviceError> {
        let outcome = self.outcome(at)?;
        self.pool.get_mut(at).outcome = Some(outcome);
        Ok(())
    }

    /// Times one candidate once, cut off by the best so far.
    fn outcome(&mut self, at: usize) -> Result<Outcome, DeviceError> {
        let settings = &self.planner.settings;
        let objective = &settings.objective;
        let best = self.pool.iter().map(|c| c.cost(objective)).fold(f64::INFINITY, f64::min);
        // One disturbed run must not put what is remembered out of the contest.
        let limited = best.is_finite() && *objective == Objective::default() && self.remembered != Some(at);
        let cut_off = limited.then(|| Duration::from_secs_f64(best * settings.cut_off));
        let rough_beyond = limited.then(|| Duration::from_secs_f64(best * settings.rough));
        let policy = Timing { cut_off, rough_beyond, ..settings.timing.clone() };
        let Some(measure) = self.planner.measure.as_deref_mut() else {
            return Ok(Err(Failure { kind: FailureKind::Launch, message: "nothing to time it on".into() }));
        };
        let point: Point = self.pool.get(at).point.clone();
        let outcome = match measure.measure(self.problem, &point, &policy) {
            Ok(measurement) => Ok(measurement),
            Err(MeasureError::Failed(failure)) => Err(failure),
            Err(MeasureError::Device(error)) => return Err(error),
        };
        match &outcome {
            Ok(_) => self.stats.timed += 1,
            Err(_) => self.stats.failed += 1,
        }
        // So that the next one is cut off by it; the comparison replaces it by the median.
        self.pool.get_mut(at).outcome = Some(outcome.clone());
        Ok(outcome)
    }

    /// The first in order whose result is right, and its error; without an executor the first.
    fn verified(&mut self, order: &[usize]) -> Result<(usize, Option<f64>), RuntimeError> {
        let began = self.clock.now();
        let Some(executor) = self.planner.executor.as_deref_mut() else {
            self.told.push("there is nothing to run it on, so its result was not verified".into());
            let first = order.first().copied();
            return first.map(|at| (at, None)).ok_or_else(|| nothing_legal(self.problem));
        };
        let mut verifier = Verifier::new(self.planner.settings.verify.clone());
        let mut last = String::new();
        let runs = |at: &&usize| !matches!(self.pool.get(**at).outcome, Some(Err(_)));
        let tried: Vec<usize> = order.iter().filter(runs).copied().collect();
        for &at in &tried {
            let found = match verifier.check(executor, self.problem, &self.pool.get(at).point) {
                Ok(found) => found,
                Err(VerifyError::Device(error @ (DeviceError::Missing { .. } | DeviceError::Run(_)))) => {
                    return Err(error.into());
                }
                Err(error) => {
                    last = error.to_string();
                    self.pool.get_mut(at).mark_wrong(last.clone());
                    continue;
                }
            };
            let Some(complaint) = found.complaint() else {
                self.stats.verify_s = (self.clock.now() - began).as_secs_f64();
                return Ok((at, Some(found.max_rel_error())));
            };
            tracing::error!(kernel = %self.problem.kernel(), point = ?self.pool.get(at).point, %complaint, "wrong result");
            self.stats.wrong += 1;
            self.told.push(format!("a faster one was wrong and is out: {complaint}"));
            self.pool.get_mut(at).mark_wrong(complaint.clone());
            last = complaint;
        }
        let (kernel, input) = (self.problem.kernel(), self.problem.input());
        Err(RuntimeError::NothingRight { kernel, input, tried: tried.len() as u64, last })
    }

    fn answer(mut self, winner: usize, order: &[usize], default: Option<usize>, max_rel_error: Option<f64>) -> Planned {
        self.tell_gain(winner, default);
        if let Some(error) = max_rel_error {
            self.told.push(format!("its result was verified (largest error {error:.1e})"));
        }
        self.stats.seconds = self.clock.now().as_secs_f64();
        let considered = std::iter::once(winner).chain(order.iter().copied().filter(|at| *at != winner));
        let considered = considered.take(LISTED).map(|at| self.alternative(at)).collect();
        let chosen = self.alternative(winner);
        let reason = sentence(&self.told.join("; "));
        let considered_count = self.considered;
        let decision = Decision {
            chosen: chosen.clone(),
            considered,
            considered_count,
            reason: reason.clone(),
            model: self.model,
        };
        Planned {
            kernel: self.problem.kernel(),
            input: self.problem.input(),
            config: chosen.config,
            point: self.pool.get(winner).point.clone(),
            predicted_s: chosen.predicted_s,
            measured_s: chosen.measured_s,
            verified: max_rel_error.is_some(),
            max_rel_error,
            considered: self.considered,
            cached: false,
            looked_again: None,
            reason,
            decision,
            stats: self.stats,
        }
    }

    /// Where the winner stood with the model, and what it gains over the default.
    fn tell_gain(&mut self, winner: usize, default: Option<usize>) {
        let objective = self.objective();
        if let Some(expected) = self.pool.get(winner).predicted_s {
            let better = self.pool.iter().filter(|c| c.predicted_s.is_some_and(|s| s < expected)).count();
            self.told.push(format!("by model the choice was number {} of those timed", better + 1));
        }
        if let Some(remembered) = self.remembered {
            let (own, other) = (self.pool.get(winner).cost(&objective), self.pool.get(remembered).cost(&objective));
            if winner == remembered {
                self.told.push("the remembered configuration is still the best".into());
            } else if own.is_finite() && other.is_finite() {
                self.told.push(format!("it is {:.2} times as good as the remembered one", other / own));
            }
        }
        let Some(default) = default else { return };
        let (own, other) = (self.pool.get(winner).cost(&objective), self.pool.get(default).cost(&objective));
        if winner == default {
            self.told.push("the default won".into());
        } else if own.is_finite() && other.is_finite() {
            self.told.push(format!("it is {:.2} times as good as the default", other / own));
        }
    }

    fn alternative(&self, at: usize) -> Alternative {
        let candidate = self.pool.get(at);
        Alternative {
            config: self.problem.space().config(&candidate.point),
            predicted_s: candidate.predicted_s,
            measured_s: candidate.measurement().map(|m| m.time_s),
        }
    }
}

/// A capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| format!("{}{}.", first.to_uppercase(), chars.as_str()))
}
