//! Strategies tried against each other on a live device.

use crate::error::RuntimeError;
use crate::knowledge::{Knowledge, Shared, not_drawn};
use crate::paired::{PairedSettings, compare};
use crate::plan::PlanSettings;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilewright_core::measurement::{Failure, FailureKind, Outcome};
use tilewright_core::objective::Objective;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{Measure, Problem};
use tilewright_core::space::Point;
use tilewright_core::timing::Clock;
use tilewright_sampler::{DrawError, Sampler};
use tilewright_search::drive::{Budget, DriveError, Evaluate, Limits, Refused, Step, Trace};
use tilewright_search::stop::Tail;
use tilewright_search::{Choice, Evaluator, Setup, drive};

/// The best points of a search that the closing comparison chooses its answer from: a single time names the luckiest. A plan does so
/// with more.
const FINALISTS: usize = 8;

/// Time of the closing comparison.
const COMPARISON: Duration = Duration::from_secs(60);

/// What strategies are tried on.
pub struct Trial<'a> {
    /// The problem.
    pub problem: &'a dyn Problem,
    /// Times configurations.
    pub measure: &'a mut dyn Measure,
    /// What predicts; none where nothing is known.
    pub predictor: Option<&'a dyn Predictor>,
    /// Draws configurations.
    pub sampler: &'a mut dyn Sampler,
    /// How is measured, ranked and optimised, from which seed on, and what is known from elsewhere.
    pub settings: PlanSettings,
    /// For the learned stopping rule.
    pub tail: Arc<Tail>,
}

/// One strategy's searches.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// One for each repeat, by seed. Costs are those of the closing comparison, so that they compare with each other and with
    /// [`Report::best`]; there is a step for each budget that was asked for and for the end.
    pub traces: Vec<Trace>,
    /// Seconds in all.
    pub seconds: f64,
}

/// How strategies did.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// By strategy, in the order that they were given in.
    pub tried: Vec<Tried>,
    /// The best of all that was found: it stands for the optimum, which nobody knows.
    pub best: (Point, f64),
    /// The predictor's kind, and what was asked of it; empty without one.
    pub knowledge: Option<(String, String)>,
}

impl Trial<'_> {
    /// Searches with each strategy, `repeats` times with different seeds, then times the best few of each search after each of `at`
    /// evaluations, and at its end, against each other; a search answers with the best of its own.
    ///
    /// # Errors
    /// A model of another schema, nothing legal or nothing that runs, a strategy that needs a smaller space or proposes nothing
    /// legal, a device that fails.
    pub fn run(
        &mut self,
        strategies: &[(Choice, Budget)],
        (repeats, at): (u32, &[u64]),
        progress: &mut dyn FnMut(&str, u32, &Trace),
    ) -> Result<Report, RuntimeError> {
        let Self { problem, measure, predictor, sampler, settings, tail } = self;
        let (problem, settings, clock) = (*problem, &*settings, Instant::now());
        let looked = (&settings.ranking, settings.top.max(1));
        let knowledge = Knowledge::ask(problem, *predictor, looked, &mut **sampler, settings.seed)?;
        let source = Shared::new(&mut **sampler);
        let mut setup = Setup { warm: settings.warm.clone(), ..knowledge.setup(&settings.objective, &source) };
        (setup.tail, setup.tolerance) = (tail.clone(), settings.tolerance.unwrap_or_default());
        let limits = Limits { cut_off: settings.cut_off, rough: settings.rough };
        let mut searches: Vec<Vec<Found>> = Vec::new();
        let mut seconds = Vec::new();
        for (choice, budget) in strategies {
            let began = clock.now();
            let mut found = Vec::new();
            for repeat in 0..repeats {
                let seed = settings.seed.wrapping_add(u64::from(repeat));
                let refused = |e: tilewright_search::TooLarge| setting("strategy", &format!("{}: {e}", choice.name()));
                let mut search = choice.make(&setup, seed).map_err(refused)?;
                let timing = (&settings.timing, limits);
                let live = Evaluator::new(problem, &mut **measure, &settings.objective, timing, &clock);
                let mut noted = Noted { live, objective: &settings.objective, measured: Vec::new() };
                let trace = drive(&mut *search, choice.name(), &settings.objective, budget, &mut noted);
                if let Some(error @ (DrawError::OtherSpace { .. } | DrawError::Uncounted(_))) = source.take_failure() {
                    return Err(not_drawn(problem, error));
                }
                let trace = trace.map_err(failed)?;
                progress(choice.name(), repeat, &trace);
                found.push(Found::new(trace, &noted.measured, at));
            }
            seconds.push((clock.now() - began).as_secs_f64());
            searches.push(found);
        }
        let costs = contest(problem, &mut **measure, settings, searches.iter().flatten(), &clock)?;
        let best = costs.iter().min_by(|a, b| a.1.total_cmp(b.1).then_with(|| a.0.cmp(b.0)));
        let Some((point, cost)) = best else { return Err(crate::nothing_legal::nothing_legal(problem)) };
        let tried = searches.into_iter().zip(seconds).map(|(found, seconds)| {
            let traces = found.into_iter().map(|f| f.timed_again(&costs)).collect();
            Tried { traces, seconds }
        });
        let knowledge = knowledge.kind().map(|kind| (kind.to_owned(), knowledge.reason.clone()));
        Ok(Report { tried: tried.collect(), best: (point.clone(), *cost), knowledge })
    }
}

