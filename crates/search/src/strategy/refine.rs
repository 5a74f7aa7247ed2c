//! Refinement of what a model ranks by measuring around it.

mod nearby;
mod residual;
mod sequence;

use super::Local;
use crate::catalogue::Setup;
use crate::draws::Draws;
use nearby::Nearby;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sequence::Sequence;
use std::collections::VecDeque;
use tilewright_core::measurement::Outcome;
use tilewright_core::search::{Ranked, Search};
use tilewright_core::space::Point;

/// With a model: the share that is drawn, for where the model is blind.
const DRAWN_BESIDE_MODEL: f64 = 0.05;

/// Without a model: the share that is drawn.
const DRAWN_SHARE: f64 = 0.4;

/// Configurations that are known before any neighbourhood is looked at; the rest of them is drawn.
const DRAWN_FIRST: usize = 16;

/// The share of neighbours that the regression chooses.
const ADVISED: f64 = 0.8;

/// Known points in a row after which the space counts as seen.
const MISSES: u32 = 500;

/// Points of other devices that are tried first.
const WARM: usize = 8;

/// Asks for the starts of its [`Setup`] and for what other devices found best; then for neighbours of the best told, scored by the
/// model and by a regression over this very search (Thompson sampling), for the neighbourhoods of [`Local`] from near to far, and
/// for a share of draws. Without a model it learns from what is drawn.
///
/// Holds no list of the space.
pub struct Refine<'a> {
    rng: ChaCha8Rng,
    history: Sequence,
    starts: VecDeque<Point>,
    local: Local<'a>,
    nearby: Nearby<'a>,
    draws: Draws<'a>,
    /// The share that is drawn.
    drawn: f64,
    finished: bool,
}

impl<'a> Refine<'a> {
    /// A search from what is known; the same seed and outcomes give the same questions.
    pub fn new(setup: &Setup<'a>, seed: u64) -> Self {
        let space = setup.space;
        let asked = setup.model.filter(|model| !model.is_costly);
        let ranked = if asked.is_some() { setup.ranked.to_vec() } else { Vec::new() };
        let starts = setup.starts.iter().cloned().chain(setup.warm.best(WARM));
        Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            history: Sequence::new(setup.objective.clone()),
            starts: starts.filter(|p| space.contains(p) && space.is_legal(p)).collect(),
            local: Local::new(space, setup.objective.clone(), Vec::new(), seed),
            nearby: Nearby::new(space, asked, ranked),
            draws: Draws::new(space, setup.source, seed),
            drawn: if setup.model.is_some() { DRAWN_BESIDE_MODEL } else { DRAWN_SHARE },
            finished: false,
        }
    }

    /// A point that may be known already; none where nothing is left to propose.
    fn propose(&mut self) -> Option<Point> {
        let few = self.history.told().len() < DRAWN_FIRST;
        let point = if few || self.rng.random::<f64>() < self.drawn {
            self.draws.draw(&mut self.rng)
        } else if self.rng.random::<f64>() < ADVISED {
            self.nearby.propose(&self.history, &mut self.rng)
        } else {
            self.local.ask(1).pop()
        };
        // One of them may have run dry before the others: a neighbourhood that is known leaves time for new ones.
        point.or_else(|| self.local.ask(1).pop()).or_else(|| self.draws.draw(&mut self.rng))
    }

    fn next(&mut self) -> Option<Point> {
        while let Some(start) = self.starts.pop_front() {
            if !self.history.knows(&start) {
                return Some(start);
            }
        }
        for _ in 0..MISSES {
            match self.propose() {
                Some(point) if !self.history.knows(&point) => return Some(point),
                Some(_) => {}
                None => return None,
            }
        }
        None
    }
}

impl Search for Refine<'_> {
    fn ask(&mut self, n: usize) -> Vec<Point> {
        let mut out = Vec::new();
        while out.len() < n && !self.finished {
            let Some(point) = self.next() else {
                // With outcomes outstanding there may be more to ask after them.
                self.finished = self.history.is_settled();
                break;
            };
            self.history.ask(&point);
            out.push(point);
        }
        out
    }

    fn tell(&mut self, seen: &[(Point, Outcome)]) {
        self.history.tell(seen);
        self.local.tell(seen);
    }

    fn best(&self) -> Ranked {
        self.history.best()
    }

    fn promising(&mut self, n: usize) -> Vec<Point> {
        self.nearby.favourites(&self.history, n, &mut self.rng)
    }
}
