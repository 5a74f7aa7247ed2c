//! Searches over a model: exhaustive against scoring every point by hand.

mod fixture;

use fixture::{Weighted, gemm_space, wide};
use std::sync::Mutex;
use std::time::Duration;
use tilewright_core::predictor::{Scorer, Screen};
use tilewright_core::problem::Problem;
use tilewright_core::space::{Param, ParamSpace, Point, Points, RuleGroup, Symbols};
use tilewright_sampler::{DrawError, Exact};
use tilewright_search::{Found, Options, Sampled, Sampling, Stage, exhaustive, sampled};
use tilewright_testkit::toy::Guise;

fn small() -> Guise {
    let space = ParamSpace::builder()
        .param(Param::ints("a", 1..=9))
        .param(Param::ints("b", 1..=70))
        .param(Param::ints("c", [1, 2, 4]))
        .param(Param::ints("d", 1..=20))
        .rule("ab", RuleGroup::User, "a * b <= 200", "")
        .rule("cd", RuleGroup::User, "(b + c) % d != 1", "")
        .build()
        .unwrap();
    wide(space.bind(&Symbols::new()).unwrap())
}

/// What a search must find: every legal point scored by itself, sorted.
fn by_hand(problem: &dyn Problem, scorer: &Weighted<'_>, k: usize) -> Vec<Point> {
    let mut all = Vec::new();
    problem.space().for_each_legal(|p| {
        let mut score = [0.0];
        scorer.score(Points::new(p, 1), &mut score);
        all.push((score[0], Point::from(p)));
        true
    });
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    all.into_iter().take(k).map(|(_, p)| p).collect()
}

fn points(found: &Found) -> Vec<Point> {
    found.ranked.points.iter().map(|(p, _)| p.clone()).collect()
}

fn on_threads(threads: usize, search: impl FnOnce() -> Found + Send) -> Found {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(search)
}

#[test]
fn the_best_are_those_by_hand_on_any_number_of_threads() {
    let problem = small();
    let legal = problem.space().count_legal();
    for seed in 0..5 {
        let scorer = Weighted::new(&problem, seed);
        let expected = by_hand(&problem, &scorer, 25);
        for threads in [1, 2, 5] {
            let found = on_threads(threads, || exhaustive(&problem, &scorer, &Options::top(25)));
            assert_eq!(points(&found), expected, "seed {seed}, {threads} threads");
            assert_eq!((found.ranked.considered, found.statistics.dense), (legal, legal));
            assert_eq!(found.statistics.screened, 0);
            assert!(found.ranked.points.windows(2).all(|w| w[0].1 <= w[1].1));
        }
    }
}

#[test]
fn screening_changes_the_work_and_not_the_best() {
    let problem = small();
    let legal = problem.space().count_legal();
    for seed in 0..20 {
        let scorer = Weighted::new(&problem, seed).screened(0.3);
        let best = by_hand(&problem, &scorer, 1);
        let found = exhaustive(&problem, &scorer, &Options::top(1));
        assert_eq!(points(&found), best, "seed {seed}");
        assert_eq!((found.statistics.legal, found.statistics.screened), (legal, legal));
        assert!(found.statistics.dense < legal, "nothing was screened out");
        let dense = exhaustive(&problem, &scorer, &Options { screen: false, ..Options::top(1) });
        assert_eq!(dense.ranked, found.ranked);
    }
}

#[test]
fn screening_gives_k_points_and_the_same_ones_however_few_may_be_held() {
    let problem = small();
    let scorer = Weighted::new(&problem, 3).screened(0.2);
    let reference = exhaustive(&problem, &scorer, &Options::top(60));
    assert_eq!(reference.ranked.points.len(), 60);
    for max_held in [0, 10, 2000, 5000] {
        for threads in [1, 3] {
            let options = Options { max_held, ..Options::top(60) };
            let found = on_threads(threads, || exhaustive(&problem, &scorer, &options));
            assert_eq!(found.ranked, reference.ranked, "{max_held} held, {threads} threads");
            assert_eq!(found.statistics.dense, reference.statistics.dense);
        }
    }
}

/// A cheap model that says nothing.
struct Blank<'a>(Weighted<'a>, f32);

impl Scorer for Blank<'_> {
    fn score(&self, points: Points<'_>, out: &mut [f32]) {
        if self.1.is_nan() { out.fill(f32::NAN) } else { self.0.score(points, out) }
    }

    fn screen(&self) -> Option<Screen<'_>> {
        None
    }
}

struct Misled<'a> {
    full: Weighted<'a>,
    cheap: Blank<'a>,
}

impl Scorer for Misled<'_> {
    fn score(&self, points: Points<'_>, out: &mut [f32]) {
        self.full.score(points, out);
    }

    fn screen(&self) -> Option<Screen<'_>> {
        Some(Screen { scorer: &self.cheap, margin: 0.1 })
    }
}

#[test]
fn a_cheap_model_without_numbers_rules_nothing_out() {
    let problem = small();
    let scorer = Misled { full: Weighted::new(&problem, 1), cheap: Blank(Weighted::new(&problem, 1), f32::NAN) };
    let found = exhaustive(&problem, &scorer, &Options::top(7));
    assert_eq!(points(&found), by_hand(&problem, &scorer.full, 7));
    assert_eq!(found.statistics.dense, found.statistics.legal);
}

#[test]
fn scores_without_numbers_come_last() {
    let problem = small();
    let found = exhaustive(&problem, &Blank(Weighted::new(&problem, 1), f32::NAN), &Options::top(3));
    let first: Vec<Point> = {
        let mut walk = problem.space().walk();
        (0..3).map(|_| Point::from(walk.next_point().unwrap())).collect()
    };
    assert_eq!(points(&found), first);
    assert!(found.ranked.points.iter().all(|(_, cost)| *cost == f64::INFINITY));
}