fn setting(field: &'static str, message: &str) -> RuntimeError {
    RuntimeError::Setting { field, message: message.to_owned() }
}

fn failed(error: DriveError) -> RuntimeError {
    match error {
        DriveError::Device(error) => error.into(),
        DriveError::OnlyIllegal { ref strategy, .. } => {
            RuntimeError::Strategy { name: strategy.clone(), message: error.to_string() }
        }
    }
}

/// Measures, and keeps what came of it in order, with infinite costs for failures.
struct Noted<'a> {
    live: Evaluator<'a>,
    objective: &'a Objective,
    measured: Vec<(Point, f64)>,
}

impl Evaluate for Noted<'_> {
    fn ahead(&self) -> usize {
        self.live.ahead()
    }

    fn expect(&mut self, points: &[Point]) {
        self.live.expect(points);
    }

    fn abandon(&mut self) {
        self.live.abandon();
    }

    fn evaluate(&mut self, point: &Point) -> Result<Outcome, Refused> {
        let outcome = self.live.evaluate(point)?;
        let cost = outcome.as_ref().ok().and_then(|m| self.objective.cost(m));
        self.measured.push((point.clone(), cost.unwrap_or(f64::INFINITY)));
        Ok(outcome)
    }

    fn seconds(&self) -> f64 {
        self.live.seconds()
    }
}

/// One search, with the points that its answers are chosen from.
struct Found {
    trace: Trace,
    /// After so many evaluations, the best points by then.
    answers: Vec<(Step, Vec<Point>)>,
}

impl Found {
    fn new(trace: Trace, measured: &[(Point, f64)], at: &[u64]) -> Self {
        let end = measured.len() as u64;
        let mut evaluations: Vec<u64> = at.iter().map(|n| (*n).min(end)).chain([end]).collect();
        evaluations.sort_unstable();
        evaluations.dedup();
        let answer = |n: u64| {
            let step = *trace.steps.iter().rev().find(|step| step.evaluations <= n)?;
            let mut best: Vec<&(Point, f64)> = measured[..n as usize].iter().filter(|(_, c)| c.is_finite()).collect();
            best.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
            let best = best.into_iter().take(FINALISTS).map(|(point, _)| point.clone());
            Some((Step { evaluations: n, ..step }, best.collect()))
        };
        Self { answers: evaluations.into_iter().filter_map(answer).collect(), trace }
    }

    /// The trace with the costs of the closing comparison; answers that failed in it are left out.
    fn timed_again(self, costs: &HashMap<Point, f64>) -> Trace {
        let again = |(step, points): (Step, Vec<Point>)| {
            let cost = points.iter().filter_map(|point| costs.get(point)).copied().min_by(f64::total_cmp);
            cost.map(|cost| Step { cost, ..step })
        };
        Trace { steps: self.answers.into_iter().filter_map(again).collect(), ..self.trace }
    }
}

/// The costs of all answers, timed in interleaved rounds.
fn contest<'f>(
    problem: &dyn Problem,
    measure: &mut dyn Measure,
    settings: &PlanSettings,
    searches: impl Iterator<Item = &'f Found>,
    clock: &Instant,
) -> Result<HashMap<Point, f64>, RuntimeError> {
    let mut points: Vec<Point> =
        searches.flat_map(|found| found.answers.iter().flat_map(|(_, points)| points.clone())).collect();
    points.sort();
    points.dedup();
    if measure.ahead() > 1 {
        measure.expect(problem, &points);
    }
    // Nothing is cut off, and nothing is measured roughly: all of them were good once.
    let limits = Limits { cut_off: f64::INFINITY, rough: f64::INFINITY };
    let mut live = Evaluator::new(problem, measure, &settings.objective, (&settings.timing, limits), clock);
    // What each costs is asked for, not which of them wins.
    let paired = PairedSettings { max_time: COMPARISON, most_rounds: 0, ..settings.paired.clone() };
    let found = compare(points.len(), &settings.objective, &paired, clock, &mut |i| live.time(&points[i]));
    live.abandon();
    let found = found?;
    let mut last = Failure { kind: FailureKind::Launch, message: "nothing was timed".into() };
    let mut costs = HashMap::new();
    for contender in found.contenders {
        match contender.outcome {
            Ok(_) => drop(costs.insert(points[contender.index].clone(), contender.cost)),
            Err(failure) => last = failure,
        }
    }
    if costs.is_empty() {
        let (kernel, input, tried) = (problem.kernel(), problem.input(), points.len() as u64);
        return Err(RuntimeError::NothingRuns { kernel, input, tried, last });
    }
    Ok(costs)
}
