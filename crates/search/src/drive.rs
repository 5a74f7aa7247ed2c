//! The driver: lets a search ask a device or a recording within a budget, and keeps the trace.

mod evaluator;

pub use evaluator::{Evaluator, Limits};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tilewright_core::measurement::{Failure, FailureKind, Outcome};
use tilewright_core::objective::Objective;
use tilewright_core::program::DeviceError;
use tilewright_core::search::Search;
use tilewright_core::space::Point;

/// Illegal proposals in a row after which a search is given up.
const MOST_ILLEGAL: u64 = 1000;

/// When a run ends at the latest. What is none does not end it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Evaluations of distinct points, failed ones included.
    pub evaluations: Option<u64>,
    /// Seconds on the clock of the evaluations.
    pub seconds: Option<f64>,
    /// Proposals that are evaluated or refused before the clock may end it.
    pub least: u64,
    /// The search's own bound ([`Search::bound`]) at or below which it ends.
    pub bound: Option<f64>,
}

/// A budget under which nothing can be done.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("a budget of {value} {what}: it must be more than 0")]
pub struct EmptyBudget {
    /// Evaluations, seconds or bound.
    pub what: &'static str,
    /// What was given.
    pub value: f64,
}

impl Budget {
    /// No limit: the search ends by itself.
    pub const NONE: Self = Self { evaluations: None, seconds: None, least: 0, bound: None };

    /// A number of evaluations.
    pub fn evaluations(count: u64) -> Self {
        Self { evaluations: Some(count), ..Self::NONE }
    }

    /// Refuses limits that leave nothing to do.
    ///
    /// # Errors
    /// A limit of 0, below 0 or not a number.
    pub fn check(&self) -> Result<(), EmptyBudget> {
        let limits = [
            ("evaluations", self.evaluations.map(|n| n as f64)),
            ("seconds", self.seconds),
            ("of probability", self.bound),
        ];
        for (what, value) in limits {
            if let Some(value) = value.filter(|v| v.is_nan() || *v <= 0.0) {
                return Err(EmptyBudget { what, value });
            }
        }
        Ok(())
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoppedBy {
    /// The number of evaluations.
    Evaluations,
    /// The clock.
    Time,
    /// The search's own rule, or the bound of the budget.
    Bound,
    /// Nothing is left to ask.
    Exhausted,
}

impl StoppedBy {
    /// The word in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Evaluations => "evaluations",
            Self::Time => "time",
            Self::Bound => "bound",
            Self::Exhausted => "exhausted",
        }
    }
}

/// An improvement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// After how many evaluations.
    pub evaluations: u64,
    /// When, on the clock of the evaluations.
    pub seconds: f64,
    /// The best cost from here on.
    pub cost: f64,
}

/// What a run did.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Every improvement, first to last.
    pub steps: Vec<Step>,
    /// Evaluations in all, failed ones included.
    pub evaluations: u64,
    /// Proposals that were not legal, and not evaluated.
    pub illegal: u64,
    /// Seconds on the clock of the evaluations.
    pub seconds: f64,
    /// The search's bound at the end, where it has one.
    pub bound: Option<f64>,
    /// Why it ended.
    pub stopped_by: StoppedBy,
}

impl Trace {
    /// A run of nothing.
    pub(crate) fn empty() -> Self {
        let stopped_by = StoppedBy::Exhausted;
        Self { steps: Vec::new(), evaluations: 0, illegal: 0, seconds: 0.0, bound: None, stopped_by }
    }

    /// The best cost after so many evaluations; none if nothing had a cost by then.
    pub fn best_after(&self, evaluations: u64) -> Option<f64> {
        let at = self.steps.partition_point(|s| s.evaluations <= evaluations);
        at.checked_sub(1).map(|i| self.steps[i].cost)
    }

    /// The best cost of all; none if nothing had one.
    pub fn best(&self) -> Option<f64> {
        self.steps.last().map(|s| s.cost)
    }
}

/// What a search asks: a device or a recording.
pub trait Evaluate {
    /// How many points are best asked for at once.
    fn ahead(&self) -> usize {
        1
    }

    /// Announces points that are evaluated next, in this order.
    fn expect(&mut self, points: &[Point]) {
        let _ = points;
    }

    /// Points that were announced and not evaluated will not be.
    fn abandon(&mut self) {}

    /// The outcome of a point.
    ///
    /// # Errors
    /// A point that is not legal, or a device that fails.
    fn evaluate(&mut self, point: &Point) -> Result<Outcome, Refused>;

    /// The clock of the evaluations: seconds since the first one began.
    fn seconds(&self) -> f64;

    /// Whether to end now, whatever the budget has left.
    fn is_over(&self) -> bool {
        false
    }
}

