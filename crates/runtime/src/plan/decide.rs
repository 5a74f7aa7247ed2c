//! One decision, step by step.

use super::Planner;
use super::answer::{PlanStats, Planned};
use super::nearby::Nearby;
use super::pool::Pool;
use super::spread::{RANKED_PER_TIMED, spread};
use crate::error::RuntimeError;
use crate::nothing_legal::nothing_legal;
use crate::paired::compare;
use crate::timing::{Clock, HostClock};
use crate::verify::{Verifier, VerifyError};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;
use tilewright_core::decision::{Alternative, Decision};
use tilewright_core::measurement::{Failure, FailureKind, Outcome, Timing};
use tilewright_core::objective::Objective;
use tilewright_core::problem::{MeasureError, Problem};
use tilewright_core::program::DeviceError;
use tilewright_core::search::Search;
use tilewright_core::space::Point;
use tilewright_sampler::DrawError;
use tilewright_search::strategy::Local;
use tilewright_search::{Options, exhaustive};

/// Alternatives that a decision lists.
const LISTED: usize = 10;

/// Candidates that are compared with each other after looking around.
const FINALISTS: usize = 10;

/// Without a model: configurations that are drawn before any neighbourhood is looked at.
const DRAWN_FIRST: usize = 16;

/// Without a model: the share that is drawn after that.
const DRAWN_SHARE: f64 = 0.4;

/// Candidates between two looks at how slow the machine is.
const LEVEL_EVERY: u32 = 8;

/// With a model: the share of neighbours that it chooses.
const ADVISED: f64 = 0.7;

/// A machine this many times as slow as before is slow.
const SLOW: f64 = 1.03;

/// Known points in a row after which the space counts as seen.
const MISSES: u32 = 500;

pub(super) struct Deciding<'d, 'a> {
    planner: &'d mut Planner<'a>,
    problem: &'d dyn Problem,
    clock: &'d HostClock,
    pool: Pool,
    stats: PlanStats,
    considered: u64,
    /// Sentences of the reason.
    told: Vec<String>,
}

impl<'d, 'a> Deciding<'d, 'a> {
    pub(super) fn new(planner: &'d mut Planner<'a>, problem: &'d dyn Problem, clock: &'d HostClock) -> Self {
        let (pool, stats) = (Pool::default(), PlanStats::default());
        Self { planner, problem, clock, pool, stats, considered: 0, told: Vec::new() }
    }

    fn objective(&self) -> Objective {
        self.planner.settings.objective.clone()
    }

    pub(super) fn decide(mut self, stale: Option<String>) -> Result<Planned, RuntimeError> {
        self.told.extend(stale);
        let modelled = self.ask_model()?;
        let default = self.problem.default_point().filter(|p| self.problem.space().is_legal(p));
        let default = default.map(|p| self.pool.add(p, None));
        let order = if self.planner.measure.is_none() || (modelled && self.planner.settings.top == 0) {
            self.unmeasured(modelled)?
        } else {
            self.measured(modelled, default)?
        };
        let (winner, max_rel_error) = self.verified(&order)?;
        Ok(self.answer(winner, &order, default, max_rel_error))
    }

    /// Fills the pool with the model's best; whether there is a model.
    fn ask_model(&mut self) -> Result<bool, RuntimeError> {
        let Some(predictor) = self.planner.predictor else { return Ok(false) };
        let scorer = predictor.bind(self.problem)?;
        let top = self.planner.settings.top.max(1);
        let found = exhaustive(self.problem, &*scorer, &Options::top(top.saturating_mul(RANKED_PER_TIMED)));
        let legal = found.statistics.legal;
        self.stats.search_s = found.statistics.seconds;
        self.considered = legal;
        if found.ranked.points.is_empty() {
            return Err(nothing_legal(self.problem));
        }
        let seconds = found.statistics.seconds;
        self.told.push(format!("the model was searched over {legal} legal configurations in {seconds:.2} s"));
        for (point, predicted_s) in spread(found.ranked.points, top) {
            self.pool.add(point, Some(predicted_s));
        }
        Ok(true)
    }

