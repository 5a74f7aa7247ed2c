//! The strategies over a list of points, and what ends them.

use std::sync::Arc;
use tilewright_core::measurement::{FailureKind, Measurement, Outcome};
use tilewright_core::objective::Objective;
use tilewright_core::problem::Problem;
use tilewright_core::search::{Ranked, Search};
use tilewright_core::space::{Param, ParamSpace, Point, Symbols};
use tilewright_search::drive::{Budget, DriveError, Recorded, StoppedBy, Trace, drive, repeat};
use tilewright_search::{Experience, Setup, Strategy};
use tilewright_testkit as testkit;
use tilewright_testkit::toy;

fn setup(problem: &dyn Problem) -> Setup<'_> {
    Setup::new(problem.space())
}

fn points(setup: &Setup<'_>) -> usize {
    setup.listing.get().unwrap().len()
}

fn run(search: &mut dyn Search, budget: &Budget, batch: usize, look_up: impl FnMut(&Point) -> (Outcome, f64)) -> Trace {
    let mut look_up = look_up;
    let mut recorded = Recorded::new(batch, |p: &Point| Some(look_up(p)));
    drive(search, "tested", &Objective::default(), budget, &mut recorded).unwrap()
}

fn timed(problem: &dyn Problem, point: &Point) -> (Outcome, f64) {
    (Ok(Measurement::recorded(toy::cost_s(problem, point))), 1.0)
}

#[test]
fn every_strategy_keeps_the_contract() {
    for strategy in Strategy::ALL {
        testkit::search(&|problem, seed| strategy.make(&setup(problem), seed).unwrap()).unwrap();
    }
}

#[test]
fn spaces_of_up_to_three_points_are_solved_and_left() {
    for strategy in Strategy::ALL {
        for points in 1..=3 {
            let problem = toy::tiny_problem(points);
            let optimum = toy::optimum(&problem).unwrap().1;
            for seed in 0..20 {
                let mut search = strategy.make(&setup(&problem), seed).unwrap();
                let trace = run(&mut *search, &Budget::NONE, 1, |p| timed(&problem, p));
                assert_eq!(trace.best(), Some(optimum), "{strategy} on {points} points");
                assert!(trace.evaluations as usize <= points);
            }
        }
    }
}

#[test]
fn informed_strategies_beat_random_ones_on_the_toy() {
    let fraction = |strategy: Strategy| {
        testkit::fraction_of_optimum(&|problem, seed| strategy.make(&setup(problem), seed).unwrap(), 10_000, 60, 10)
    };
    let random = fraction(Strategy::Random);
    for strategy in [Strategy::Local, Strategy::Annealing, Strategy::Genetic, Strategy::Guided, Strategy::Refine] {
        let found = fraction(strategy);
        assert!(found >= random, "{strategy}: {found} against {random} at random");
    }
    assert!(fraction(Strategy::Guided) > 0.97);
}

#[test]
fn what_other_devices_found_is_asked_first() {
    let problem = toy::problem(10_000);
    let mut setup = setup(&problem);
    let mut experience = Experience::default();
    let listing = setup.listing.get().unwrap();
    let elsewhere = |n: u32| (listing.point(n), 3.0 * toy::cost_s(&problem, &listing.point(n)));
    experience.add((0..listing.len() as u32).map(elsewhere));
    assert_eq!(experience.best(1), [toy::optimum(&problem).unwrap().0]);
    setup.warm = Arc::new(experience);
    for strategy in [Strategy::Guided, Strategy::Refine] {
        let mut search = strategy.make(&setup, 1).unwrap();
        assert_eq!(search.ask(1), [toy::optimum(&problem).unwrap().0], "{strategy}");
    }
}

#[test]
fn bounds_are_reported_and_obeyed() {
    let problem = toy::problem(10_000);
    let setup = setup(&problem);
    let mut search = Strategy::EarlyStopConservative.make(&setup, 1).unwrap();
    assert_eq!(search.bound(), Some(1.0));
    let budget = Budget { bound: Some(0.5), ..Budget::NONE };
    let trace = run(&mut *search, &budget, 1, |p| timed(&problem, p));
    assert_eq!(trace.stopped_by, StoppedBy::Bound);
    assert!((trace.evaluations as f64 / points(&setup) as f64 - 0.5).abs() < 0.01);
    let all =
        run(&mut *Strategy::EarlyStopConservative.make(&setup, 1).unwrap(), &Budget::NONE, 1, |p| timed(&problem, p));
    assert!((all.evaluations as f64 / points(&setup) as f64 - 0.9).abs() < 0.01);
    assert_eq!(all.stopped_by, StoppedBy::Bound);
    let random = run(&mut *Strategy::Random.make(&setup, 1).unwrap(), &Budget::NONE, 3, |p| timed(&problem, p));
    assert_eq!((random.stopped_by, random.bound), (StoppedBy::Exhausted, None));
    assert_eq!(random.evaluations as usize, points(&setup));
}