/// Why a point was not evaluated.
#[derive(Clone, Debug, PartialEq)]
pub enum Refused {
    /// It is not legal, and why not. The search hears of it, and goes on.
    Illegal(String),
    /// The device failed. The run ends.
    Device(DeviceError),
}

/// [`Evaluate`] by looking up: outcomes with the seconds that they took.
pub struct Recorded<F> {
    look_up: F,
    batch: usize,
    seconds: f64,
}

impl<F: FnMut(&Point) -> Option<(Outcome, f64)>> Recorded<F> {
    /// A recording that is asked for `batch` points at a time, as devices that measure in parallel would be. What is not recorded
    /// is not legal.
    pub fn new(batch: usize, look_up: F) -> Self {
        Self { look_up, batch, seconds: 0.0 }
    }
}

impl<F: FnMut(&Point) -> Option<(Outcome, f64)>> Evaluate for Recorded<F> {
    fn ahead(&self) -> usize {
        self.batch
    }

    fn evaluate(&mut self, point: &Point) -> Result<Outcome, Refused> {
        let Some((outcome, seconds)) = (self.look_up)(point) else {
            return Err(Refused::Illegal("it was not recorded".into()));
        };
        self.seconds += seconds;
        Ok(outcome)
    }

    fn seconds(&self) -> f64 {
        self.seconds
    }
}

/// Why a run has no trace.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DriveError {
    /// A strategy that only proposes what is not legal.
    #[error("strategy {strategy:?} only proposes illegal points: {count} in a row, the last {point:?}: {why}")]
    OnlyIllegal {
        /// The strategy.
        strategy: String,
        /// How many.
        count: u64,
        /// The last one.
        point: Point,
        /// Why it is not legal.
        why: String,
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Lets a search ask until it or the budget ends, `strategy` being its name for messages. A proposal that is not legal is never
/// measured: the search is told that it failed.
///
/// # Errors
/// A device that fails, or a search that proposes nothing legal.
pub fn drive<E: Evaluate + ?Sized>(
    search: &mut dyn Search,
    strategy: &str,
    objective: &Objective,
    budget: &Budget,
    on: &mut E,
) -> Result<Trace, DriveError> {
    let mut run = Run { strategy, objective, trace: Trace::empty(), in_a_row: 0 };
    let asked = run.ask(search, budget, on);
    on.abandon();
    let (ended, last) = asked?;
    run.finish(search, ended, last, on)
}

/// The last evaluated point, with its outcome.
type Last = Option<(Point, Outcome)>;

/// A run so far.
struct Run<'a> {
    strategy: &'a str,
    objective: &'a Objective,
    trace: Trace,
    /// Illegal proposals since the last legal one.
    in_a_row: u64,
}

impl Run<'_> {
    /// Asks and evaluates until something ends it: what, if not the search itself, and the last that was told.
    fn ask<E: Evaluate + ?Sized>(
        &mut self,
        search: &mut dyn Search,
        budget: &Budget,
        on: &mut E,
    ) -> Result<(Option<StoppedBy>, Last), DriveError> {
        let batch = on.ahead().max(1);
        let mut told = Vec::with_capacity(batch);
        let ended = loop {
            if let Some(ended) = self.ended(search, budget, on) {
                break Some(ended);
            }
            let left = budget.evaluations.map_or(usize::MAX, |most| (most - self.trace.evaluations) as usize);
            let points = search.ask(batch.min(left));
            if points.is_empty() {
                break None;
            }
            if batch > 1 {
                on.expect(&points);
            }
            told.clear();
            for point in points {
                if !told.is_empty() && self.is_out_of_time(budget, on) {
                    break;
                }
                let outcome = self.evaluate(&point, on)?;
                told.push((point, outcome));
            }
            search.tell(&told);
        };
        Ok((ended, told.pop()))
    }

    fn ended<E: Evaluate + ?Sized>(&self, search: &dyn Search, budget: &Budget, on: &E) -> Option<StoppedBy> {
        if budget.evaluations.is_some_and(|most| self.trace.evaluations >= most) {
            return Some(StoppedBy::Evaluations);
        }
        if self.is_out_of_time(budget, on) {
            return Some(StoppedBy::Time);
        }
        let kept = budget.bound.is_some_and(|most| search.bound().is_some_and(|b| b <= most));
        kept.then_some(StoppedBy::Bound)
    }

    fn is_out_of_time<E: Evaluate + ?Sized>(&self, budget: &Budget, on: &E) -> bool {
        let is_over = || on.is_over() || budget.seconds.is_some_and(|most| on.seconds() >= most);
        self.trace.evaluations + self.trace.illegal >= budget.least && is_over()
    }

    fn evaluate<E: Evaluate + ?Sized>(&mut self, point: &Point, on: &mut E) -> Result<Outcome, DriveError> {
        let outcome = match on.evaluate(point) {
            Ok(outcome) => outcome,
            Err(Refused::Device(error)) => return Err(error.into()),
            Err(Refused::Illegal(why)) => return self.refuse(point, why),
        };
        self.in_a_row = 0;
        let trace = &mut self.trace;
        trace.evaluations += 1;
        trace.seconds = on.seconds();
        let cost = outcome.as_ref().ok().and_then(|m| self.objective.cost(m));
        if let Some(cost) = cost.filter(|c| trace.best().is_none_or(|best| *c < best)) {
            trace.steps.push(Step { evaluations: trace.evaluations, seconds: trace.seconds, cost });
        }
        Ok(outcome)
    }

    fn refuse(&mut self, point: &Point, why: String) -> Result<Outcome, DriveError> {
        self.trace.illegal += 1;
        self.in_a_row += 1;
        if self.in_a_row >= MOST_ILLEGAL {
            return Err(self.only_illegal(point, why));
        }
        let message = format!("strategy {:?} proposed the illegal point {point:?}: {why}", self.strategy);
        Ok(Err(Failure { kind: FailureKind::Illegal, message }))
    }

    fn only_illegal(&self, point: &Point, why: String) -> DriveError {
        let strategy = self.strategy.to_owned();
        DriveError::OnlyIllegal { strategy, count: self.in_a_row, point: point.clone(), why }
    }

    fn finish<E: Evaluate + ?Sized>(
        mut self,
        search: &dyn Search,
        ended: Option<StoppedBy>,
        last: Last,
        on: &E,
    ) -> Result<Trace, DriveError> {
        if let (0, Some((point, Err(failure)))) = (self.trace.evaluations, last) {
            return Err(self.only_illegal(&point, failure.message));
        }
        self.trace.seconds = on.seconds();
        self.trace.bound = search.bound();
        // A search that promises something and ends with points left has kept its promise.
        let kept = self.trace.bound.is_some_and(|b| b > 0.0);
        self.trace.stopped_by = ended.unwrap_or(if kept { StoppedBy::Bound } else { StoppedBy::Exhausted });
        Ok(self.trace)
    }
}

