//! Every candidate on every input.

use super::{Candidate, Exporting, Phase};
use crate::error::Error;
use crate::planning::problem;
use std::time::{Duration, Instant};
use tilewright_core::measurement::FailureKind;
use tilewright_core::objective::Objective;
use tilewright_core::problem::{Measure, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_export::Cell;
use tilewright_runtime::RuntimeError;
use tilewright_runtime::paired::{Contender, PairedSettings, compare};
use tilewright_runtime::plan::PlanSettings;
use tilewright_search::Evaluator;
use tilewright_search::drive::Limits;

/// Rounds in which candidates are timed in turn.
const ROUNDS: u32 = 5;

/// Candidates this far behind the best are not timed again: how bad they are need not be known well.
const DROP_BEYOND: f64 = 0.15;

/// Candidates that take this many times as long as the best are cut off, and count as that slow.
const CUT_OFF: f64 = 4.0;

/// The costs of candidates on one input beside each other.
pub(super) fn contenders(
    problem: &dyn Problem,
    measure: &mut dyn Measure,
    points: &[Point],
    (paired, limits): (&PairedSettings, Limits),
) -> Result<Vec<Contender>, Error> {
    let (objective, clock) = (Objective::default(), Instant::now());
    let timing = PlanSettings::default().timing;
    if measure.ahead() > 1 {
        measure.expect(problem, points);
    }
    let mut live = Evaluator::new(problem, measure, &objective, (&timing, limits), &clock);
    let timed = compare(points.len(), &objective, paired, &clock, &mut |at| live.time(&points[at]));
    Ok(timed.map_err(RuntimeError::from)?.contenders)
}

/// The table of times, until a time since the clock's start.
pub(super) fn cells(
    of: &mut Exporting<'_>,
    measure: &mut dyn Measure,
    (inputs, candidates): (&[Config], &[Candidate]),
    (until, clock): (Duration, &Instant),
) -> Result<Vec<Vec<Cell>>, Error> {
    let mut rows = Vec::with_capacity(inputs.len());
    for (at, input) in inputs.iter().enumerate() {
        (of.told)(Phase::Timing, at, inputs.len());
        let left = until.saturating_sub(clock.elapsed()) / (inputs.len() - at) as u32;
        let problem = problem(&**of.kernel, of.device, input)?;
        rows.push(row(&*problem, measure, candidates, left)?);
    }
    Ok(rows)
}

fn row(
    problem: &dyn Problem,
    measure: &mut dyn Measure,
    candidates: &[Candidate],
    time: Duration,
) -> Result<Vec<Cell>, Error> {
    let legal: Vec<usize> =
        (0..candidates.len()).filter(|&at| problem.space().is_legal(&candidates[at].point)).collect();
    let points: Vec<Point> = legal.iter().map(|&at| candidates[at].point.clone()).collect();
    let paired =
        PairedSettings { rounds: ROUNDS, drop_beyond: DROP_BEYOND, max_time: time, ..PairedSettings::default() };
    let limits = Limits { cut_off: CUT_OFF, rough: 1.5 };
    let found = contenders(problem, measure, &points, (&paired, limits))?;
    let best = found.iter().map(|one| one.settled).fold(f64::INFINITY, f64::min);
    let mut row = vec![Cell::Illegal; candidates.len()];
    legal.iter().for_each(|&at| row[at] = Cell::Untimed);
    for one in found {
        row[legal[one.index]] = match &one.outcome {
            Ok(_) if one.settled.is_finite() && one.settled > 0.0 => Cell::Seconds(one.settled),
            Err(failure) if failure.kind == FailureKind::CutOff && best.is_finite() => Cell::Seconds(best * CUT_OFF),
            _ => Cell::Failed,
        };
    }
    Ok(row)
}
