//! Strategies of the catalogue and of one's own, live on the toy kernel.

use crate::support::{device, kernel, words};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use tilewright_core::device::DeviceSpec;
use tilewright_core::measurement::{Measurement, Outcome, Timing};
use tilewright_core::objective::Objective;
use tilewright_core::problem::{AnyKernel, Measure, MeasureError, Problem};
use tilewright_core::search::{Ranked, Search};
use tilewright_core::space::Point;
use tilewright_core::timing::Clock;
use tilewright_runtime::RuntimeError;
use tilewright_runtime::plan::{Asked, PlanSettings, Planned, Planner};
use tilewright_runtime::plan_cache::PlanCache;
use tilewright_runtime::trial::Trial;
use tilewright_sampler::Uniform;
use tilewright_search::drive::{Budget, Evaluate, Limits, Recorded, StoppedBy};
use tilewright_search::stop::{Tail, Tolerance};
use tilewright_search::{Choice, Evaluator, Setup, Strategy, drive};
use tilewright_testkit::toy::{self, AnalyticMeasure};

const INPUT: &str = "n=10000";

fn problem() -> Box<dyn Problem> {
    kernel().problem(&device(), &words(INPUT)).unwrap()
}

/// Everything told to a search that proposes nothing of its own: the whole space from its end.
struct Backwards {
    points: Vec<Point>,
    told: Vec<(Point, f64)>,
}

impl Backwards {
    fn new(setup: &Setup<'_>) -> Self {
        let mut points = Vec::new();
        setup.space.for_each_legal(|point| {
            points.push(Point::from(point));
            true
        });
        Self { points, told: Vec::new() }
    }
}

impl Search for Backwards {
    fn ask(&mut self, n: usize) -> Vec<Point> {
        let left = self.points.len().saturating_sub(n);
        self.points.drain(left..).rev().collect()
    }

    fn tell(&mut self, seen: &[(Point, Outcome)]) {
        self.told.extend(seen.iter().filter_map(|(p, o)| Some((p.clone(), o.as_ref().ok()?.time_s))));
    }

    fn best(&self) -> Ranked {
        let best = self.told.iter().min_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
        Ranked { points: best.cloned().into_iter().collect(), considered: self.told.len() as u64 }
    }
}

/// Proposes one illegal point again and again.
struct Stubborn;

impl Search for Stubborn {
    fn ask(&mut self, n: usize) -> Vec<Point> {
        vec![Point(vec![4, 4, 0, 0, 0]); n]
    }

    fn tell(&mut self, _: &[(Point, Outcome)]) {}

    fn best(&self) -> Ranked {
        Ranked::default()
    }
}

fn plan(settings: PlanSettings, runs: bool, cache: Option<&PlanCache>) -> Result<Planned, RuntimeError> {
    let (kernel, device) = (kernel(), device());
    let mut measure = AnalyticMeasure::new(device.clone()).checked_on(toy::host_device());
    if !runs {
        measure = measure.failing(|_| true);
    }
    Planner {
        kernel: &kernel,
        device: &device,
        measure: Some(&mut measure),
        predictor: None,
        sampler: &mut Uniform::new(100_000),
        cache,
        settings,
    }
    .plan(&words(INPUT))
}

fn settings(strategy: Choice) -> PlanSettings {
    PlanSettings { strategy, budget: Duration::from_secs(60), ..PlanSettings::default() }
}

#[test]
fn a_strategy_of_ones_own_plans() {
    let own = Choice::own("backwards", |setup, _| Box::new(Backwards::new(setup)));
    let planned = plan(settings(own), true, None).unwrap();
    let (best, seconds) = toy::optimum(&*problem()).unwrap();
    let best = problem().space().config(&best);
    let tie = planned.decision.tie.unwrap();
    assert!(tie.members.iter().any(|m| (&m.config, m.measured_s) == (&best, Some(seconds))), "{tie:?}");
    assert!(planned.measured_s.unwrap() <= seconds * (1.0 + tie.within), "{tie:?}");
    let searched = planned.searched.unwrap();
    assert_eq!((searched.strategy.as_str(), searched.stopped_by), ("backwards", StoppedBy::Exhausted));
    assert_eq!((searched.evaluations, searched.bound), (problem().space().count_legal(), None));
    assert!(planned.reason.contains("strategy backwards"), "{}", planned.reason);
}

