//! Exhaustive search against scoring every point by hand.

mod fixture;

use fixture::{Weighted, gemm_space, wide};
use std::sync::Mutex;
use tilewright_core::predictor::{Scorer, Screen};
use tilewright_core::problem::Problem;
use tilewright_core::space::{Param, ParamSpace, Point, RuleGroup, Symbols};
use tilewright_search::{Found, Options, Stage, exhaustive};
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
fn by_hand(problem: &dyn Problem, scorer: &Weighted, k: usize) -> Vec<Point> {
    let mut all = Vec::new();
    problem.space().for_each_legal(|p| {
        let mut row = Vec::new();
        problem.config_features(p, &mut row);
        let mut score = [0.0];
        scorer.score(&row, &mut score);
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
        let scorer = Weighted::new(4, seed);
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
        let scorer = Weighted::new(4, seed).screened(0.3);
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
    let scorer = Weighted::new(4, 3).screened(0.2);
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
struct Blank(Weighted, f32);

impl Scorer for Blank {
    fn score(&self, rows: &[f32], out: &mut [f32]) {
        if self.1.is_nan() { out.fill(f32::NAN) } else { self.0.score(rows, out) }
    }

    fn screen(&self) -> Option<Screen<'_>> {
        None
    }
}

struct Misled {
    full: Weighted,
    cheap: Blank,
}

impl Scorer for Misled {
    fn score(&self, rows: &[f32], out: &mut [f32]) {
        self.full.score(rows, out);
    }

    fn screen(&self) -> Option<Screen<'_>> {
        Some(Screen { scorer: &self.cheap, margin: 0.1 })
    }
}

#[test]
fn a_cheap_model_without_numbers_rules_nothing_out() {
    let problem = small();
    let scorer = Misled { full: Weighted::new(4, 1), cheap: Blank(Weighted::new(4, 1), f32::NAN) };
    let found = exhaustive(&problem, &scorer, &Options::top(7));
    assert_eq!(points(&found), by_hand(&problem, &scorer.full, 7));
    assert_eq!(found.statistics.dense, found.statistics.legal);
}

#[test]
fn scores_without_numbers_come_last() {
    let problem = small();
    let found = exhaustive(&problem, &Blank(Weighted::new(4, 1), f32::NAN), &Options::top(3));
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
    let scorer = Weighted::new(1, 1).screened(0.1);
    let found = exhaustive(&empty, &scorer, &Options::top(3));
    assert_eq!((found.ranked.points.len(), found.statistics.legal), (0, 0));
    let single = wide(ParamSpace::builder().build().unwrap().bind(&Symbols::new()).unwrap());
    let found = exhaustive(&single, &Constant, &Options::top(3));
    assert_eq!(found.ranked.points, [(Point(Vec::new()), 1.0)]);
    assert_eq!(exhaustive(&small(), &Weighted::new(4, 1), &Options::top(0)).ranked.points, []);
}

struct Constant;

impl Scorer for Constant {
    fn score(&self, _: &[f32], out: &mut [f32]) {
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
    let scorer = Weighted::new(problem.schema().config.len(), 9).screened(0.5);
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
