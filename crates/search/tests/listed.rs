//! The strategies over a list of points, and what ends them.

use std::sync::Arc;
use tilewright_core::measurement::{Measurement, Outcome};
use tilewright_core::problem::Problem;
use tilewright_core::space::{Param, ParamSpace, Point, Symbols};
use tilewright_search::run::{Budget, StoppedBy, repeat, run};
use tilewright_search::{Experience, Listing, Setup, Strategy};
use tilewright_testkit as testkit;
use tilewright_testkit::toy;

fn setup(problem: &dyn Problem) -> Setup {
    Setup::new(Arc::new(Listing::new(problem.space()).unwrap()))
}

fn timed(problem: &dyn Problem, point: &Point) -> (Outcome, f64) {
    (Ok(Measurement::recorded(toy::cost_s(problem, point))), 1.0)
}

#[test]
fn every_strategy_keeps_the_contract() {
    for strategy in Strategy::ALL {
        testkit::search(&|problem, seed| strategy.make(&setup(problem), seed));
    }
}

#[test]
fn spaces_of_up_to_three_points_are_solved_and_left() {
    for strategy in Strategy::ALL {
        for points in 1..=3 {
            let problem = toy::tiny_problem(points);
            let optimum = toy::optimum(&problem).unwrap().1;
            for seed in 0..20 {
                let mut search = strategy.make(&setup(&problem), seed);
                let trace = run(&mut *search, &Budget::NONE, 1, &mut |p| timed(&problem, p));
                assert_eq!(trace.best(), Some(optimum), "{strategy} on {points} points");
                assert!(trace.evaluations as usize <= points);
            }
        }
    }
}

#[test]
fn informed_strategies_beat_random_ones_on_the_toy() {
    let fraction = |strategy: Strategy| {
        testkit::fraction_of_optimum(&|problem, seed| strategy.make(&setup(problem), seed), 10_000, 60, 10)
    };
    let random = fraction(Strategy::Random);
    for strategy in [Strategy::Local, Strategy::Annealing, Strategy::Genetic, Strategy::Guided] {
        let found = fraction(strategy);
        assert!(found >= random, "{strategy}: {found} against {random} at random");
    }
    assert!(fraction(Strategy::Guided) > 0.97);
}

#[test]
fn what_other_devices_found_is_asked_first() {
    let problem = toy::problem(10_000);
    let mut setup = setup(&problem);
    let mut experience = Experience::new(setup.listing.len());
    let cost = |n: u32| toy::cost_s(&problem, &setup.listing.point(n));
    experience.add((0..setup.listing.len() as u32).map(|n| Some(3.0 * cost(n))).collect());
    setup.warm = Arc::new(experience);
    let mut search = Strategy::Guided.make(&setup, 1);
    assert_eq!(search.ask(1), [toy::optimum(&problem).unwrap().0]);
}

#[test]
fn bounds_are_reported_and_obeyed() {
    let problem = toy::problem(10_000);
    let setup = setup(&problem);
    let mut search = Strategy::EarlyStopConservative.make(&setup, 1);
    assert_eq!(search.bound(), Some(1.0));
    let budget = Budget { bound: Some(0.5), ..Budget::NONE };
    let trace = run(&mut *search, &budget, 1, &mut |p| timed(&problem, p));
    assert_eq!(trace.stopped_by, StoppedBy::Bound);
    assert!((trace.evaluations as f64 / setup.listing.len() as f64 - 0.5).abs() < 0.01);
    let all = run(&mut *Strategy::EarlyStopConservative.make(&setup, 1), &Budget::NONE, 1, &mut |p| timed(&problem, p));
    assert!((all.evaluations as f64 / setup.listing.len() as f64 - 0.9).abs() < 0.01);
    assert_eq!(all.stopped_by, StoppedBy::Bound);
    let random = run(&mut *Strategy::Random.make(&setup, 1), &Budget::NONE, 3, &mut |p| timed(&problem, p));
    assert_eq!((random.stopped_by, random.bound), (StoppedBy::Exhausted, None));
    assert_eq!(random.evaluations as usize, setup.listing.len());
}

#[test]
fn budgets_end_runs_exactly() {
    let problem = toy::problem(10_000);
    let setup = setup(&problem);
    for strategy in [Strategy::Random, Strategy::Guided] {
        let trace = run(&mut *strategy.make(&setup, 1), &Budget::evaluations(37), 8, &mut |p| timed(&problem, p));
        assert_eq!((trace.evaluations, trace.stopped_by), (37, StoppedBy::Evaluations));
    }
    let budget = Budget { seconds: Some(10.5), ..Budget::NONE };
    let trace = run(&mut *Strategy::Random.make(&setup, 1), &budget, 1, &mut |p| timed(&problem, p));
    assert_eq!((trace.evaluations, trace.stopped_by), (11, StoppedBy::Time));
}

#[test]
fn seeds_decide_whatever_the_number_of_threads() {
    let problem = toy::problem(1_000);
    let setup = setup(&problem);
    for strategy in Strategy::ALL {
        let one =
            |seed| run(&mut *strategy.make(&setup, seed), &Budget::evaluations(40), 4, &mut |p| timed(&problem, p));
        assert_eq!(repeat(5, 3, one), (5..8).map(one).collect::<Vec<_>>(), "{strategy}");
    }
}

#[test]
fn one_parameter_of_words_and_no_parameter_at_all_are_searched() {
    let words = ParamSpace::builder().param(Param::words("w", ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]));
    for space in [words.build().unwrap(), ParamSpace::builder().build().unwrap()] {
        let space = space.bind(&Symbols::new()).unwrap();
        let setup = Setup::new(Arc::new(Listing::new(&space).unwrap()));
        for strategy in Strategy::ALL {
            let cost = |p: &Point| (Ok(Measurement::recorded(1.0 + f64::from(p.0.iter().sum::<u16>() % 7))), 0.0);
            let trace = run(&mut *strategy.make(&setup, 3), &Budget::NONE, 1, &mut |p| cost(p));
            assert!(trace.evaluations >= 1, "{strategy}");
        }
    }
}