#[test]
fn a_strategy_that_proposes_nothing_legal_is_named_and_the_next_best_is_taken() {
    let stubborn = || settings(Choice::own("stubborn", |_, _| Box::new(Stubborn)));
    let planned = plan(stubborn(), true, None).unwrap();
    assert_eq!(Some(planned.point), problem().default_point());
    assert!(planned.searched.is_none());
    let said = ["\"stubborn\" only proposes illegal points", "rule \"registers\"", "was taken"];
    assert!(said.iter().all(|part| planned.reason.contains(part)), "{}", planned.reason);
    let error = plan(stubborn(), false, None).unwrap_err();
    assert_eq!((error.kind(), error.field().as_deref()), ("strategy", Some("strategy")));
    assert!(error.to_string().contains("stubborn"), "{error}");
}

#[test]
fn a_promise_ends_a_plan_is_remembered_and_asked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    let cache = PlanCache::new(dir.path());
    let strict = |strategy: Strategy, alpha| {
        let tolerance = Some(Tolerance { epsilon: 0.05, alpha });
        let asked = Asked { strategy: Some(strategy.name().into()), tolerance, ..Asked::default() };
        plan(PlanSettings { tolerance, asked, ..settings(strategy.into()) }, true, Some(&cache))
    };
    let first = strict(Strategy::EarlyStopConservative, 0.5).unwrap();
    let searched = first.searched.unwrap();
    assert_eq!((searched.stopped_by, searched.epsilon), (StoppedBy::Bound, 0.05));
    assert!(searched.bound.unwrap() <= 0.5 && first.reason.contains("ended by its bound"), "{}", first.reason);
    let again = strict(Strategy::EarlyStopConservative, 0.5).unwrap();
    assert!(again.cached && again.searched.as_ref() == Some(&searched), "{again:?}");
    let stricter = strict(Strategy::EarlyStopConservative, 0.3).unwrap();
    assert!(!stricter.cached && stricter.looked_again.unwrap().contains("alpha of 0.3"));
    let error = strict(Strategy::Refine, 0.3).unwrap_err();
    assert_eq!(error.field().as_deref(), Some("epsilon"));
    assert!(error.to_string().contains("early-stop") && error.to_string().contains("refine"), "{error}");
}

/// Time does not pass.
struct Still;

impl Clock for Still {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn a_live_device_and_its_recording_are_searched_alike() {
    let problem = problem();
    let objective = Objective::default();
    let timing = Timing::default();
    // Nothing is cut off, so that the device says what a recording says.
    let limits = Limits { cut_off: f64::INFINITY, rough: f64::INFINITY };
    let clock = Still;
    for strategy in Strategy::ALL {
        let setup = Setup::new(problem.space());
        let budget = Budget::evaluations(60);
        let mut measure = AnalyticMeasure::new(device());
        let mut live = Evaluator::new(&*problem, &mut measure, &objective, (&timing, limits), &clock);
        let lived = drive(&mut *strategy.make(&setup, 5).unwrap(), strategy.name(), &objective, &budget, &mut live);
        let look_up = |p: &Point| Some((Ok(Measurement::recorded(toy::cost_s(&*problem, p))), 0.0));
        let mut recorded = Recorded::new(measure.ahead(), look_up);
        let replayed =
            drive(&mut *strategy.make(&setup, 5).unwrap(), strategy.name(), &objective, &budget, &mut recorded);
        assert_eq!(lived, replayed, "{strategy}");
    }
}

#[test]
fn strategies_are_tried_against_each_other() {
    let problem = problem();
    let mut measure = AnalyticMeasure::new(device());
    let mut trial = Trial {
        problem: &*problem,
        measure: &mut measure,
        predictor: None,
        sampler: &mut Uniform::new(100_000),
        settings: PlanSettings::default(),
        tail: Arc::new(Tail::default()),
    };
    let strategies = [Strategy::Exhaustive, Strategy::Random, Strategy::Refine];
    let asked = strategies.map(|s| (s.into(), Budget::evaluations(if s == Strategy::Exhaustive { 5000 } else { 80 })));
    let mut heard = Vec::new();
    let report = trial.run(&asked, (2, &[10, 80]), &mut |name, i, _| heard.push(format!("{name} {i}"))).unwrap();
    assert_eq!(heard, ["exhaustive 0", "exhaustive 1", "random 0", "random 1", "refine 0", "refine 1"]);
    let (best, seconds) = toy::optimum(&*problem).unwrap();
    assert_eq!(report.best, (best, seconds), "the whole space was searched");
    for (tried, strategy) in report.tried.iter().zip(strategies) {
        assert_eq!(tried.traces.len(), 2);
        for trace in &tried.traces {
            let (few, many) = (trace.best_after(10).unwrap(), trace.best_after(80).unwrap());
            assert!(few >= many && many >= seconds, "{strategy}: {trace:?}");
        }
    }
}

/// One point's first time is a tenth of what it takes.
struct Lucky {
    inner: AnalyticMeasure,
    point: Point,
    is_fresh: bool,
}

impl Measure for Lucky {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.inner.spec()
    }

