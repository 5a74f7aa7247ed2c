//! Runs a strategy against something that measures, within a budget, and keeps the trace.

use rayon::prelude::*;
use tilewright_core::measurement::Outcome;
use tilewright_core::objective::Objective;
use tilewright_core::search::Search;
use tilewright_core::space::Point;

/// When a run ends at the latest. What is none does not end it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Evaluations of distinct points, failed ones included.
    pub evaluations: Option<u64>,
    /// Seconds on the clock of the evaluations.
    pub seconds: Option<f64>,
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
    pub const NONE: Self = Self { evaluations: None, seconds: None, bound: None };

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Seconds on the clock of the evaluations.
    pub seconds: f64,
    /// The search's bound at the end, where it has one.
    pub bound: Option<f64>,
    /// Why it ended.
    pub stopped_by: StoppedBy,
}

impl Trace {
    /// The best cost after so many evaluations; none if nothing had a cost by then.
    pub fn best_after(&self, evaluations: u64) -> Option<f64> {
        let at = self.steps.partition_point(|s| s.evaluations <= evaluations);
        at.checked_sub(1).map(|i| self.steps[i].cost)
    }

    /// The best cost at a time of the clock; none if nothing had a cost by then.
    pub fn best_at(&self, seconds: f64) -> Option<f64> {
        let at = self.steps.partition_point(|s| s.seconds <= seconds);
        at.checked_sub(1).map(|i| self.steps[i].cost)
    }

    /// The best cost of all; none if nothing had one.
    pub fn best(&self) -> Option<f64> {
        self.steps.last().map(|s| s.cost)
    }
}

/// Lets a search ask until it or the budget ends. `evaluate` gives the outcome of a point and the seconds it took; `batch`
/// points are asked at a time, as devices that measure in parallel would.
pub fn run(
    search: &mut dyn Search,
    budget: &Budget,
    batch: usize,
    evaluate: &mut dyn FnMut(&Point) -> (Outcome, f64),
) -> Trace {
    let objective = Objective::default();
    let mut trace =
        Trace { steps: Vec::new(), evaluations: 0, seconds: 0.0, bound: None, stopped_by: StoppedBy::Exhausted };
    let mut told = Vec::with_capacity(batch);
    let ended = loop {
        if budget.evaluations.is_some_and(|most| trace.evaluations >= most) {
            break Some(StoppedBy::Evaluations);
        }
        if budget.seconds.is_some_and(|most| trace.seconds >= most) {
            break Some(StoppedBy::Time);
        }
        if budget.bound.is_some_and(|most| search.bound().is_some_and(|b| b <= most)) {
            break Some(StoppedBy::Bound);
        }
        let left = budget.evaluations.map_or(usize::MAX, |most| (most - trace.evaluations) as usize);
        let points = search.ask(batch.max(1).min(left));
        if points.is_empty() {
            break None;
        }
        told.clear();
        for point in points {
            let (outcome, seconds) = evaluate(&point);
            trace.evaluations += 1;
            trace.seconds += seconds;
            let cost = outcome.as_ref().ok().and_then(|m| objective.cost(m));
            if let Some(cost) = cost.filter(|c| trace.best().is_none_or(|best| *c < best)) {
                trace.steps.push(Step { evaluations: trace.evaluations, seconds: trace.seconds, cost });
            }
            told.push((point, outcome));
        }
        search.tell(&told);
    };
    trace.bound = search.bound();
    // A search that promises something and ends with points left has kept its promise.
    let kept = trace.bound.is_some_and(|b| b > 0.0);
    trace.stopped_by = ended.unwrap_or(if kept { StoppedBy::Bound } else { StoppedBy::Exhausted });
    trace
}

/// Runs with the seeds `first..first + count`, in parallel; in order of the seeds.
pub fn repeat(first: u64, count: u64, one: impl Fn(u64) -> Trace + Sync) -> Vec<Trace> {
    (0..count).into_par_iter().map(|i| one(first.wrapping_add(i))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_know_the_best_at_any_budget() {
        let step = |evaluations, cost| Step { evaluations, seconds: evaluations as f64 * 2.0, cost };
        let trace = Trace {
            steps: vec![step(2, 5.0), step(7, 3.0)],
            evaluations: 9,
            seconds: 18.0,
            bound: None,
            stopped_by: StoppedBy::Evaluations,
        };
        assert_eq!([1, 2, 6, 7, 100].map(|n| trace.best_after(n)), [None, Some(5.0), Some(5.0), Some(3.0), Some(3.0)]);
        assert_eq!([3.9, 4.0, 14.0].map(|s| trace.best_at(s)), [None, Some(5.0), Some(3.0)]);
    }

    #[test]
    fn a_budget_of_nothing_is_refused() {
        assert!(Budget::NONE.check().is_ok() && Budget::evaluations(1).check().is_ok());
        assert_eq!(Budget::evaluations(0).check().unwrap_err().what, "evaluations");
        assert!(Budget { seconds: Some(f64::NAN), ..Budget::NONE }.check().is_err());
        assert!(Budget { bound: Some(-0.1), ..Budget::NONE }.check().is_err());
    }
}
