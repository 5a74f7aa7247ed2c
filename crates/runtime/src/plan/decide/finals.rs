//! The last comparison: who takes part, and who wins.

use super::{Deciding, FAVOURITES};
use crate::error::RuntimeError;
use crate::plan::ties::Preference;
use tilewright_core::space::Point;

/// Candidates that are compared with each other after searching.
const FINALISTS: usize = 24;

/// Candidates that join them because they come first in the order among equals, where they are close enough. Of a hundred that are
/// within the noise of the best the fastest measured ones are others on every run, and these are the same.
const PREFERRED: usize = 8;

/// Rounds that a comparison should have at least.
const ROUNDS_AT_LEAST: u32 = 4;

impl Deciding<'_> {
    /// Times the best few of everything against each other.
    pub(super) fn finals(&mut self, favourites: Vec<Point>) -> Result<Vec<usize>, RuntimeError> {
        let objective = &self.settings.objective;
        let mut finalists: Vec<usize> = self.bench.pool.by_cost(objective);
        finalists.retain(|&at| self.bench.pool.get(at).measurement().is_some());
        let best = finalists.first().map_or(f64::INFINITY, |&at| self.bench.pool.get(at).cost(objective));
        let [most, favoured, preferred] = self.room(&finalists);
        let mut rest = finalists.split_off(finalists.len().min(most));
        for point in favourites.into_iter().take(favoured) {
            let predicted = self.bench.predicted(&point);
            let at = self.bench.pool.add(point, predicted);
            if !finalists.contains(&at) {
                finalists.push(at);
            }
        }
        let limit = best * (1.0 + self.settings.paired.drop_beyond);
        let is_close = |at: &usize| !finalists.contains(at) && self.bench.pool.get(*at).cost(objective) <= limit;
        let mut close: Vec<usize> = rest.iter().copied().filter(is_close).collect();
        self.preference().sort_unseen(&mut close);
        finalists.extend(close.into_iter().take(preferred));
        // Noise must keep neither what is remembered nor the default from its chance: an answer that was looked for again is never
        // worse, and none is worse than no tuning at all.
        for kept in [self.bench.remembered, self.default].into_iter().flatten() {
            if rest.contains(&kept) && !finalists.contains(&kept) {
                finalists.push(kept);
            }
        }
        rest.retain(|at| !finalists.contains(at));
        // Where the time ends with the first round, the last ones are out.
        self.preference().sort_unseen(&mut finalists);
        let mut order = if finalists.len() > 1 { self.compare(&finalists)? } else { finalists };
        order.extend(rest);
        self.expect_any_ran(order)
    }

    /// How many of the best, of the favourites and of the preferred the time of a comparison has room for: a few rounds of few say
    /// more than one of many.
    fn room(&self, best_first: &[usize]) -> [usize; 3] {
        const FEWEST: usize = 2;
        let time = self.settings.paired.max_time.as_secs_f64();
        // Each turn is a warm-up and a timed run at least.
        let turn =
            best_first.first().and_then(|&at| self.bench.pool.get(at).measurement()).map_or(0.0, |m| 2.0 * m.time_s);
        let turns = time / (turn * f64::from(ROUNDS_AT_LEAST)).max(f64::MIN_POSITIVE);
        let share = |count: usize, of: f64| count.min((turns * of) as usize).max(FEWEST);
        [share(FINALISTS, 0.5), share(FAVOURITES, 0.25), share(PREFERRED, 0.25)]
    }

    /// Times candidates against each other; those that count as equal to the best in the stated order, then the others, the best first.
    pub(super) fn compare(&mut self, candidates: &[usize]) -> Result<Vec<usize>, RuntimeError> {
        let (mut equals, behind) = self.bench.compare(candidates, &self.settings.paired, self.clock)?;
        self.preference().sort(&mut equals.members);
        let order = equals.members.iter().map(|(at, _)| *at).chain(behind).collect();
        self.equals = Some(equals);
        Ok(order)
    }

    /// The order among candidates that count as equal.
    pub(super) fn preference(&self) -> Preference<'_> {
        Preference::new(self.problem, &self.bench.pool, (self.bench.remembered, self.default))
    }
}