    /// The order of preference where nothing is timed: the model's, else the default alone.
    fn unmeasured(&mut self, modelled: bool) -> Result<Vec<usize>, RuntimeError> {
        if self.pool.len() == 0 {
            let first = self.problem.space().first_legal().ok_or_else(|| nothing_legal(self.problem))?;
            self.pool.add(first, None);
        }
        self.considered = self.considered.max(self.pool.len() as u64);
        let what =
            if modelled { "the model's first choice was taken" } else { "the default was taken: there is no model" };
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
                self.explore(settings.refine, 0.0)?;
                self.told.push(format!("{} neighbours of the best were timed", self.pool.len() - before));
                return self.finals(&order);
            }
            return self.nothing_ran_or(order);
        }
        self.told.push(format!(
            "there is no profile for this kernel on this device, so this input was tuned for {:.1} s",
            settings.budget.as_secs_f64()
        ));
        if let Some(default) = default {
            self.time(default, 1.0)?;
        }
        self.explore(settings.budget, DRAWN_SHARE)?;
        self.considered = self.pool.len() as u64;
        if self.pool.len() == 0 {
            return Err(nothing_legal(self.problem));
        }
        self.finals(&[])
    }

    /// Times neighbours of the best so far, and a share of `drawn` ones, until the time is over or nothing new is found.
    fn explore(&mut self, time: Duration, drawn: f64) -> Result<(), RuntimeError> {
        let seed = self.planner.settings.seed;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut local = Local::new(self.problem.space(), self.objective(), Vec::new(), seed);
        let known = self.pool.iter().filter_map(|c| Some((c.point.clone(), c.outcome.clone()?)));
        local.tell(&known.collect::<Vec<_>>());
        let end = self.clock.now() + time;
        let nearby = match self.planner.predictor {
            Some(predictor) => Some(Nearby::new(self.problem, predictor.bind(self.problem)?)),
            None => None,
        };
        let (mut misses, mut known, mut level) = (0, 1u32, 1.0);
        while self.clock.now() < end && misses < MISSES {
            let few = self.pool.len() < DRAWN_FIRST && drawn > 0.0;
            let advised = nearby.as_ref().filter(|_| rng.random::<f64>() < ADVISED);
            let point = if few || rng.random::<f64>() < drawn {
                self.draw(&mut rng)?
            } else if let Some(nearby) = advised {
                nearby.propose(&self.pool, &self.objective(), &mut rng)
            } else {
                local.ask(1).pop()
            };
            // One of the two may have run dry before the other: a neighbourhood that is known leaves time for new ones.
            let point = match point {
                Some(point) => Some(point),
                None => local.ask(1).pop().map_or_else(|| self.draw(&mut rng), |point| Ok(Some(point)))?,
            };
            let Some(point) = point else { break };
            if self.pool.contains(&point) {
                misses += 1;
                continue;
            }
            misses = 0;
            if known.is_multiple_of(LEVEL_EVERY) {
                level = self.level()?;
            }
            known += 1;
            let at = self.pool.add(point, None);
            self.time(at, level)?;
            let candidate = self.pool.get(at);
            local
                .tell(&candidate.outcome.clone().map(|o| (candidate.point.clone(), o)).into_iter().collect::<Vec<_>>());
        }
        Ok(())
    }

    /// A drawn point; None if none was found.
    fn draw(&mut self, rng: &mut ChaCha8Rng) -> Result<Option<Point>, RuntimeError> {
        match self.planner.sampler.draw(self.problem.space(), rng) {
            Ok(draw) => Ok(Some(draw.point)),
            Err(DrawError::Exhausted { .. }) => Ok(None),
            Err(e @ DrawError::OtherSpace { .. }) => {
                Err(RuntimeError::Setting { field: "sampler", message: e.to_string() })
            }
        }
    }

    /// Times the best few of everything against each other; `preferred` breaks ties.
    fn finals(&mut self, preferred: &[usize]) -> Result<Vec<usize>, RuntimeError> {
        let objective = self.objective();
        let mut finalists: Vec<usize> = self.pool.by_cost(&objective);
        finalists.retain(|&at| self.pool.get(at).measurement().is_some());
        let rest = finalists.split_off(finalists.len().min(FINALISTS));
        // Ties go to what the model ranked, then to what was found first.
        finalists.sort_by_key(|at| (preferred.iter().position(|p| p == at).unwrap_or(usize::MAX), *at));
        let mut order = if finalists.len() > 1 { self.compare(&finalists)? } else { finalists };
        order.extend(rest);
        self.nothing_ran_or(order)
    }

    fn nothing_ran_or(&self, order: Vec<usize>) -> Result<Vec<usize>, RuntimeError> {
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
    fn compare(&mut self, candidates: &[usize]) -> Result<Vec<usize>, RuntimeError> {
        let (paired, objective, clock) = (self.planner.settings.paired.clone(), self.objective(), self.clock);
        let found = compare(candidates.len(), &objective, &paired, clock, &mut |i| self.outcome(candidates[i], 1.0))?;
        for contender in &found {
            self.pool.get_mut(candidates[contender.index]).outcome = Some(contender.outcome.clone());
        }
        Ok(found.iter().map(|c| candidates[c.index]).collect())
    }

    /// Times a candidate while the machine is `level` times as slow as when the best so far was timed. One that may be better
    /// nevertheless meets the best again, and gets the cost that it would have had then.
    fn time(&mut self, at: usize, level: f64) -> Result<(), DeviceError> {
        let objective = self.objective();
        let best = self.pool.by_cost(&objective).first().map(|&best| (best, self.pool.get(best).cost(&objective)));
        let mut outcome = self.outcome(at, level)?;
        if let (Ok(first), Some((best, cost))) = (&mut outcome, best)
            && level > SLOW
            && first.time_s > cost
            && first.time_s < cost * level
        {
            let (_, incumbent) = self.again(best)?;
            let (_, again) = self.again(at)?;
            first.time_s = cost * first.time_s.min(again) / incumbent.min(cost * level);
        }
        self.pool.get_mut(at).outcome = Some(outcome);
        Ok(())
    }

    /// How many times as slow as before the best so far runs now: machines that others use too have slow minutes, in which
    /// nothing new would ever look better. 1 if that cannot be told.
    fn level(&mut self) -> Result<f64, DeviceError> {
        let objective = self.objective();
        let best = self.pool.by_cost(&objective).first().copied();
        let Some(best) = best.filter(|_| objective == Objective::default()) else { return Ok(1.0) };
        let (before, now) = self.again(best)?;
        Ok(if before.is_finite() && now.is_finite() { (now / before).max(1.0) } else { 1.0 })
    }

    /// Times a candidate once more: what it took before, and now. The lower of the two stays: it is nearer to what it can do.
    fn again(&mut self, at: usize) -> Result<(f64, f64), DeviceError> {
        let before = self.pool.get(at).outcome.clone();
        let now = self.outcome(at, f64::INFINITY)?;
        let time = |outcome: &Outcome| outcome.as_ref().map_or(f64::INFINITY, |m| m.time_s);
        let (was, is) = (before.as_ref().map_or(f64::INFINITY, time), time(&now));
        self.pool.get_mut(at).outcome = before.filter(|_| was <= is).or(Some(now));
        Ok((was, is))
    }

    /// Times one candidate once, cut off by the best so far on a machine `level` times as slow as then.
    fn outcome(&mut self, at: usize, level: f64) -> Result<Outcome, DeviceError> {
        let settings = &self.planner.settings;
        let objective = &settings.objective;
        let best = level * self.pool.iter().map(|c| c.cost(objective)).fold(f64::INFINITY, f64::min);
        let limited = best.is_finite() && *objective == Objective::default();
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
        let decision =
            Decision { chosen: chosen.clone(), considered, considered_count: self.considered, reason: reason.clone() };
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
            reason,
            decision,
            stats: self.stats,
        }
    }

    /// Where the winner stood with the model, and what it gains over the default.
    fn tell_gain(&mut self, winner: usize, default: Option<usize>) {
        let objective = self.objective();
        if self.pool.get(winner).predicted_s.is_some() {
            self.told.push(format!("by model the choice was number {} of those timed", winner + 1));
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
