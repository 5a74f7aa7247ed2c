//! Every legal point, in the order of the space.

use crate::told::Told;
use tilewright_core::measurement::Outcome;
use tilewright_core::objective::Objective;
use tilewright_core::search::{Ranked, Search};
use tilewright_core::space::{BoundSpace, Point, Walk};

/// Asks for every legal point in lexicographic order: the oracle on spaces that can be measured in whole.
#[derive(Debug)]
pub struct InOrder<'a> {
    walk: Walk<'a>,
    told: Told,
}

impl<'a> InOrder<'a> {
    /// A search of the whole space.
    pub fn new(space: &'a BoundSpace, objective: Objective) -> Self {
        Self { walk: space.walk(), told: Told::new(objective) }
    }
}

impl Search for InOrder<'_> {
    fn ask(&mut self, n: usize) -> Vec<Point> {
        let mut out = Vec::with_capacity(n.min(1024));
        while out.len() < n {
            let Some(point) = self.walk.next_point().map(Point::from) else { break };
            if self.told.ask(&point) {
                out.push(point);
            }
        }
        out
    }

    fn tell(&mut self, seen: &[(Point, Outcome)]) {
        self.told.tell(seen);
    }

    fn best(&self) -> Ranked {
        self.told.best()
    }
}