#[test]
fn budgets_end_runs_exactly() {
    let problem = toy::problem(10_000);
    let setup = setup(&problem);
    for strategy in [Strategy::Random, Strategy::Guided] {
        let trace = run(&mut *strategy.make(&setup, 1).unwrap(), &Budget::evaluations(37), 8, |p| timed(&problem, p));
        assert_eq!((trace.evaluations, trace.stopped_by), (37, StoppedBy::Evaluations));
    }
    let budget = Budget { seconds: Some(10.5), ..Budget::NONE };
    let trace = run(&mut *Strategy::Random.make(&setup, 1).unwrap(), &budget, 1, |p| timed(&problem, p));
    assert_eq!((trace.evaluations, trace.stopped_by), (11, StoppedBy::Time));
    // Whatever the clock says, the least is evaluated, one by one or of a batch, and no more.
    for (ahead, evaluations) in [(1, None), (8, None), (8, Some(2))] {
        let budget = Budget { seconds: Some(0.5), least: 3, evaluations, bound: None };
        let trace = run(&mut *Strategy::Random.make(&setup, 1).unwrap(), &budget, ahead, |p| timed(&problem, p));
        assert_eq!(trace.evaluations, evaluations.unwrap_or(3));
    }
}

#[test]
fn seeds_decide_whatever_the_number_of_threads() {
    let problem = toy::problem(1_000);
    let setup = setup(&problem);
    for strategy in Strategy::ALL {
        let one =
            |seed| run(&mut *strategy.make(&setup, seed).unwrap(), &Budget::evaluations(40), 4, |p| timed(&problem, p));
        assert_eq!(repeat(5, 3, one), (5..8).map(one).collect::<Vec<_>>(), "{strategy}");
    }
}

#[test]
fn one_parameter_of_words_and_no_parameter_at_all_are_searched() {
    let words = ParamSpace::builder().param(Param::words("w", ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]));
    for space in [words.build().unwrap(), ParamSpace::builder().build().unwrap()] {
        let space = space.bind(&Symbols::new()).unwrap();
        let setup = Setup::new(&space);
        for strategy in Strategy::ALL {
            let cost = |p: &Point| (Ok(Measurement::recorded(1.0 + f64::from(p.0.iter().sum::<u16>() % 7))), 0.0);
            let trace = run(&mut *strategy.make(&setup, 3).unwrap(), &Budget::NONE, 1, cost);
            assert!(trace.evaluations >= 1, "{strategy}");
        }
    }
}

/// Proposes what is illegal, and legal points after every so many of those.
struct Careless {
    illegal: Point,
    legal: Vec<Point>,
    every: usize,
    asked: usize,
    told: Vec<(Point, Outcome)>,
}

impl Search for Careless {
    fn ask(&mut self, n: usize) -> Vec<Point> {
        let mut next = || {
            self.asked += 1;
            if self.legal.is_empty() {
                return None;
            }
            if self.asked.is_multiple_of(self.every) { self.legal.pop() } else { Some(self.illegal.clone()) }
        };
        (0..n).map_while(|_| next()).collect()
    }

    fn tell(&mut self, seen: &[(Point, Outcome)]) {
        self.told.extend_from_slice(seen);
    }

    fn best(&self) -> Ranked {
        Ranked::default()
    }
}

#[test]
fn illegal_proposals_are_told_counted_and_never_measured() {
    let problem = toy::problem(10_000);
    let illegal = Point(vec![4, 4, 0, 0, 0]);
    assert!(problem.space().contains(&illegal) && !problem.space().is_legal(&illegal));
    let legal = testkit::legal_points(problem.space(), 20, 1);
    let careless =
        |every| Careless { illegal: illegal.clone(), legal: legal.clone(), every, asked: 0, told: Vec::new() };
    let go = |search: &mut Careless, batch| {
        let measured = |p: &Point| problem.space().is_legal(p).then(|| timed(&problem, p));
        drive(search, "careless", &Objective::default(), &Budget::NONE, &mut Recorded::new(batch, measured))
    };
    for batch in [1, 7] {
        let mut search = careless(3);
        let trace = go(&mut search, batch).unwrap();
        assert_eq!((trace.evaluations, trace.illegal, trace.stopped_by), (20, 40, StoppedBy::Exhausted));
        let failure = search.told.iter().find_map(|(p, o)| (*p == illegal).then(|| o.clone().unwrap_err())).unwrap();
        assert_eq!(failure.kind, FailureKind::Illegal);
        assert!(failure.message.contains("careless") && failure.message.contains("[4, 4, 0, 0, 0]"), "{failure}");
        let error = go(&mut careless(usize::MAX), batch).unwrap_err();
        assert!(
            matches!(&error, DriveError::OnlyIllegal { strategy, count: 1000, .. } if strategy == "careless"),
            "{error}"
        );
    }
}
