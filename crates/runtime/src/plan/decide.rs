//! One decision, step by step.

mod finals;

use super::Planner;
use super::answer::{PlanStats, Planned, Searched};
use super::bench::Bench;
use super::settings::PlanSettings;
use super::ties::{self, Equals};
use crate::error::RuntimeError;
use crate::knowledge::{Knowledge, Shared, not_drawn};
use crate::nothing_legal::nothing_legal;
use crate::verify::{Verifier, VerifyError};
use std::time::{Duration, Instant};
use tilewright_core::decision::{Alternative, Decision};
use tilewright_core::measurement::{Failure, FailureKind, Outcome};
use tilewright_core::objective::Objective;
use tilewright_core::predictor::Coverage;
use tilewright_core::problem::Problem;
use tilewright_core::program::DeviceError;
use tilewright_core::space::Point;
use tilewright_core::text::counted;
use tilewright_core::timing::Clock;
use tilewright_sampler::DrawError;
use tilewright_search::drive::{Budget, DriveError, Limits, StoppedBy, Trace};
use tilewright_search::stop::Tail;
use tilewright_search::{Evaluator, Setup, Strategy, drive};

/// Alternatives that a decision lists.
pub(super) const LISTED: usize = 10;

/// Candidates that join them because the strategy expects most of them.
const FAVOURITES: usize = 12;

/// Nobody is to wait longer for a plan, unless a budget is asked for, than this many calls take: an empty product would be tuned
/// for seconds.
const WORTH_CALLS: f64 = 1e7;

/// Decides a problem; `again` says why the plan cache's answer was not enough, and `remembered` is that answer where it is still
/// legal.
pub(super) fn decide(
    planner: &mut Planner<'_>,
    problem: &dyn Problem,
    (clock, verifier): (&Instant, &mut Verifier),
    (again, remembered): (Option<String>, Option<Point>),
) -> Result<Planned, RuntimeError> {
    let Planner { measure, predictor, sampler, settings, .. } = planner;
    settings.check()?;
    let looked = (&settings.ranking, settings.top.max(1));
    let knowledge = Knowledge::ask(problem, *predictor, looked, &mut **sampler, settings.seed)?;
    let limits = Limits { cut_off: settings.cut_off, rough: settings.rough };
    let timing = (&settings.timing, limits);
    let live = match measure {
        Some(measure) => Some(Evaluator::new(problem, &mut **measure, &settings.objective, timing, clock)),
        None => None,
    };
    let mut deciding = Deciding {
        problem,
        clock,
        verifier,
        settings,
        knowledge: &knowledge,
        sampler: Shared::new(&mut **sampler),
        bench: Bench::new(live, &settings.objective),
        stats: PlanStats { search_s: knowledge.seconds, ..PlanStats::default() },
        searched: None,
        default: None,
        equals: None,
        considered: knowledge.considered,
        reasons: again.iter().cloned().collect(),
    };
    deciding.bench.model = knowledge.model().filter(|model| !model.is_costly);
    // First of all, so that ties go to it and little time is enough for it.
    deciding.bench.remembered = remembered.map(|point| deciding.bench.pool.add(point, None));
    let mut planned = Planned { looked_again: again, ..deciding.decide()? };
    if predictor.is_some_and(|p| !p.is_calibrated()) {
        // Its words rank, and are no times of this device.
        let Decision { chosen, considered, .. } = &mut planned.decision;
        considered.iter_mut().chain([chosen]).for_each(|alternative| alternative.predicted_s = None);
        planned.predicted_s = None;
    }
    Ok(planned)
}

/// One decision.
struct Deciding<'d> {
    problem: &'d dyn Problem,
    clock: &'d Instant,
    verifier: &'d mut Verifier,
    settings: &'d PlanSettings,
    knowledge: &'d Knowledge<'d>,
    sampler: Shared<'d>,
    bench: Bench<'d>,
    stats: PlanStats,
    /// How it was searched.
    searched: Option<Searched>,
    /// The configuration that runs before anything is tuned.
    default: Option<usize>,
    /// Those that the last comparison found equal to the best.
    equals: Option<Equals>,
    considered: u64,
    /// Sentences of the reason.
    reasons: Vec<String>,
}