/// Runs with the seeds `first..first + count`, in parallel; in order of the seeds.
pub fn repeat<T: Send>(first: u64, count: u64, one: impl Fn(u64) -> T + Sync) -> Vec<T> {
    (0..count).into_par_iter().map(|i| one(first.wrapping_add(i))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_know_the_best_at_any_budget() {
        let step = |evaluations, cost| Step { evaluations, seconds: evaluations as f64 * 2.0, cost };
        let trace = Trace { steps: vec![step(2, 5.0), step(7, 3.0)], evaluations: 9, seconds: 18.0, ..Trace::empty() };
        assert_eq!([1, 2, 6, 7, 100].map(|n| trace.best_after(n)), [None, Some(5.0), Some(5.0), Some(3.0), Some(3.0)]);
    }

    #[test]
    fn what_was_announced_and_is_not_wanted_is_abandoned() {
        struct Counts(Vec<&'static str>);
        impl Evaluate for Counts {
            fn ahead(&self) -> usize {
                4
            }
            fn expect(&mut self, _: &[Point]) {
                self.0.push("expect");
            }
            fn abandon(&mut self) {
                self.0.push("abandon");
            }
            fn evaluate(&mut self, _: &Point) -> Result<Outcome, Refused> {
                self.0.push("evaluate");
                Ok(Ok(tilewright_core::measurement::Measurement::recorded(1.0)))
            }
            fn seconds(&self) -> f64 {
                0.0
            }
        }
        struct Asks(u16);
        impl Search for Asks {
            fn ask(&mut self, n: usize) -> Vec<Point> {
                self.0 += 1;
                if self.0 > 1 { Vec::new() } else { (0..n as u16).map(|i| Point(vec![i])).collect() }
            }
            fn tell(&mut self, _: &[(Point, Outcome)]) {}
            fn best(&self) -> tilewright_core::search::Ranked {
                tilewright_core::search::Ranked { points: Vec::new(), considered: 0 }
            }
        }
        let mut counts = Counts(Vec::new());
        drive(&mut Asks(0), "asks", &Objective::default(), &Budget::NONE, &mut counts).unwrap();
        assert_eq!(counts.0, ["expect", "evaluate", "evaluate", "evaluate", "evaluate", "abandon"]);
    }

    #[test]
    fn a_budget_of_nothing_is_refused() {
        assert!(Budget::NONE.check().is_ok() && Budget::evaluations(1).check().is_ok());
        assert_eq!(Budget::evaluations(0).check().unwrap_err().what, "evaluations");
        assert!(Budget { seconds: Some(f64::NAN), ..Budget::NONE }.check().is_err());
        assert!(Budget { bound: Some(-0.1), ..Budget::NONE }.check().is_err());
    }
}
