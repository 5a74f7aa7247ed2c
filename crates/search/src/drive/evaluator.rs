//! Evaluating by measuring.

use super::{Evaluate, Refused};
use std::time::Duration;
use tilewright_core::device::Device;
use tilewright_core::measurement::{Measurement, Outcome, Timing};
use tilewright_core::objective::Objective;
use tilewright_core::problem::{Measure, MeasureError, Problem};
use tilewright_core::program::DeviceError;
use tilewright_core::space::Point;
use tilewright_core::timing::Clock;

/// Points that are asked for at once, at most: each knows less than if it had waited for the others.
const MOST_AT_ONCE: usize = 12;

/// How far behind the best a measurement may fall, in times of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Beyond it is cut off.
    pub cut_off: f64,
    /// Beyond it is run once only.
    pub rough: f64,
}

/// [`Evaluate`] on anything that measures, each point limited by the best so far where the objective is the time.
pub struct Evaluator<'a> {
    problem: &'a dyn Problem,
    measure: &'a mut dyn Measure,
    objective: &'a Objective,
    timing: &'a Timing,
    limits: Limits,
    clock: &'a dyn Clock,
    began: Duration,
    best_s: Option<f64>,
    /// The best point evaluated, and its cost.
    record: Option<(Point, f64)>,
    /// How many times slower the machine is than when the record was timed, and when that was found.
    pace: (f64, Duration),
    /// Time spent on timing again what was timed before.
    again: Duration,
}

/// Timing again takes at most this share of the time so far: where a run takes long it says little that is new, and what it costs is
/// missing for points that nobody has seen.
const AGAIN: f64 = 0.1;

/// As long as all of it is shorter than this, it is not counted.
const FREE: Duration = Duration::from_millis(100);

/// Runs of one timing at least: one that does not count, and one that does.
const RUNS: f64 = 2.0;

/// How often a new record is timed again in turn with the one before, and the record by itself to see the machine's pace.
const CONFIRMED: usize = 3;

/// How long the machine is taken to keep its pace.
const STEADY: Duration = Duration::from_secs(1);

impl<'a> Evaluator<'a> {
    /// Measures points of a problem; its clock begins now.
    pub fn new(
        problem: &'a dyn Problem,
        measure: &'a mut dyn Measure,
        objective: &'a Objective,
        (timing, limits): (&'a Timing, Limits),
        clock: &'a dyn Clock,
    ) -> Self {
        let (began, best_s, record, again) = (clock.now(), None, None, Duration::ZERO);
        Self { problem, measure, objective, timing, limits, clock, began, best_s, record, pace: (1.0, began), again }
    }

    /// What limits the next measurements.
    pub fn set_best(&mut self, cost: Option<f64>) {
        self.best_s = cost.filter(|cost| cost.is_finite() && *self.objective == Objective::default());
    }

    /// The best point that is known before anything is evaluated, and its cost.
    pub fn set_record(&mut self, record: Option<(Point, f64)>) {
        (self.record, self.pace) = (record, (1.0, self.clock.now()));
    }

    /// Lets the clock begin now.
    pub fn restart(&mut self) {
        (self.began, self.again) = (self.clock.now(), Duration::ZERO);
    }

    /// How a point is measured now.
    pub fn timing(&self) -> Timing {
        let limit = |times: f64| self.best_s.map(|s| Duration::try_from_secs_f64(s * times).unwrap_or(Duration::MAX));
        Timing { cut_off: limit(self.limits.cut_off), rough_beyond: limit(self.limits.rough), ..self.timing.clone() }
    }

    /// Refuses a point that is not legal.
    ///
    /// # Errors
    /// [`Refused::Illegal`].
    pub fn check(&self, point: &Point) -> Result<(), Refused> {
        self.problem.space().check(point).map(drop).map_err(|illegal| Refused::Illegal(illegal.to_string()))
    }

    /// The device that is measured on, to check results on it; recordings have none.
    pub fn device(&mut self) -> Option<&mut dyn Device> {
        self.measure.device()
    }

    /// Measures a legal point.
    ///
    /// # Errors
    /// The device fails.
    pub fn time(&mut self, point: &Point) -> Result<Outcome, DeviceError> {
        let timing = self.timing();
        let outcome = match self.measure.measure(self.problem, point, &timing) {
            Ok(measurement) => Ok(measurement),
            Err(MeasureError::Failed(failure)) => Err(failure),
            Err(MeasureError::Device(error)) => return Err(error),
        };
        let cost = outcome.as_ref().ok().and_then(|m| self.objective.cost(m));
        if let Some(cost) = cost.filter(|c| self.best_s.is_none_or(|best| *c < best)) {
            self.set_best(Some(cost));
        }
        Ok(outcome)
    }
}

impl Evaluator<'_> {
    /// Whether there is time to time something of this cost again, so often.
    fn affords(&self, times: usize, cost: f64) -> bool {
        let most = FREE.max(self.clock.now().saturating_sub(self.began).mul_f64(AGAIN));
        Duration::try_from_secs_f64(RUNS * times as f64 * cost).is_ok_and(|price| self.again + price <= most)
    }

