//! The strategies against the conformance suite and the toy kernel's known optimum.

use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tilewright_core::measurement::{Measurement, Outcome};
use tilewright_core::objective::Objective;
use tilewright_core::predictor::Scorer;
use tilewright_core::problem::Problem;
use tilewright_core::search::Search;
use tilewright_core::space::{BoundSpace, Param, ParamSpace, Point, Points, RuleGroup, Symbols};
use tilewright_search::stop::{Rule, Tolerance};
use tilewright_search::strategy::{EarlyStop, Local, Mixture, Random, Refine, Survey};
use tilewright_search::{Model, Setup, Strategy};
use tilewright_testkit as testkit;
use tilewright_testkit::toy;

fn local<'p>(problem: &'p dyn Problem, seed: u64) -> Box<dyn Search + 'p> {
    let starts = Random::new(problem.space(), Objective::default(), seed).ask(3);
    Box::new(Local::new(problem.space(), Objective::default(), starts, seed))
}

fn in_order<'p>(problem: &'p dyn Problem) -> Box<dyn Search + 'p> {
    Strategy::Exhaustive.make(&Setup::new(problem.space()), 0).expect("a small space")
}

#[test]
fn every_strategy_keeps_the_contract() {
    testkit::search(&|problem, _| in_order(problem)).unwrap();
    testkit::search(&|problem, seed| Box::new(Random::new(problem.space(), Objective::default(), seed))).unwrap();
    testkit::search(&local).unwrap();
    testkit::search(&|problem, seed| {
        Box::new(EarlyStop::new(problem.space(), Objective::default(), Rule::Conservative, Tolerance::default(), seed))
    })
    .unwrap();
}

/// Prefers small indices.
struct Small;

impl Scorer for Small {
    fn score(&self, points: Points<'_>, out: &mut [f32]) {
        points.iter().zip(out).for_each(|(point, score)| *score = point.iter().map(|&i| f32::from(i)).sum());
    }
}

#[test]
fn what_a_model_advises_keeps_the_contract() {
    let drawn = |problem: &dyn Problem| Random::new(problem.space(), Objective::default(), 9).ask(4);
    for is_costly in [false, true] {
        testkit::search(&|problem, seed| {
            let model = Some(Model { scorer: &Small, is_costly });
            let ranked = Arc::new(drawn(problem));
            let setup = Setup { model, starts: ranked.clone(), ranked, ..Setup::new(problem.space()) };
            Box::new(Refine::new(&setup, seed))
        })
        .unwrap();
    }
}

#[test]
fn the_mixture_of_a_training_set_keeps_the_contract() {
    let mixtures = [
        Mixture::default(),
        Mixture { neighbours: 0.45, near_carried: 0.0, carried: 0.1 },
        Mixture { neighbours: 0.0, near_carried: 0.5, carried: 0.5 },
    ];
    for mixture in mixtures {
        testkit::search(&|problem, seed| {
            let carried = Random::new(problem.space(), Objective::default(), 3).ask(5);
            let setup =
                Setup { starts: Arc::new(carried[carried.len() / 2..].to_vec()), ..Setup::new(problem.space()) };
            Box::new(Survey::new(&setup, mixture, &carried, ChaCha8Rng::seed_from_u64(seed)))
        })
        .unwrap();
    }
}

fn timed(problem: &dyn Problem, points: Vec<Point>) -> Vec<(Point, Outcome)> {
    points.into_iter().map(|p| (p.clone(), Ok(Measurement::recorded(toy::cost_s(problem, &p))))).collect()
}

#[test]
fn the_whole_space_is_asked_once_in_order_and_at_random() {
    let problem = toy::small_problem();
    let mut legal = Vec::new();
    problem.space().for_each_legal(|p| {
        legal.push(Point::from(p));
        true
    });
    assert_eq!(in_order(&problem).ask(usize::MAX), legal);
    let mut random = Random::new(problem.space(), Objective::default(), 5);
    let mut asked = Vec::new();
    while let Some(point) = random.ask(1).pop() {
        asked.push(point);
    }
    assert_ne!(asked, legal);
    asked.sort();
    assert_eq!(asked, legal);
}

#[test]
fn points_told_before_they_are_asked_are_not_asked() {
    let problem = toy::small_problem();
    let known = testkit::legal_points(problem.space(), 40, 3);
    let known: BTreeSet<Point> = known.into_iter().collect();
    let told = timed(&problem, known.iter().cloned().collect());
    let searches: [Box<dyn Search>; 3] =
        [in_order(&problem), Box::new(Random::new(problem.space(), Objective::default(), 1)), local(&problem, 1)];
    for mut search in searches {
        search.tell(&told);
        let asked = search.ask(100_000);
        assert!(asked.iter().all(|p| !known.contains(p)));
        assert!(!asked.is_empty());
    }
}

#[test]
fn local_search_climbs_to_the_optimum_of_the_toy() {
    let problem = toy::problem(10_000);
    let (best, _) = toy::optimum(&problem).unwrap();
    let mut evaluations = Vec::new();
    for seed in 0..10 {
        let mut search = local(&problem, seed);
        let mut count = 0;
        loop {
            let points = search.ask(4);
            if points.is_empty() {
                break;
            }
            count += points.len();
            search.tell(&timed(&problem, points));
            if search.best().points[0].0 == best {
                break;
            }
        }
        assert_eq!(search.best().points[0].0, best, "seed {seed}");
        evaluations.push(count);
    }
    evaluations.sort_unstable();
    let legal = problem.space().count_legal() as usize;
    assert!(evaluations[5] < legal / 10, "{evaluations:?} evaluations of {legal} points");
}

