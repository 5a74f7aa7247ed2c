//! What a strategy has asked and been told.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use tilewright_core::measurement::Outcome;
use tilewright_core::objective::Objective;
use tilewright_core::search::Ranked;
use tilewright_core::space::Point;

/// Most points that are ranked.
pub(crate) const BEST: usize = 100;

/// A cost that orders; costs are positive and finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost(pub(crate) f64);

impl Eq for Cost {}

impl PartialOrd for Cost {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cost {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// What is known of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    /// Asked for and not told.
    Asked,
    /// Told with a cost.
    Took(f64),
    /// Told without one.
    Failed,
}

/// The best of what has a cost, at most [`BEST`]: keeping all in order would cost more than a replayed measurement.
#[derive(Clone, Debug)]
pub(crate) struct Ranking<K> {
    best: BTreeSet<(Cost, K)>,
    /// How many have a cost.
    timed: usize,
}

impl<K> Default for Ranking<K> {
    fn default() -> Self {
        Self { best: BTreeSet::new(), timed: 0 }
    }
}

impl<K: Ord + Clone> Ranking<K> {
    /// Adds one that is not there.
    pub(crate) fn add(&mut self, key: &K, cost: f64) {
        self.timed += 1;
        if self.best.len() == BEST {
            match self.best.last() {
                Some((worst, last)) if (Cost(cost), key) >= (*worst, last) => return,
                _ => drop(self.best.pop_last()),
            }
        }
        self.best.insert((Cost(cost), key.clone()));
    }

    /// Drops one that had this cost; `all` are those with a cost, with or without it.
    pub(crate) fn remove<I: Iterator<Item = (f64, K)>>(&mut self, key: &K, old: f64, all: impl FnOnce() -> I) {
        self.timed -= 1;
        let full = self.best.len() == BEST;
        if self.best.remove(&(Cost(old), key.clone())) && full && self.timed >= BEST {
            // Somebody who was not good enough before moves up.
            let mut all: Vec<(Cost, K)> = all().filter(|(_, k)| k != key).map(|(c, k)| (Cost(c), k)).collect();
            all.sort_unstable();
            self.best = all.into_iter().take(BEST).collect();
        }
    }

    /// Best first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, f64)> {
        self.best.iter().map(|(cost, key)| (key, cost.0))
    }
}

/// Points asked for and outcomes told.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    objective: Objective,
    known: HashMap<Point, Known>,
    ranking: Ranking<Point>,
    outstanding: usize,
}

impl History {
    pub(crate) fn new(objective: Objective) -> Self {
        Self { objective, ..Self::default() }
    }

    /// What is optimised.
    pub(crate) fn objective(&self) -> &Objective {
        &self.objective
    }

    /// Whether a point was asked or told.
    pub(crate) fn knows(&self, point: &Point) -> bool {
        self.known.contains_key(point)
    }

    /// Notes that a point is asked for; false if it was known.
    pub(crate) fn ask(&mut self, point: &Point) -> bool {
        if self.knows(point) {
            return false;
        }
        self.known.insert(point.clone(), Known::Asked);
        self.outstanding += 1;
        true
    }

    /// Notes outcomes; the latest of a point counts.
    pub(crate) fn tell(&mut self, seen: &[(Point, Outcome)]) {
        for (point, outcome) in seen {
            let now = cost(&self.objective, outcome).map_or(Known::Failed, Known::Took);
            let before = match self.known.get_mut(point) {
                Some(known) => Some(std::mem::replace(known, now)),
                None => self.known.insert(point.clone(), now),
            };
            match before {
                Some(Known::Asked) => self.outstanding -= 1,
                Some(Known::Took(old)) => {
                    let known = &self.known;
                    self.ranking.remove(point, old, || known.iter().filter_map(|(p, k)| Some((took(*k)?, p.clone()))));
                }
                Some(Known::Failed) | None => {}
            }
            if let Known::Took(cost) = now {
                self.ranking.add(point, cost);
            }
        }
    }

    /// How many points were told.
    pub(crate) fn settled(&self) -> usize {
        self.known.len() - self.outstanding
    }

    /// How many points were asked for and not told.
    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Points with a cost, best first; no more than the first hundred.
    pub(crate) fn ranked(&self) -> impl Iterator<Item = &Point> {
        self.ranking.iter().map(|(point, _)| point)
    }

    /// The best points.
    pub(crate) fn best(&self) -> Ranked {
        let points = self.ranking.iter().map(|(point, cost)| (point.clone(), cost)).collect();
        Ranked { points, considered: self.settled() as u64 }
    }
}

/// The cost of an outcome; none for a failure.
pub(crate) fn cost(objective: &Objective, outcome: &Outcome) -> Option<f64> {
    outcome.as_ref().ok().and_then(|m| objective.cost(m))
}

fn took(known: Known) -> Option<f64> {
    match known {
        Known::Took(cost) => Some(cost),
        Known::Asked | Known::Failed => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::measurement::{Failure, FailureKind, Measurement};

    fn took(index: u16, seconds: f64) -> (Point, Outcome) {
        (Point(vec![index]), Ok(Measurement::recorded(seconds)))
    }

    fn failed(index: u16) -> (Point, Outcome) {
        (Point(vec![index]), Err(Failure { kind: FailureKind::Wrong, message: String::new() }))
    }

    #[test]
    fn the_latest_outcome_counts_and_failures_rank_nowhere() {
        let mut told = History::default();
        assert!(told.ask(&Point(vec![1])));
        assert!(!told.ask(&Point(vec![1])));
        told.tell(&[took(1, 3.0), took(2, 2.0), took(3, 2.0)]);
        told.tell(&[took(1, 1.0), failed(2)]);
        assert_eq!(told.best().points, [(Point(vec![1]), 1.0), (Point(vec![3]), 2.0)]);
        assert_eq!(told.best().considered, 3);
        assert!(told.knows(&Point(vec![2])));
    }

    #[test]
    fn who_was_not_among_the_best_moves_up_when_one_is_taken_back() {
        let mut told = History::default();
        let all: Vec<_> = (0..150).map(|i| took(i, 1.0 + f64::from((i * 37) % 150))).collect();
        told.tell(&all);
        assert_eq!(told.best().points.len(), BEST);
        told.tell(&[failed(0)]);
        let best = told.best().points;
        assert_eq!(best.len(), BEST);
        assert_eq!((best[0].1, best[BEST - 1].1), (2.0, 101.0));
        // The worst of the best gets worse: the next one takes its place.
        told.tell(&[(best[BEST - 1].0.clone(), Ok(Measurement::recorded(1000.0)))]);
        assert_eq!(told.best().points[BEST - 1].1, 102.0);
        assert_eq!(told.best().considered, 150);
    }
}
