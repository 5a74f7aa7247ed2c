//! The plainest search: every legal point, in order.

use tilewright_core::measurement::{Measurement, Outcome};
use tilewright_core::objective::Objective;
use tilewright_core::search::{Ranked, Search};
use tilewright_core::space::{BoundSpace, Point};

/// Asks every legal point in walking order. Holds them all, so for small spaces only.
#[derive(Clone, Debug)]
pub struct Sequential {
    points: std::vec::IntoIter<Point>,
    told: Vec<(Point, f64)>,
}

impl Sequential {
    /// A search over the legal points of a space.
    pub fn new(space: &BoundSpace) -> Self {
        let mut points = Vec::new();
        space.for_each_legal(|p| {
            points.push(Point::from(p));
            true
        });
        Self { points: points.into_iter(), told: Vec::new() }
    }
}

impl Search for Sequential {
    fn ask(&mut self, n: usize) -> Vec<Point> {
        self.points.by_ref().take(n).collect()
    }

    fn tell(&mut self, seen: &[(Point, Outcome)]) {
        let objective = Objective::default();
        let cost = |m: &Measurement| objective.cost(m);
        for (point, outcome) in seen {
            if let Some(cost) = outcome.as_ref().ok().and_then(cost) {
                self.told.retain(|(p, _)| p != point);
                self.told.push((point.clone(), cost));
            }
        }
    }

    fn best(&self) -> Ranked {
        let mut points = self.told.clone();
        points.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
        Ranked { considered: points.len() as u64, points }
    }
}
