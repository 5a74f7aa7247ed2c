//! Where the configurations of a decision are timed.

use super::pool::Pool;
use super::ties::Equals;
use crate::paired::{Comparison, PairedSettings, compare};
use tilewright_core::measurement::{Failure, FailureKind, Outcome};
use tilewright_core::objective::Objective;
use tilewright_core::program::DeviceError;
use tilewright_core::space::Point;
use tilewright_core::timing::Clock;
use tilewright_search::drive::{Evaluate, Refused};
use tilewright_search::{Evaluator, Model};

/// The configurations of a decision, and what times them.
pub(super) struct Bench<'a> {
    /// None where nothing can be timed.
    pub(super) live: Option<Evaluator<'a>>,
    pub(super) pool: Pool,
    /// The answer of the plan cache, which wins unless a better one is found.
    pub(super) remembered: Option<usize>,
    pub(super) objective: &'a Objective,
    /// Predicts what is timed, where that costs next to nothing.
    pub(super) model: Option<Model<'a>>,
    /// Timings, not configurations.
    pub(super) timed: u64,
    pub(super) failed: u64,
}

impl<'a> Bench<'a> {
    pub(super) fn new(live: Option<Evaluator<'a>>, objective: &'a Objective) -> Self {
        Self { live, pool: Pool::default(), remembered: None, objective, model: None, timed: 0, failed: 0 }
    }

    /// What the model expects of a point.
    pub(super) fn predicted(&self, point: &Point) -> Option<f64> {
        self.model.map(|model| model.cost(point))
    }

    /// Begins a search: its clock, and the record that it has to beat.
    pub(super) fn begin(&mut self) {
        let best = self.pool.by_cost(self.objective).first().map(|&at| self.pool.get(at));
        let record = best.map(|c| (c.point.clone(), c.cost(self.objective))).filter(|(_, cost)| cost.is_finite());
        if let Some(live) = &mut self.live {
            live.restart();
            live.set_record(record);
        }
    }

    /// Times one candidate once, cut off by the best so far.
    pub(super) fn time(&mut self, at: usize) -> Result<Outcome, DeviceError> {
        let Some(live) = &mut self.live else {
            return Ok(Err(Failure { kind: FailureKind::Launch, message: "nothing to time it on".into() }));
        };
        // One disturbed run must not put what is remembered out of the contest.
        let limit = (self.remembered != Some(at)).then(|| self.pool.best_cost(self.objective));
        live.set_best(limit);
        let outcome = live.time(&self.pool.get(at).point)?;
        match &outcome {
            Ok(_) => self.timed += 1,
            Err(_) => self.failed += 1,
        }
        self.pool.get_mut(at).outcome = Some(outcome.clone());
        Ok(outcome)
    }

    /// Times candidates in interleaved rounds; those that count as equal to the best, and the others behind them, the best first.
    pub(super) fn compare(
        &mut self,
        candidates: &[usize],
        how: &PairedSettings,
        clock: &dyn Clock,
    ) -> Result<(Equals, Vec<usize>), DeviceError> {
        let points: Vec<Point> = candidates.iter().map(|at| self.pool.get(*at).point.clone()).collect();
        if self.ahead() > 1 {
            self.expect(&points);
        }
        let objective = self.objective;
        let compared = compare(candidates.len(), objective, how, clock, &mut |i| self.time(candidates[i]));
        // Time may have ended before all of them were timed.
        self.abandon();
        let Comparison { contenders, within } = compared?;
        let (mut members, mut behind) = (Vec::new(), Vec::new());
        for contender in contenders {
            let at = candidates[contender.index];
            self.pool.get_mut(at).outcome = Some(contender.outcome);
            match contender.tied {
                Some(relative) => members.push((at, relative)),
                None => behind.push(at),
            }
        }
        Ok((Equals { members, within }, behind))
    }
}

impl Evaluate for Bench<'_> {
    fn ahead(&self) -> usize {
        self.live.as_ref().map_or(1, Evaluate::ahead)
    }

    fn expect(&mut self, points: &[Point]) {
        if let Some(live) = &mut self.live {
            live.expect(points);
        }
    }

    fn abandon(&mut self) {
        if let Some(live) = &mut self.live {
            live.abandon();
        }
    }

    fn evaluate(&mut self, point: &Point) -> Result<Outcome, Refused> {
        if let Some(live) = &self.live {
            live.check(point)?;
        }
        let predicted = self.predicted(point);
        let at = self.pool.add(point.clone(), predicted);
        let outcome = self.time(at).map_err(Refused::Device)?;
        let Some(live) = &mut self.live else { return Ok(outcome) };
        let outcome = live.confirmed(point, outcome).map_err(Refused::Device)?;
        self.pool.get_mut(at).outcome = Some(outcome.clone());
        Ok(outcome)
    }

    fn seconds(&self) -> f64 {
        self.live.as_ref().map_or(0.0, Evaluate::seconds)
    }
}
