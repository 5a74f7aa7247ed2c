//! What a strategy has asked and been told.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use tilewright_core::measurement::Outcome;
use tilewright_core::objective::Objective;
use tilewright_core::search::Ranked;
use tilewright_core::space::Point;

/// Most points that [`Told::best`] gives.
const BEST: usize = 100;

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

/// Points asked for and outcomes told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    objective: Objective,
    /// Every point that was asked or told; None until told, and for failures.
    costs: BTreeMap<Point, Option<f64>>,
    ranked: BTreeSet<(Cost, Point)>,
    outstanding: BTreeSet<Point>,
}

impl Told {
    pub(crate) fn new(objective: Objective) -> Self {
        Self { objective, ..Self::default() }
    }

    /// Whether a point was asked or told.
    pub(crate) fn knows(&self, point: &Point) -> bool {
        self.costs.contains_key(point)
    }

    /// Notes that a point is asked for; false if it was known.
    pub(crate) fn ask(&mut self, point: &Point) -> bool {
        if self.knows(point) {
            return false;
        }
        self.costs.insert(point.clone(), None);
        self.outstanding.insert(point.clone());
        true
    }

    /// Notes outcomes; the latest of a point counts.
    pub(crate) fn tell(&mut self, seen: &[(Point, Outcome)]) {
        for (point, outcome) in seen {
            let cost = outcome.as_ref().ok().and_then(|m| self.objective.cost(m));
            self.outstanding.remove(point);
            let before = self.costs.insert(point.clone(), cost);
            if let Some(old) = before.flatten() {
                self.ranked.remove(&(Cost(old), point.clone()));
            }
            if let Some(cost) = cost {
                self.ranked.insert((Cost(cost), point.clone()));
            }
        }
    }

    /// Points with a cost, best first.
    pub(crate) fn ranked(&self) -> impl Iterator<Item = &Point> {
        self.ranked.iter().map(|(_, point)| point)
    }

    /// The best points.
    pub(crate) fn best(&self) -> Ranked {
        let points = self.ranked.iter().take(BEST).map(|(cost, point)| (point.clone(), cost.0)).collect();
        Ranked { points, considered: (self.costs.len() - self.outstanding.len()) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::measurement::{Failure, FailureKind, Measurement};

    fn took(index: u16, seconds: f64) -> (Point, Outcome) {
        (Point(vec![index]), Ok(Measurement::recorded(seconds)))
    }

    #[test]
    fn the_latest_outcome_counts_and_failures_rank_nowhere() {
        let mut told = Told::default();
        assert!(told.ask(&Point(vec![1])));
        assert!(!told.ask(&Point(vec![1])));
        told.tell(&[took(1, 3.0), took(2, 2.0), took(3, 2.0)]);
        let failed = Err(Failure { kind: FailureKind::Wrong, message: String::new() });
        told.tell(&[took(1, 1.0), (Point(vec![2]), failed)]);
        assert_eq!(told.best().points, [(Point(vec![1]), 1.0), (Point(vec![3]), 2.0)]);
        assert_eq!(told.best().considered, 3);
        assert!(told.knows(&Point(vec![2])));
    }
}