    fn measure(&mut self, problem: &dyn Problem, at: &Point, timing: &Timing) -> Result<Measurement, MeasureError> {
        let measured = self.inner.measure(problem, at, timing)?;
        let is_lucky = *at == self.point && std::mem::take(&mut self.is_fresh);
        Ok(if is_lucky { Measurement { time_s: measured.time_s / 10.0, ..measured } } else { measured })
    }
}

#[test]
fn a_lucky_record_is_not_believed() {
    let problem = problem();
    let (best, seconds) = toy::optimum(&*problem).unwrap();
    let mut others = Vec::new();
    problem.space().for_each_legal(|point| {
        others.push(Point::from(point));
        others.len() < 3
    });
    let mut measure = Lucky { inner: AnalyticMeasure::new(device()), point: others[1].clone(), is_fresh: true };
    let (objective, timing) = (Objective::default(), Timing::default());
    let limits = Limits { cut_off: f64::INFINITY, rough: f64::INFINITY };
    let mut live = Evaluator::new(&*problem, &mut measure, &objective, (&timing, limits), &Still);
    let mut cost = |point: &Point| live.evaluate(point).unwrap().unwrap().time_s;
    let truth = |point: &Point| toy::cost_s(&*problem, point);
    let is = |cost: f64, seconds: f64| (cost / seconds - 1.0).abs() < 1e-9;
    assert!(is(cost(&others[0]), truth(&others[0])));
    assert!(is(cost(&others[1]), truth(&others[1])), "timed again in turn with the record before");
    assert!(is(cost(&best), seconds), "and the best is one still");
}

/// A machine that takes a fifth longer from the second time on.
struct Slowing {
    inner: AnalyticMeasure,
    calls: u32,
}

impl Measure for Slowing {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.inner.spec()
    }

    fn measure(&mut self, problem: &dyn Problem, at: &Point, timing: &Timing) -> Result<Measurement, MeasureError> {
        let measured = self.inner.measure(problem, at, timing)?;
        self.calls += 1;
        let pace = if self.calls > 1 { 1.2 } else { 1.0 };
        Ok(Measurement { time_s: measured.time_s * pace, ..measured })
    }
}

/// A second passes at every look.
#[derive(Default)]
struct Ticking(Cell<u64>);

impl Clock for Ticking {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.replace(self.0.get() + 1))
    }
}

#[test]
fn a_machine_that_slows_down_makes_no_point_worse() {
    let problem = problem();
    let (best, seconds) = toy::optimum(&*problem).unwrap();
    let mut others = Vec::new();
    problem.space().for_each_legal(|point| {
        others.push(Point::from(point));
        others.len() < 4
    });
    let mut measure = Slowing { inner: AnalyticMeasure::new(device()), calls: 0 };
    let (objective, timing, clock) = (Objective::default(), Timing::default(), Ticking::default());
    let limits = Limits { cut_off: f64::INFINITY, rough: f64::INFINITY };
    let mut live = Evaluator::new(&*problem, &mut measure, &objective, (&timing, limits), &clock);
    let mut cost = |point: &Point| live.evaluate(point).unwrap().unwrap().time_s;
    let truth = |point: &Point| toy::cost_s(&*problem, point);
    assert_eq!(cost(&best), seconds);
    for point in &others {
        let cost = cost(point);
        assert!((cost / truth(point) - 1.0).abs() < 1e-9, "{cost} for {}", truth(point));
    }
}
