//! Legal points at random, none twice.

use crate::history::History;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_core::measurement::Outcome;
use tilewright_core::objective::Objective;
use tilewright_core::search::{Ranked, Search};
use tilewright_core::space::{BoundSpace, Point};

/// Rejected candidates before the space is walked instead: about what walking a small space costs.
const CANDIDATES: usize = 2_000;

/// Points that a walk draws ahead, so that few walks are needed.
const AHEAD: usize = 4_096;

/// Asks for legal points uniformly at random without repeats, until there are none left.
///
/// Candidates are drawn uniformly and rejected when illegal or known. Where that fails too often, one walk over the
/// space draws the next points by reservoir sampling: as uniform, and sure to find the last point.
#[derive(Debug)]
pub struct Random<'a> {
    space: &'a BoundSpace,
    rng: ChaCha8Rng,
    pub(super) told: History,
    /// Drawn by a walk and not asked yet.
    ahead: Vec<Point>,
    /// Whether drawing candidates has become hopeless.
    walks: bool,
}

impl<'a> Random<'a> {
    /// A search of the space; the same seed gives the same points.
    pub fn new(space: &'a BoundSpace, objective: Objective, seed: u64) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        Self { space, rng, told: History::new(objective), ahead: Vec::new(), walks: false }
    }

    fn next(&mut self) -> Option<Point> {
        if !self.walks {
            if let Some(point) = self.candidate() {
                return Some(point);
            }
            self.walks = true;
        }
        loop {
            if self.ahead.is_empty() {
                self.ahead = self.reservoir();
            }
            let point = self.ahead.pop()?;
            // It may have been told meanwhile.
            if !self.told.knows(&point) {
                return Some(point);
            }
        }
    }

    fn candidate(&mut self) -> Option<Point> {
        let params = self.space.params();
        let mut point = Point(vec![0; params.len()]);
        for _ in 0..CANDIDATES {
            for (index, param) in point.0.iter_mut().zip(params) {
                *index = self.rng.random_range(0..param.values.len()) as u16;
            }
            if self.space.is_legal(&point) && !self.told.knows(&point) {
                return Some(point);
            }
        }
        None
    }

    /// Up to `AHEAD` unknown legal points, uniformly, in random order (Vitter's algorithm R).
    fn reservoir(&mut self) -> Vec<Point> {
        let mut kept: Vec<Point> = Vec::new();
        let mut seen = 0;
        let mut walk = self.space.walk();
        let mut point = Point(vec![0; self.space.params().len()]);
        while let Some(indices) = walk.next_point() {
            point.0.copy_from_slice(indices);
            if self.told.knows(&point) {
                continue;
            }
            seen += 1;
            if kept.len() < AHEAD {
                kept.push(point.clone());
            } else if let Some(place) = kept.get_mut(self.rng.random_range(0..seen)) {
                place.0.copy_from_slice(indices);
            }
        }
        kept.shuffle(&mut self.rng);
        kept
    }
}

impl Search for Random<'_> {
    fn ask(&mut self, n: usize) -> Vec<Point> {
        let mut out = Vec::new();
        while out.len() < n {
            let Some(point) = self.next() else { break };
            self.told.ask(&point);
            out.push(point);
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
