//! Conformance of a [`Search`].

use crate::toy;
use crate::violation::{Conformity, ensure};
use std::collections::{BTreeMap, BTreeSet};
use tilewright_core::measurement::{Failure, FailureKind, Measurement, Outcome};
use tilewright_core::problem::Problem;
use tilewright_core::search::Search;
use tilewright_core::space::Point;

const SUITE: &str = "search";

/// Makes a search for a problem from a seed.
pub type Make<'m> = &'m dyn for<'p> Fn(&'p dyn Problem, u64) -> Box<dyn Search + 'p>;

/// Holds a search to its contract on the toy kernel.
///
/// Checked: only legal points are asked, none twice, never more than wanted; the same seed and outcomes give the same
/// questions; it finishes, also on spaces of 0 to 3 points and when every point fails; the best is the least told,
/// warm starts included, failures excluded.
///
/// # Errors
/// The first broken promise.
pub fn search(make: Make<'_>) -> Conformity {
    for points in 0..=3 {
        let problem = toy::tiny_problem(points);
        for batch in [1, 5] {
            drive(make, &problem, 1, batch, &|p| outcome(&problem, p))?;
        }
    }
    let problem = toy::small_problem();
    for batch in [1, 7, 64] {
        let timed = |p: &Point| outcome(&problem, p);
        let first = drive(make, &problem, 3, batch, &timed)?;
        let again = drive(make, &problem, 3, batch, &timed)?;
        ensure!(first == again, "search-repeats", "two searches of seed 3 asked other points, in batches of {batch}");
        drive(make, &problem, 4, batch, &|p| if p[0].is_multiple_of(2) { failed() } else { outcome(&problem, p) })?;
        drive(make, &problem, 5, batch, &|_| failed())?;
    }
    warm_start(make, &problem)
}

/// How close to the known optimum a search comes: the mean over `repeats` seeds of (optimum / best found) after `budget`
/// evaluations on the toy kernel for `n` elements. Failures and finishing early are the search's own.
pub fn fraction_of_optimum(make: Make<'_>, n: usize, budget: usize, repeats: u64) -> f64 {
    let problem = toy::problem(n);
    let optimum = toy::optimum(&problem).map_or(f64::NAN, |(_, seconds)| seconds);
    let fraction = |seed| {
        let mut search = make(&problem, seed);
        let mut asked = 0;
        while asked < budget {
            let points = search.ask((budget - asked).min(8));
            if points.is_empty() {
                break;
            }
            asked += points.len();
            let told: Vec<_> = points.into_iter().map(|p| (p.clone(), outcome(&problem, &p))).collect();
            search.tell(&told);
        }
        search.best().points.first().map_or(0.0, |(_, cost)| optimum / cost)
    };
    (0..repeats).map(fraction).sum::<f64>() / repeats as f64
}

fn outcome(problem: &dyn Problem, point: &Point) -> Outcome {
    Ok(Measurement::recorded(toy::cost_s(problem, point)))
}

fn failed() -> Outcome {
    Err(Failure { kind: FailureKind::Launch, message: "made to fail".into() })
}

/// Runs a search to its end; returns the points in the order asked.
fn drive(
    make: Make<'_>,
    problem: &dyn Problem,
    seed: u64,
    batch: usize,
    time: &dyn Fn(&Point) -> Outcome,
) -> Result<Vec<Point>, crate::Violation> {
    let space = problem.space();
    let legal = space.count_legal();
    let mut search = make(problem, seed);
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    let mut told = BTreeMap::new();
    let nothing = search.ask(0);
    ensure!(nothing.is_empty(), "asks-no-more-than-wanted", "ask(0) gave {} points", nothing.len());
    loop {
        let points = search.ask(batch);
        ensure!(points.len() <= batch, "asks-no-more-than-wanted", "ask({batch}) gave {} points", points.len());
        if points.is_empty() {
            break;
        }
        for point in &points {
            ensure!(space.is_legal(point), "asks-legal-points", "{point:?} of a space with {legal} legal points");
            ensure!(seen.insert(point.clone()), "asks-unseen-points", "{} was asked twice", space.config(point));
        }
        let outcomes: Vec<_> = points.iter().map(|p| (p.clone(), time(p))).collect();
        told.extend(outcomes.iter().filter_map(|(p, o)| Some((p.clone(), o.as_ref().ok()?.time_s))));
        search.tell(&outcomes);
        order.extend(points);
        best_is_least(&*search, &told)?;
    }
    let more = search.ask(batch);
    ensure!(more.is_empty(), "stays-finished", "a finished search asked {} more points", more.len());
    ensure!(legal == 0 || !order.is_empty(), "asks-something", "nothing was asked of {legal} legal points");
    Ok(order)
}

fn best_is_least(search: &dyn Search, told: &BTreeMap<Point, f64>) -> Conformity {
    let ranked = search.best().points;
    let least = told.values().copied().fold(f64::INFINITY, f64::min);
    let first = ranked.first().map_or(f64::INFINITY, |(_, cost)| *cost);
    ensure!(first == least, "best-is-the-least-told", "best is {first:e}, the least told is {least:e}");
    for (point, cost) in &ranked {
        ensure!(
            told.get(point) == Some(cost),
            "best-was-told",
            "{point:?} is ranked with {cost:e}, told was {:?}",
            told.get(point)
        );
    }
    let sorted = ranked.windows(2).all(|w| (w[0].1, &w[0].0) < (w[1].1, &w[1].0));
    ensure!(sorted, "best-is-sorted", "not by cost, then by point, without doubles: {ranked:?}");
    Ok(())
}

/// Points told without being asked count.
fn warm_start(make: Make<'_>, problem: &dyn Problem) -> Conformity {
    let Some((best, seconds)) = toy::optimum(problem) else { return Ok(()) };
    let mut search = make(problem, 1);
    let worse = crate::legal_points(problem.space(), 5, 9);
    let mut told: BTreeMap<Point, f64> = worse.into_iter().map(|p| (p.clone(), toy::cost_s(problem, &p))).collect();
    told.insert(best, seconds);
    let outcomes: Vec<(Point, Outcome)> =
        told.iter().map(|(p, s)| (p.clone(), Ok(Measurement::recorded(*s)))).collect();
    for _ in 0..2 {
        // The same news twice changes nothing.
        search.tell(&outcomes);
        best_is_least(&*search, &told)?;
    }
    Ok(())
}