#[test]
fn spaces_without_points_or_parameters() {
    let empty = ParamSpace::builder().param(Param::ints("a", [1])).rule("no", RuleGroup::User, "a > 1", "");
    let empty = wide(empty.build().unwrap().bind(&Symbols::new()).unwrap());
    let scorer = Weighted::new(&empty, 1).screened(0.1);
    let found = exhaustive(&empty, &scorer, &Options::top(3));
    assert_eq!((found.ranked.points.len(), found.statistics.legal), (0, 0));
    let single = wide(ParamSpace::builder().build().unwrap().bind(&Symbols::new()).unwrap());
    let found = exhaustive(&single, &Constant, &Options::top(3));
    assert_eq!(found.ranked.points, [(Point(Vec::new()), 1.0)]);
    let problem = small();
    assert_eq!(exhaustive(&problem, &Weighted::new(&problem, 1), &Options::top(0)).ranked.points, []);
}

struct Constant;

impl Scorer for Constant {
    fn score(&self, _: Points<'_>, out: &mut [f32]) {
        out.fill(0.0);
    }

    fn screen(&self) -> Option<Screen<'_>> {
        Some(Screen { scorer: self, margin: 0.0 })
    }
}

#[test]
fn equal_scores_are_ranked_in_the_order_of_the_points() {
    let problem = small();
    let mut walk = problem.space().walk();
    let first: Vec<Point> = (0..5).map(|_| Point::from(walk.next_point().unwrap())).collect();
    assert_eq!(points(&exhaustive(&problem, &Constant, &Options::top(5))), first);
}

#[test]
fn progress_ends_with_everything() {
    let problem = wide(gemm_space(4, 20_000));
    let scorer = Weighted::new(&problem, 9).screened(0.5);
    let seen = Mutex::new(Vec::new());
    let note = |p| seen.lock().unwrap().push(p);
    let options = Options { progress: Some(&note), ..Options::top(1) };
    let found = exhaustive(&problem, &scorer, &options);
    let seen = seen.into_inner().unwrap();
    let walked = seen.iter().rfind(|p| p.stage == Stage::Walk).unwrap();
    assert_eq!((walked.points, walked.fraction), (found.statistics.legal, 1.0));
    let survivors = seen.iter().filter(|p| p.stage == Stage::Survivors).map(|p| p.points).max();
    assert_eq!(survivors, Some(found.statistics.dense));
    assert!(seen.iter().all(|p| (0.0..=1.0).contains(&p.fraction)));
    assert!(seen.len() > 4, "progress was reported {} times", seen.len());
}

fn scores(found: &Sampled) -> Vec<f64> {
    found.ranked.points.iter().map(|(_, score)| *score).collect()
}

#[test]
fn a_sample_climbs_to_the_best_of_a_space_that_it_has_seen_little_of() {
    let problem = wide(gemm_space(24, 20_000));
    let scorer = Weighted::new(&problem, 3);
    let how = Sampling { points: 600, climbs: 20, ..Sampling::default() };
    let found = sampled(&problem, &scorer, &mut Exact::new(), 12, &how, 5).unwrap();
    let all = exhaustive(&problem, &scorer, &Options::top(1));
    assert_eq!(found.ranked.points[0].1, all.ranked.points[0].1, "the best, or another as good");
    let looked = found.ranked.considered;
    assert!(looked > 600 && looked * 4 < all.statistics.legal, "{looked} of {}", all.statistics.legal);
    assert_eq!(found.ranked.points.len(), 12);
    assert!(scores(&found).is_sorted_by(|a, b| a < b), "one point of each score: {:?}", scores(&found));
    assert!(found.ranked.points.iter().all(|(point, _)| problem.space().is_legal(point)));
    let draws = Sampling { climbs: 0, ..how };
    let drawn = sampled(&problem, &scorer, &mut Exact::new(), 1, &draws, 5).unwrap();
    assert!(drawn.ranked.considered <= 600 && scores(&drawn)[0] >= scores(&found)[0]);
}

#[test]
fn a_sample_repeats_on_any_number_of_threads_and_ends_in_time() {
    let problem = wide(gemm_space(24, 20_000));
    let scorer = Weighted::new(&problem, 4);
    let how = Sampling { points: 400, climbs: 3, ..Sampling::default() };
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| sampled(&problem, &scorer, &mut Exact::new(), 9, &how, 7)).unwrap().ranked
    };
    assert_eq!(on(1), on(3));
    let hurried = Sampling { points: 1_000_000, limit: Duration::ZERO, ..how };
    let found = sampled(&problem, &scorer, &mut Exact::new(), 9, &hurried, 7).unwrap();
    assert!((1..1000).contains(&found.ranked.considered), "{}", found.ranked.considered);
}

#[test]
fn alike_to_the_model_is_one_and_nothing_legal_is_told() {
    let how = Sampling { points: 50, climbs: 2, ..Sampling::default() };
    let found = sampled(&small(), &Constant, &mut Exact::new(), 9, &how, 1).unwrap();
    assert_eq!(scores(&found), [1.0]);
    let none = ParamSpace::builder().param(Param::ints("a", 1..=3)).rule("no", RuleGroup::User, "a > 3", "");
    let none = wide(none.build().unwrap().bind(&Symbols::new()).unwrap());
    let error = sampled(&none, &Constant, &mut Exact::new(), 9, &how, 1).unwrap_err();
    assert!(matches!(error, DrawError::Exhausted { .. }), "{error}");
}
