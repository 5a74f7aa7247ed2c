//! Looking around by measuring.

use super::decide::Deciding;
use super::nearby::Nearby;
use crate::error::RuntimeError;
use crate::timing::Clock;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::time::Duration;
use tilewright_core::search::Search;
use tilewright_core::space::Point;
use tilewright_sampler::DrawError;
use tilewright_search::strategy::Local;

/// Candidates that are compared with each other after looking around.
const FINALISTS: usize = 24;

/// Candidates that join them because the regression over all measurements expects most of them.
const FAVOURITES: usize = 12;

/// Rounds that a comparison should have at least.
const ROUNDS_AT_LEAST: u32 = 4;

/// The share of neighbours that the regression chooses.
const ADVISED: f64 = 0.8;

/// Without a model: configurations that are drawn before any neighbourhood is looked at.
const DRAWN_FIRST: usize = 16;

/// Proposals that are made before any of them is timed, at most.
const MOST_AT_ONCE: usize = 12;

/// Known points in a row after which the space counts as seen.
const MISSES: u32 = 500;

/// Points with what the model expects of them.
type Favourites = Vec<(Option<f64>, Point)>;

impl Deciding<'_, '_> {
    /// Times neighbours of the best so far, and a share of `drawn` ones, until the time is over or nothing new is found; those
    /// that are expected to be the best after all.
    pub(super) fn explore(&mut self, time: Duration, drawn: f64) -> Result<Favourites, RuntimeError> {
        let seed = self.planner.settings.seed;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut local = Local::new(self.problem.space(), self.objective(), Vec::new(), seed);
        let known = self.pool.iter().filter_map(|c| Some((c.point.clone(), c.outcome.clone()?)));
        local.tell(&known.collect::<Vec<_>>());
        let end = self.clock.now() + time;
        let mut ranked = std::mem::take(&mut self.ranked);
        ranked.retain(|_| !self.is_dear);
        let asked = self.planner.predictor.filter(|_| !self.is_dear);
        let scorer = asked.map(|predictor| predictor.bind(self.problem)).transpose()?;
        let mut nearby = Nearby::new(self.problem, scorer, ranked);
        // Where code is compiled ahead, a few proposals are made at once; they know less of each other.
        let at_once = self.ahead().min(MOST_AT_ONCE);
        let mut waiting: VecDeque<Point> = VecDeque::new();
        let mut misses = 0;
        while self.clock.now() < end && misses < MISSES {
            let few = self.pool.len() < DRAWN_FIRST && drawn > 0.0;
            let point = if few || rng.random::<f64>() < drawn {
                self.draw(&mut rng)?
            } else if rng.random::<f64>() < ADVISED {
                nearby.propose(&self.pool, &self.objective(), &mut rng)
            } else {
                local.ask(1).pop()
            };
            // One of the two may have run dry before the other: a neighbourhood that is known leaves time for new ones.
            let point = match point {
                Some(point) => Some(point),
                None => local.ask(1).pop().map_or_else(|| self.draw(&mut rng), |point| Ok(Some(point)))?,
            };
            let Some(point) = point else { break };
            if self.pool.contains(&point) || waiting.contains(&point) {
                misses += 1;
                continue;
            }
            misses = 0;
            waiting.push_back(point);
            if waiting.len() < at_once {
                continue;
            }
            if at_once > 1 {
                self.announce(waiting.make_contiguous());
            }
            self.time_all(&mut waiting, end, &nearby, &mut local)?;
        }
        self.time_all(&mut waiting, end, &nearby, &mut local)?;
        let favourites = nearby.favourites(&self.pool, &self.objective(), FAVOURITES, &mut rng);
        Ok(favourites.into_iter().map(|point| (nearby.predicted(&point), point)).collect())
    }

    /// Times what waits, as far as there is time.
    fn time_all(
        &mut self,
        waiting: &mut VecDeque<Point>,
        end: Duration,
        nearby: &Nearby<'_>,
        local: &mut Local<'_>,
    ) -> Result<(), RuntimeError> {
        while let Some(point) = waiting.pop_front() {
            if self.clock.now() >= end {
                break;
            }
            let predicted = nearby.predicted(&point);
            let at = self.pool.add(point, predicted);
            self.time(at)?;
            let candidate = self.pool.get(at);
            local
                .tell(&candidate.outcome.clone().map(|o| (candidate.point.clone(), o)).into_iter().collect::<Vec<_>>());
        }
        Ok(())
    }

    /// A drawn point; None if none was found.
    fn draw(&mut self, rng: &mut ChaCha8Rng) -> Result<Option<Point>, RuntimeError> {
        match self.planner.sampler.draw(self.problem.space(), rng) {
            Ok(draw) => Ok(Some(draw.point)),
            Err(DrawError::Exhausted { .. }) => Ok(None),
            Err(e) => Err(self.not_drawn(e)),
        }
    }

    /// Times the best few of everything against each other; `preferred` breaks ties.
    pub(super) fn finals(&mut self, preferred: &[usize], favourites: Favourites) -> Result<Vec<usize>, RuntimeError> {
        let objective = self.objective();
        let mut finalists: Vec<usize> = self.pool.by_cost(&objective);
        finalists.retain(|&at| self.pool.get(at).measurement().is_some());
        let (most, favoured) = self.room(&finalists);
        let mut rest = finalists.split_off(finalists.len().min(most));
        for (predicted, point) in favourites.into_iter().take(favoured) {
            let at = self.pool.add(point, predicted);
            if !finalists.contains(&at) {
                finalists.push(at);
            }
        }
        // Noise must not keep what is remembered from its chance: an answer that was looked for again is never worse.
        finalists.extend(self.remembered.filter(|at| rest.contains(at) && !finalists.contains(at)));
        rest.retain(|at| !finalists.contains(at));
        // Ties go to what is remembered, then to what the model ranked, then to what was found first.
        finalists.sort_by_key(|at| {
            (Some(*at) != self.remembered, preferred.iter().position(|p| p == at).unwrap_or(usize::MAX), *at)
        });
        let mut order = if finalists.len() > 1 { self.compare(&finalists)? } else { finalists };
        order.extend(rest);
        self.nothing_ran_or(order)
    }

    /// How many of the best, and of the favourites, the time of a comparison has room for: a few rounds of few say more than
    /// one of many.
    fn room(&self, best_first: &[usize]) -> (usize, usize) {
        const FEWEST: usize = 2;
        let time = self.planner.settings.paired.max_time.as_secs_f64();
        // Each turn is a warm-up and a timed run at least.
        let turn = best_first.first().and_then(|&at| self.pool.get(at).measurement()).map_or(0.0, |m| 2.0 * m.time_s);
        let turns = time / (turn * f64::from(ROUNDS_AT_LEAST)).max(f64::MIN_POSITIVE);
        let share = |count: usize| count.min((turns / 2.0) as usize).max(FEWEST);
        (share(FINALISTS), share(FAVOURITES))
    }
}
