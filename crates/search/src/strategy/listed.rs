//! What the strategies over a held list of points have in common.

use crate::history::{BEST, History, Ranking, cost};
use crate::listing::Listing;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::sync::Arc;
use tilewright_core::measurement::Outcome;
use tilewright_core::objective::Objective;
use tilewright_core::search::{Ranked, Search};
use tilewright_core::space::Point;

/// What is known of the numbered points.
#[derive(Clone, Debug)]
pub(crate) struct ListedHistory {
    pub(crate) listing: Arc<Listing>,
    objective: Objective,
    /// By point: NaN before it is told, infinite where it failed.
    costs: Vec<f64>,
    asked: Vec<bool>,
    /// Points that were told.
    told: u64,
    ranking: Ranking<u32>,
    /// Told points that are not on the list.
    others: History,
    /// Numbers in an order that becomes random as it is used (Fisher and Yates).
    order: Vec<u32>,
    used: usize,
}

impl ListedHistory {
    fn new(listing: Arc<Listing>, objective: Objective) -> Self {
        let count = listing.len();
        Self {
            listing,
            others: History::new(objective.clone()),
            objective,
            told: 0,
            ranking: Ranking::default(),
            costs: vec![f64::NAN; count],
            asked: vec![false; count],
            order: (0..count as u32).collect(),
            used: 0,
        }
    }

    /// Whether a point was asked or told.
    pub(crate) fn knows(&self, number: u32) -> bool {
        self.asked[number as usize]
    }

    /// The cost of a point: infinite for a failure, none before it is told.
    pub(crate) fn cost(&self, number: u32) -> Option<f64> {
        Some(self.costs[number as usize]).filter(|c| !c.is_nan())
    }

    /// Notes the cost of a point, infinite for a failure, and gives what was noted before: NaN for nothing.
    fn note(&mut self, number: u32, cost: f64) -> f64 {
        let before = std::mem::replace(&mut self.costs[number as usize], cost);
        self.told += u64::from(before.is_nan());
        if before.is_finite() {
            let timed = self.costs.iter().enumerate().filter(|(_, c)| c.is_finite());
            self.ranking.remove(&number, before, || timed.map(|(n, c)| (*c, n as u32)));
        }
        if cost.is_finite() {
            self.ranking.add(&number, cost);
        }
        before
    }

    /// The best points.
    fn best(&self) -> Ranked {
        let others = self.others.best();
        let mut points: Vec<(Point, f64)> =
            self.ranking.iter().map(|(n, cost)| (self.listing.point(*n), cost)).collect();
        if !others.points.is_empty() {
            points.extend(others.points);
            points.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
            points.truncate(BEST);
        }
        Ranked { points, considered: self.told + others.considered }
    }

    /// A point that nobody asked for, uniformly; none when all are known.
    pub(crate) fn unknown(&mut self, rng: &mut ChaCha8Rng) -> Option<u32> {
        while self.used < self.order.len() {
            let other = rng.random_range(self.used..self.order.len());
            self.order.swap(self.used, other);
            let number = self.order[self.used];
            self.used += 1;
            if !self.knows(number) {
                return Some(number);
            }
        }
        None
    }
}

/// A way to choose the next point.
pub(crate) trait Chooser: Send {
    /// The next point to ask for, none if outcomes are needed first. A point that is known already is not asked again,
    /// and something unknown is asked in its place.
    fn choose(&mut self, history: &mut ListedHistory, rng: &mut ChaCha8Rng) -> Option<u32>;

    /// The outcome of a point, infinite for a failure.
    fn learn(&mut self, history: &ListedHistory, number: u32, cost: f64, rng: &mut ChaCha8Rng);

    /// As [`Search::bound`].
    fn bound(&self, history: &ListedHistory) -> Option<f64> {
        let _ = history;
        None
    }

    /// Whether nothing more should be asked.
    fn done(&mut self, history: &ListedHistory) -> bool {
        let _ = history;
        false
    }
}

/// A [`Search`] that asks what a chooser chooses, until every point of the list is known.
pub(crate) struct Listed<C> {
    history: ListedHistory,
    rng: ChaCha8Rng,
    chooser: C,
    outstanding: usize,
    /// What was asked last, in order: outcomes mostly come in that order, and need no search in the list then.
    expected: VecDeque<u32>,
}

impl<C: Chooser> Listed<C> {
    pub(crate) fn new(listing: Arc<Listing>, objective: Objective, seed: u64, chooser: C) -> Self {
        Self {
            history: ListedHistory::new(listing, objective),
            rng: ChaCha8Rng::seed_from_u64(seed),
            chooser,
            outstanding: 0,
            expected: VecDeque::new(),
        }
    }

    fn number_of(&mut self, point: &Point) -> Option<u32> {
        let next = self.expected.front().copied().filter(|&n| self.history.listing.indices(n) == &**point);
        if next.is_some() {
            self.expected.pop_front();
        }
        next.or_else(|| self.history.listing.find(point))
    }

    fn next(&mut self) -> Option<u32> {
        match self.chooser.choose(&mut self.history, &mut self.rng) {
            Some(number) if !self.history.knows(number) => Some(number),
            Some(_) => self.history.unknown(&mut self.rng),
            None if self.outstanding > 0 => None,
            None => self.history.unknown(&mut self.rng),
        }
    }
}

impl<C: Chooser> Search for Listed<C> {
    fn ask(&mut self, n: usize) -> Vec<Point> {
        let mut out = Vec::with_capacity(n.min(self.history.listing.len()));
        self.expected.clear();
        while out.len() < n && !self.chooser.done(&self.history) {
            let Some(number) = self.next() else { break };
            self.history.asked[number as usize] = true;
            self.outstanding += 1;
            self.expected.push_back(number);
            out.push(self.history.listing.point(number));
        }
        out
    }

    fn tell(&mut self, seen: &[(Point, Outcome)]) {
        for (point, outcome) in seen {
            let Some(number) = self.number_of(point) else {
                self.history.others.tell(&[(point.clone(), outcome.clone())]);
                continue;
            };
            let cost = cost(&self.history.objective, outcome).unwrap_or(f64::INFINITY);
            let before = self.history.note(number, cost);
            let asked = std::mem::replace(&mut self.history.asked[number as usize], true);
            if asked && before.is_nan() {
                self.outstanding -= 1;
            }
            if before.is_nan() {
                self.chooser.learn(&self.history, number, cost, &mut self.rng);
            }
        }
    }

    fn best(&self) -> Ranked {
        self.history.best()
    }

    fn bound(&self) -> Option<f64> {
        self.chooser.bound(&self.history)
    }
}