impl Deciding<'_> {
    fn decide(mut self) -> Result<Planned, RuntimeError> {
        let is_modelled = self.knowledge.kind().is_some();
        self.reasons.extend(Some(self.settings.known.clone()).filter(|known| !known.is_empty()));
        if is_modelled {
            self.reasons.push(self.knowledge.reason.clone());
        }
        for (point, predicted_s) in &self.knowledge.starts {
            self.bench.pool.add(point.clone(), *predicted_s);
        }
        self.default = self.knowledge.default.clone().map(|p| self.bench.pool.add(p, None));
        let order = if self.bench.live.is_none() || self.settings.top == 0 {
            self.unmeasured(is_modelled)?
        } else {
            self.measured(is_modelled)?
        };
        let (winner, max_rel_error) = self.verified(&order)?;
        Ok(self.answer(winner, &order, max_rel_error))
    }

    /// The order of preference where nothing is timed: the model's, else the default alone.
    fn unmeasured(&mut self, is_modelled: bool) -> Result<Vec<usize>, RuntimeError> {
        if self.bench.pool.len() == 0 {
            let first = self.problem.space().first_legal().ok_or_else(|| nothing_legal(self.problem))?;
            self.bench.pool.add(first, None);
        }
        self.considered = self.considered.max(self.bench.pool.len() as u64);
        let (first, what) = match (self.bench.remembered, is_modelled) {
            (Some(remembered), _) => (Some(remembered), "the remembered configuration was kept"),
            (None, true) => self.foreseen(),
            (None, false) => (None, "the default was taken: there is no model"),
        };
        let mut order: Vec<usize> = (0..self.bench.pool.len()).collect();
        if let Some(first) = first {
            order.sort_by_key(|at| *at != first);
        }
        self.reasons.push(format!("{what}, nothing was timed"));
        Ok(order)
    }

    /// What runs by the model alone, and why; the first of all where it does not say.
    fn foreseen(&mut self) -> (Option<usize>, &'static str) {
        let Some(default) = self.default.filter(|_| self.settings.worth_leaving.is_finite()) else {
            return (None, "the model's first choice was taken");
        };
        let usual = self.settings.worth_leaving;
        let (worth_leaving, kept) = match self.knowledge.coverage() {
            Coverage::Full => (usual, "the default was kept: the model promises too little more"),
            // Networks that saw few inputs like this one err together more often: they have to promise as much twice over.
            Coverage::Sparse => {
                let kept =
                    "the default was kept: the model promises too little more, fitted on too few inputs like this one";
                (usual.min(usual * usual), kept)
            }
            Coverage::None => {
                return (Some(default), "the default was kept: the model was fitted on no input like this one");
            }
        };
        match self.knowledge.unanimous(worth_leaving) {
            None => (Some(default), kept),
            Some((point, is_first)) => {
                let predicted_s = self.knowledge.model().map(|model| model.cost(&point));
                let what = match is_first {
                    true => "the model's first choice was taken",
                    false => "the choice was taken that all of the model's networks expect to be ahead of the default",
                };
                (Some(self.bench.pool.add(point, predicted_s)), what)
            }
        }
    }

    /// The order of preference by measuring.
    fn measured(&mut self, is_modelled: bool) -> Result<Vec<usize>, RuntimeError> {
        if is_modelled {
            let order = self.compare(&(0..self.bench.pool.len()).collect::<Vec<_>>())?;
            let best = counted(order.len(), "candidate");
            self.reasons.push(format!("the best by model and by default, {best}, were timed against each other"));
            if self.settings.refine == Duration::ZERO || !self.bench.pool.any_measured() {
                return self.expect_any_ran(order);
            }
            let favourites = self.search(self.settings.refine)?;
            return self.finals(favourites);
        }
        self.reasons.push(format!(
            "there is no profile for this kernel on this device, so this input was tuned for up to {:.1} s",
            self.settings.budget.as_secs_f64()
        ));
        // Ahead of the default: neighbours of what is remembered are the first that are looked at.
        for known in [self.bench.remembered, self.default].into_iter().flatten() {
            self.bench.time(known).map(drop)?;
        }
        let favourites = self.search(self.settings.budget)?;
        self.considered = self.bench.pool.len() as u64;
        if self.bench.pool.len() == 0 {
            return Err(nothing_legal(self.problem));
        }
        self.finals(favourites)
    }

    /// Lets the strategy measure for a time; the points that it expects to be the best after all.
    fn search(&mut self, time: Duration) -> Result<Vec<Point>, RuntimeError> {
        let settings = self.settings;
        let (strategy, objective) = (&settings.strategy, &settings.objective);
        let mut setup = Setup { warm: settings.warm.clone(), ..self.knowledge.setup(objective, &self.sampler) };
        setup.tolerance = settings.tolerance.unwrap_or_default();
        let refused =
            |e: tilewright_search::TooLarge| RuntimeError::Setting { field: "strategy", message: e.to_string() };
        let mut search = strategy.make(&setup, settings.seed).map_err(refused)?;
        if !strategy.known().is_some_and(Strategy::is_uniform) {
            let known = self.bench.pool.iter().filter_map(|c| Some((c.point.clone(), c.outcome.clone()?)));
            search.tell(&known.collect::<Vec<(Point, Outcome)>>());
        }
        self.bench.begin();
        let bound = settings.tolerance.map(|tolerance| tolerance.alpha);
        let mut seconds = time.as_secs_f64();
        let best = self.bench.pool.best_cost(objective);
        if settings.asked.budget.is_none() && *objective == Objective::default() && best.is_finite() {
            seconds = seconds.min(best * WORTH_CALLS);
        }
        let budget = Budget { seconds: Some(seconds), bound, ..Budget::NONE };
        let trace = drive(&mut *search, strategy.name(), objective, &budget, &mut self.bench);
        let favourites = search.promising(FAVOURITES);
        drop((search, setup));
        self.searched(trace)?;
        Ok(favourites)
    }

    /// Notes how the search ended.
    fn searched(&mut self, trace: Result<Trace, DriveError>) -> Result<(), RuntimeError> {
        if let Some(error @ (DrawError::OtherSpace { .. } | DrawError::Uncounted(_))) = self.sampler.take_failure() {
            return Err(not_drawn(self.problem, error));
        }
        let name = self.settings.strategy.name().to_owned();
        let trace = match trace {
            Ok(trace) => trace,
            Err(DriveError::Device(error)) => return Err(error.into()),
            Err(error) if self.bench.pool.any_measured() => {
                self.reasons.push(format!("{error}, so the best of what else was timed was taken"));
                return Ok(());
            }
            Err(error) => return Err(RuntimeError::Strategy { name, message: error.to_string() }),
        };
        let epsilon = self.settings.tolerance.unwrap_or_default().epsilon;
        let ended = match (trace.stopped_by, trace.bound) {
            (StoppedBy::Bound, Some(bound)) => {
                format!(
                    "its bound: something more than {:.0}% better is left with probability {bound:.3}",
                    100.0 * epsilon
                )
            }
            (StoppedBy::Bound, None) => "its own rule".to_owned(),
            (StoppedBy::Time, _) => "the end of its time".to_owned(),
            (StoppedBy::Evaluations, _) => "the limit of evaluations".to_owned(),
            (StoppedBy::Exhausted, _) => "there being no other".to_owned(),
        };
        self.reasons.push(format!("strategy {name} timed {} more, ended by {ended}", trace.evaluations));
        let known = self.settings.strategy.known();
        self.reasons.extend(known.and_then(|strategy| strategy.caution(&Tail::default(), epsilon)));
        if trace.illegal > 0 {
            self.reasons.push(format!("it left out {} that were not legal", counted(trace.illegal, "proposal")));
        }
        let Trace { stopped_by, bound, evaluations, illegal, .. } = trace;
        self.searched = Some(Searched { strategy: name, stopped_by, epsilon, bound, evaluations, illegal });
        Ok(())
    }

    /// The order, unless nothing of it can run. What was only cut off was too slow for the time there was: then what stands first is
    /// taken without one.
    fn expect_any_ran(&mut self, order: Vec<usize>) -> Result<Vec<usize>, RuntimeError> {
        if self.bench.pool.any_measured() {
            return Ok(order);
        }
        let mut failures = self.bench.pool.iter().filter_map(|c| c.outcome.as_ref()?.as_ref().err()).peekable();
        if failures.peek().is_some() && failures.all(|failure| failure.kind == FailureKind::CutOff) {
            self.reasons.push("the time was too short to measure any, so the first was taken".into());
            return Ok(if order.is_empty() { (0..self.bench.pool.len()).collect() } else { order });
        }
        let unknown = || Failure { kind: FailureKind::Launch, message: "nothing was timed".into() };
        Err(RuntimeError::NothingRuns {
            kernel: self.problem.kernel(),
            input: self.problem.input(),
            tried: self.bench.pool.len() as u64,
            last: self.bench.pool.last_failure().cloned().unwrap_or_else(unknown),
        })
    }

    /// The first in order whose result is right, and its error; without a device the first.
    fn verified(&mut self, order: &[usize]) -> Result<(usize, Option<f64>), RuntimeError> {
        let began = self.clock.now();
        let Some(device) = self.bench.live.as_mut().and_then(Evaluator::device) else {
            self.reasons.push("there is nothing to run it on, so its result was not verified".into());
            let first = order.first().copied();
            return first.map(|at| (at, None)).ok_or_else(|| nothing_legal(self.problem));
        };
        let mut last = String::new();
        // One that was cut off is slow, or there was no time for it; it may be right.
        let failed = |f: &Failure| f.kind != FailureKind::CutOff;
        let runs = |at: &&usize| !matches!(&self.bench.pool.get(**at).outcome, Some(Err(f)) if failed(f));
        let tried: Vec<usize> = order.iter().filter(runs).copied().collect();
        for &at in &tried {
            let found = match self.verifier.check(device, self.problem, &self.bench.pool.get(at).point) {
                Ok(found) => found,
                Err(VerifyError::Device(error @ (DeviceError::Missing { .. } | DeviceError::Run(_)))) => {
                    return Err(error.into());
                }
                Err(error) => {
                    last = error.to_string();
                    self.bench.pool.get_mut(at).mark_wrong(last.clone());
                    continue;
                }
            };
            let Some(complaint) = found.complaint() else {
                self.stats.verify_s = (self.clock.now() - began).as_secs_f64();
                return Ok((at, Some(found.max_rel_error())));
            };
            tracing::error!(kernel = %self.problem.kernel(), point = ?self.bench.pool.get(at).point, %complaint, "wrong result");
            self.stats.wrong += 1;
            self.reasons.push(format!("a faster one was wrong and is out: {complaint}"));
            self.bench.pool.get_mut(at).mark_wrong(complaint.clone());
            last = complaint;
        }
        let (kernel, input) = (self.problem.kernel(), self.problem.input());
        Err(RuntimeError::NothingRight { kernel, input, tried: tried.len() as u64, last })
    }

    fn answer(mut self, winner: usize, order: &[usize], max_rel_error: Option<f64>) -> Planned {
        let tie = self.equals.take().and_then(|equals| self.preference().tie(equals, winner));
        self.reasons.extend(tie.as_ref().and_then(|tie| ties::told(tie, "configurations")));
        self.tell_gain(winner);
        // A costly model is not asked about all that is timed, but one word more, of what is answered, is worth its price.
        if let Some(model) = self.knowledge.model() {
            let chosen = self.bench.pool.get_mut(winner);
            chosen.predicted_s =
                chosen.predicted_s.or_else(|| Some(model.cost(&chosen.point)).filter(|s| s.is_finite()));
        }
        if let Some(error) = max_rel_error {
            self.reasons.push(format!("its result was verified (largest error {error:.1e})"));
        }
        (self.stats.timed, self.stats.failed) = (self.bench.timed, self.bench.failed);
        self.stats.configs = self.bench.pool.tried();
        // A search goes on to neighbours of what the model was asked about.
        self.considered = self.considered.max(self.bench.pool.len() as u64);
        self.stats.seconds = self.clock.now().as_secs_f64();
        let considered = std::iter::once(winner).chain(order.iter().copied().filter(|at| *at != winner));
        let considered = considered.take(LISTED).map(|at| self.alternative(at)).collect();
        let chosen = self.alternative(winner);
        let reason = sentence(&self.reasons.join("; "));
        let model = self.knowledge.kind().map(str::to_owned);
        let decision = Decision {
            considered,
            knowledge: self.settings.knowledge.unwrap_or(known_as(model.as_deref())).to_owned(),
            model,
            tie,
            ..Decision::of(chosen.clone(), self.considered, reason.clone())
        };
        Planned {
            kernel: self.problem.kernel(),
            input: self.problem.input(),
            config: chosen.config,
            point: self.bench.pool.get(winner).point.clone(),
            predicted_s: chosen.predicted_s,
            measured_s: chosen.measured_s,
            verified: max_rel_error.is_some(),
            max_rel_error,
            considered: self.considered,
            cached: false,
            looked_again: None,
            searched: self.searched,
            reason,
            decision,
            unstored: None,
            damaged: Vec::new(),
            stats: self.stats,
        }
    }

    /// Where the winner stood with the model, and what it gains over the default.
    fn tell_gain(&mut self, winner: usize) {
        let objective = self.settings.objective.clone();
        if let Some(expected) = self.bench.pool.get(winner).predicted_s {
            let better = self.bench.pool.iter().filter(|c| c.predicted_s.is_some_and(|s| s < expected)).count();
            self.reasons.push(format!("by model the choice was number {} of those timed", better + 1));
        }
        if let Some(remembered) = self.bench.remembered {
            let (own, other) =
                (self.bench.pool.get(winner).cost(&objective), self.bench.pool.get(remembered).cost(&objective));
            if winner == remembered {
                self.reasons.push("the remembered configuration is still the best".into());
            } else if own.is_finite() && other.is_finite() {
                self.reasons.push(format!("it is {:.2} times as good as the remembered one", other / own));
            }
        }
        let Some(default) = self.default else { return };
        let (own, other) =
            (self.bench.pool.get(winner).cost(&objective), self.bench.pool.get(default).cost(&objective));
        if winner == default {
            self.reasons.push("the default won".into());
        } else if own.is_finite() && other.is_finite() {
            self.reasons.push(format!("it is {:.2} times as good as the default", other / own));
        }
    }

    fn alternative(&self, at: usize) -> Alternative {
        let candidate = self.bench.pool.get(at);
        Alternative {
            kernel: self.problem.kernel(),
            config: self.problem.space().config(&candidate.point),
            predicted_s: candidate.predicted_s,
            measured_s: candidate.measurement().map(|m| m.time_s),
        }
    }
}

/// What a model of this kind came from, as far as the kind says.
fn known_as(model: Option<&str>) -> &'static str {
    match model {
        None => "default",
        Some("linear") => "linear",
        Some(_) => "profile",
    }
}

/// A capital letter and a full stop.
pub(super) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| format!("{}{}.", first.to_uppercase(), chars.as_str()))
}