    /// How many times slower the machine is than when the record was timed. Clocks rise and fall and neighbours come and go: a search of
    /// minutes compares its points with a record that it would not reach again.
    fn pace(&mut self) -> Result<f64, DeviceError> {
        let (pace, found) = self.pace;
        let record = self.record.clone().filter(|_| *self.objective == Objective::default());
        let Some((point, level)) = record.filter(|_| self.clock.now().saturating_sub(found) >= STEADY) else {
            return Ok(pace);
        };
        if !self.affords(CONFIRMED, level) {
            return Ok(pace);
        }
        let (mut costs, began) = (Vec::with_capacity(CONFIRMED), self.clock.now());
        for _ in 0..CONFIRMED {
            costs.extend(self.time(&point)?.ok().map(|m| m.time_s));
        }
        costs.sort_by(f64::total_cmp);
        let pace = costs.get(costs.len() / 2).map_or(pace, |now| now / level);
        let now = self.clock.now();
        self.again += now.saturating_sub(began);
        self.pace = (pace, now);
        Ok(pace)
    }

    /// The outcome of a point that was just measured, at the pace that the machine had when the record was timed, and confirmed where it
    /// is a record: one that is lucky, or was timed while the machine
    /// was quicker, would be believed from then on, and nothing would come near it. It is timed again in turn with the record
    /// before, and has that one's cost times the median of their ratios.
    ///
    /// # Errors
    /// The device fails.
    pub fn confirmed(&mut self, point: &Point, outcome: Outcome) -> Result<Outcome, DeviceError> {
        let pace = self.pace()?;
        let outcome = if pace == 1.0 { outcome } else { outcome.map(|m| Measurement { time_s: m.time_s / pace, ..m }) };
        let Ok(measured) = &outcome else { return Ok(outcome) };
        let Some(cost) = self.objective.cost(measured) else { return Ok(outcome) };
        let Some((before, level)) = self.record.clone().filter(|(before, _)| before != point) else {
            self.record = Some((point.clone(), cost));
            return Ok(outcome);
        };
        if cost >= level || *self.objective != Objective::default() {
            return Ok(outcome);
        }
        if !self.affords(2 * CONFIRMED, level) {
            self.record = Some((point.clone(), cost));
            return Ok(outcome);
        }
        let (mut ratios, mut is_exact, began) = (Vec::with_capacity(CONFIRMED), true, self.clock.now());
        for _ in 0..CONFIRMED {
            let (old, new) = (self.time(&before)?, self.time(point)?);
            let cost_of = |o: &Outcome| o.as_ref().ok().and_then(|m| self.objective.cost(m));
            if let (Some(old), Some(new)) = (cost_of(&old), cost_of(&new)) {
                is_exact &= (old, new) == (level, cost);
                ratios.push(new / old);
            }
        }
        self.again += self.clock.now().saturating_sub(began);
        ratios.sort_by(f64::total_cmp);
        let settled = match ratios.get(ratios.len() / 2) {
            Some(ratio) if !is_exact => level * ratio,
            _ => cost,
        };
        if settled < level {
            self.record = Some((point.clone(), settled));
        }
        self.set_best(Some(settled.min(level)));
        // As it is where nothing changes: not every product with a quotient of one gives back its factor.
        let level = if settled == cost { 1.0 } else { settled / cost };
        Ok(outcome.map(|m| Measurement { time_s: m.time_s * level, ..m }))
    }
}

impl Evaluate for Evaluator<'_> {
    fn ahead(&self) -> usize {
        self.measure.ahead().clamp(1, MOST_AT_ONCE)
    }

    fn expect(&mut self, points: &[Point]) {
        let space = self.problem.space();
        let legal: Vec<Point> = points.iter().filter(|p| space.is_legal(p)).cloned().collect();
        self.measure.expect(self.problem, &legal);
    }

    fn abandon(&mut self) {
        self.measure.abandon();
    }

    fn evaluate(&mut self, point: &Point) -> Result<Outcome, Refused> {
        self.check(point)?;
        let outcome = self.time(point).map_err(Refused::Device)?;
        self.confirmed(point, outcome).map_err(Refused::Device)
    }

    fn seconds(&self) -> f64 {
        self.clock.now().saturating_sub(self.began).as_secs_f64()
    }
}