#[test]
fn rules_that_couple_parameters_are_crossed() {
    let space = ParamSpace::builder()
        .param(Param::ints("t_m", [1, 2, 4, 8]))
        .param(Param::ints("t_n", [1, 2, 4, 8]))
        .rule("threads", RuleGroup::User, "t_m * t_n == 8", "")
        .build()
        .unwrap()
        .bind(&Symbols::new())
        .unwrap();
    let mut search = Local::new(&space, Objective::default(), vec![Point(vec![0, 3])], 1);
    let mut asked = BTreeSet::new();
    loop {
        let points = search.ask(1);
        if points.is_empty() {
            break;
        }
        asked.extend(points.iter().cloned());
        let cost = |p: &Point| f64::from(4 - p[0]);
        search.tell(&points.iter().map(|p| (p.clone(), Ok(Measurement::recorded(cost(p))))).collect::<Vec<_>>());
    }
    assert_eq!(asked.len(), 4, "{asked:?}");
    assert_eq!(search.best().points[0].0, Point(vec![3, 0]));
}

#[test]
fn objectives_other_than_time_are_followed() {
    let space = ParamSpace::builder().param(Param::ints("a", 1..=9)).build().unwrap();
    let space = space.bind(&Symbols::new()).unwrap();
    let objective = Objective { metric: "flops".into(), direction: tilewright_core::objective::Direction::Maximize };
    let mut search = Local::new(&space, objective, vec![Point(vec![0])], 1);
    for _ in 0..20 {
        let measured = |p: &Point| {
            let metrics = BTreeMap::from([("flops".to_owned(), 1.0 + f64::from(p[0]))]);
            Ok(Measurement { metrics, ..Measurement::recorded(1.0 + f64::from(p[0])) })
        };
        let outcomes: Vec<_> = search.ask(1).into_iter().map(|p| (p.clone(), measured(&p))).collect();
        search.tell(&outcomes);
    }
    assert_eq!(search.best().points[0].0, Point(vec![8]));
}

/// Uniform over the legal points: a chi-squared test with a threshold that a right sampler passes always.
fn is_uniform(space: &BoundSpace, draws_of_seed: impl Fn(u64) -> Point) {
    let legal = space.count_legal() as usize;
    let draws = 200 * legal;
    let mut counts: BTreeMap<Point, f64> = BTreeMap::new();
    (0..draws as u64).for_each(|seed| *counts.entry(draws_of_seed(seed)).or_default() += 1.0);
    assert_eq!(counts.len(), legal);
    let chi: f64 = counts.values().map(|c| (c - 200.0).powi(2) / 200.0).sum();
    let degrees = (legal - 1) as f64;
    assert!(chi < degrees + 6.0 * (2.0 * degrees).sqrt(), "chi squared {chi} for {degrees} degrees of freedom");
}

#[test]
fn random_points_are_uniform_by_rejection_and_by_walking() {
    let space = |rule: &str| {
        let space = ParamSpace::builder().param(Param::ints("a", 0..60)).param(Param::ints("b", 0..1000));
        space.rule("r", RuleGroup::User, rule, "").build().unwrap().bind(&Symbols::new()).unwrap()
    };
    // One of 6 candidates is legal, and one of 6,000.
    let common = space("a < 10 and b < 1000");
    let first = |s: &BoundSpace, seed| Random::new(s, Objective::default(), seed).ask(1).remove(0);
    let coarse = ParamSpace::builder().param(Param::ints("a", 0..60)).rule("r", RuleGroup::User, "a % 6 == 1", "");
    let coarse = coarse.build().unwrap().bind(&Symbols::new()).unwrap();
    is_uniform(&coarse, |seed| first(&coarse, seed));
    let rare = space("a < 10 and b == a * 99");
    assert_eq!(rare.count_legal(), 10);
    is_uniform(&rare, |seed| first(&rare, seed));
    assert!(common.is_legal(&first(&common, 1)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn neighbours_are_legal_and_new(
        limit in 1i64..60,
        start in prop::collection::vec(0u16..5, 3),
        batch in 1usize..9,
        seed: u64,
    ) {
        let mut builder = ParamSpace::builder();
        for name in ["a", "b", "c"] {
            builder = builder.param(Param::ints(name, 1..=5));
        }
        let space = builder.rule("r", RuleGroup::User, "a * b * c <= limit and (a + b) % c != 1", "").build().unwrap();
        let space = space.bind(&Symbols::new().with("limit", limit)).unwrap();
        let mut search = Local::new(&space, Objective::default(), vec![Point(start)], seed).with_width(1 + batch);
        let mut asked = BTreeSet::new();
        loop {
            let points = search.ask(batch);
            if points.is_empty() { break; }
            prop_assert!(points.len() <= batch);
            for point in &points {
                prop_assert!(space.is_legal(point));
                prop_assert!(asked.insert(point.clone()), "{point:?} twice");
            }
            let outcomes: Vec<(Point, Outcome)> = points
                .iter()
                .map(|p| (p.clone(), Ok(Measurement::recorded(1.0 + f64::from(p.iter().map(|i| i * 7 % 5).sum::<u16>())))))
                .collect();
            search.tell(&outcomes);
        }
        prop_assert_eq!(asked.len() as u64, space.count_legal(), "a climb that ends is followed by another");
    }
}
