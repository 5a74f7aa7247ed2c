//! What was asked and told, in order.

use crate::history::{History, cost};
use std::collections::HashMap;
use tilewright_core::measurement::Outcome;
use tilewright_core::objective::Objective;
use tilewright_core::search::Ranked;
use tilewright_core::space::Point;

/// Every point with its latest cost, in the order of first telling.
pub(super) struct Sequence {
    objective: Objective,
    history: History,
    costs: Vec<(Point, f64)>,
    index: HashMap<Point, usize>,
}

impl Sequence {
    pub(super) fn new(objective: Objective) -> Self {
        let history = History::new(objective.clone());
        Self { objective, history, costs: Vec::new(), index: HashMap::new() }
    }

    /// Whether a point was asked or told.
    pub(super) fn knows(&self, point: &Point) -> bool {
        self.history.knows(point)
    }

    /// Notes that a point is asked for.
    pub(super) fn ask(&mut self, point: &Point) {
        self.history.ask(point);
    }

    pub(super) fn tell(&mut self, seen: &[(Point, Outcome)]) {
        self.history.tell(seen);
        for (point, outcome) in seen {
            let cost = cost(&self.objective, outcome).unwrap_or(f64::INFINITY);
            match self.index.get(point) {
                Some(&at) => self.costs[at].1 = cost,
                None => {
                    self.index.insert(point.clone(), self.costs.len());
                    self.costs.push((point.clone(), cost));
                }
            }
        }
    }

    /// What was told, in order, failures with an infinite cost.
    pub(super) fn told(&self) -> &[(Point, f64)] {
        &self.costs
    }

    /// What has a cost, best first; equal costs in the order of telling.
    pub(super) fn by_cost(&self) -> Vec<(&Point, f64)> {
        let mut out: Vec<(&Point, f64)> =
            self.costs.iter().filter(|(_, cost)| cost.is_finite()).map(|(point, cost)| (point, *cost)).collect();
        out.sort_by(|a, b| a.1.total_cmp(&b.1));
        out
    }

    pub(super) fn best(&self) -> Ranked {
        self.history.best()
    }

    /// Whether everything that was asked was told.
    pub(super) fn is_settled(&self) -> bool {
        self.history.outstanding() == 0
    }
}
