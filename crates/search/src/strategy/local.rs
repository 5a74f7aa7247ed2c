//! Hill climbing around given points, and then around drawn ones: one parameter at a time.

use super::Random;
use crate::history::History;
use crate::neighbourhood::{Neighbourhood, Reach};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeSet, VecDeque};
use tilewright_core::measurement::Outcome;
use tilewright_core::objective::Objective;
use tilewright_core::search::{Ranked, Search};
use tilewright_core::space::{BoundSpace, Point};

/// Hill climbing with restarts, without a list of the space.
///
/// Asks for the given points first, then for the neighbours of the best points of this climb, near ones of the best point
/// first. When all neighbours of these (see [`Local::with_width`]) have been asked, the next climb starts from a point drawn
/// uniformly from those that are not known. Ends when every legal point is known.
#[derive(Debug)]
pub struct Local<'a> {
    space: &'a BoundSpace,
    seed: u64,
    width: usize,
    starts: VecDeque<Point>,
    /// What this climb was told.
    climb: History,
    /// What is known of all points, and where the next climb starts.
    drawn: Random<'a>,
    /// Neighbourhoods without unknown points.
    exhausted: BTreeSet<(Point, Reach)>,
}

impl<'a> Local<'a> {
    /// Climbs from the given points first, illegal ones left out. The seed decides the order of neighbours at equal distance,
    /// and the points that are drawn.
    pub fn new(space: &'a BoundSpace, objective: Objective, starts: Vec<Point>, seed: u64) -> Self {
        let starts = starts.into_iter().filter(|p| space.is_legal(p)).collect();
        let (climb, drawn) = (History::new(objective.clone()), Random::new(space, objective, seed));
        Self { space, seed, width: 4, starts, climb, drawn, exhausted: BTreeSet::new() }
    }

    /// How many of the best points of a climb have their neighbours asked, at least 1; 4 otherwise.
    #[must_use]
    pub fn with_width(mut self, width: usize) -> Self {
        self.width = width.max(1);
        self
    }

    /// Neighbourhoods still to be looked at, in the order to do so.
    fn neighbourhoods(&self) -> Vec<(Point, Reach)> {
        let mut open: Vec<(usize, usize, Point, Reach)> = Vec::new();
        for (rank, point) in self.climb.ranked().take(self.width).enumerate() {
            for (distance, ring) in Reach::ALL.into_iter().enumerate() {
                // The second best point's near neighbours are worth as much as the best one's next ring.
                open.push((rank + distance, rank, point.clone(), ring));
            }
        }
        open.retain(|(_, _, point, ring)| !self.exhausted.contains(&(point.clone(), *ring)));
        open.sort();
        open.into_iter().map(|(_, _, point, ring)| (point, ring)).collect()
    }

    /// The legal points of a neighbourhood, in an order given by the seed.
    fn neighbours(&self, point: &Point, reach: Reach) -> Vec<Point> {
        let mut out = Neighbourhood::of(self.space).within(point, reach);
        // The order must not depend on what else was asked, so every neighbourhood has a generator of its own.
        let mix = |h: u64, i: &u16| (h ^ u64::from(*i)).wrapping_mul(0x0000_0100_0000_01b3);
        let seed = point.0.iter().fold(self.seed ^ 0xcbf2_9ce4_8422_2325, mix);
        out.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        out
    }
}

impl Search for Local<'_> {
    fn ask(&mut self, n: usize) -> Vec<Point> {
        let mut out = Vec::new();
        while out.len() < n {
            let Some(start) = self.starts.pop_front() else { break };
            if self.drawn.told.ask(&start) {
                out.push(start);
            }
        }
        for (point, ring) in self.neighbourhoods() {
            for neighbour in self.neighbours(&point, ring) {
                if out.len() == n {
                    return out;
                }
                if self.drawn.told.ask(&neighbour) {
                    out.push(neighbour);
                }
            }
            self.exhausted.insert((point, ring));
        }
        if n > 0 && out.is_empty() {
            // Nothing is left around this climb's best points, unless an outcome that is awaited is better.
            if self.drawn.told.outstanding() == 0 {
                self.climb = History::new(self.climb.objective().clone());
            }
            out = self.drawn.ask(1);
        }
        out
    }

    fn tell(&mut self, seen: &[(Point, Outcome)]) {
        self.climb.tell(seen);
        self.drawn.tell(seen);
    }

    fn best(&self) -> Ranked {
        self.drawn.best()
    }
}
