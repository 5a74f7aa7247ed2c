//! Refinement around given points: one parameter at a time.

use crate::neighbourhood::{Neighbourhood, Reach};
use crate::told::Told;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeSet, VecDeque};
use tilewright_core::measurement::Outcome;
use tilewright_core::objective::Objective;
use tilewright_core::search::{Ranked, Search};
use tilewright_core::space::{BoundSpace, Point};

/// Hill climbing from several points: used to refine a model's best points by measurement.
///
/// Asks for the given points first, then for the neighbours of the best points told so far, near ones of the best point
/// first. Ends when all neighbours of the best points (see [`Local::with_width`]) have been asked.
#[derive(Debug)]
pub struct Local<'a> {
    space: &'a BoundSpace,
    seed: u64,
    width: usize,
    starts: VecDeque<Point>,
    told: Told,
    /// Neighbourhoods without unknown points.
    exhausted: BTreeSet<(Point, Reach)>,
}

impl<'a> Local<'a> {
    /// Refines the given points, illegal ones left out; from the first legal point of the space where there is none.
    /// The seed decides the order of neighbours at equal distance.
    pub fn new(space: &'a BoundSpace, objective: Objective, starts: Vec<Point>, seed: u64) -> Self {
        let mut starts: VecDeque<Point> =
            starts.into_iter().filter(|p| space.contains(p) && space.is_legal(p)).collect();
        if starts.is_empty() {
            starts.extend(space.first_legal());
        }
        Self { space, seed, width: 4, starts, told: Told::new(objective), exhausted: BTreeSet::new() }
    }

    /// How many of the best points told so far have their neighbours asked, at least 1; 4 otherwise.
    #[must_use]
    pub fn with_width(mut self, width: usize) -> Self {
        self.width = width.max(1);
        self
    }

    /// Neighbourhoods still to be looked at, in the order to do so.
    fn neighbourhoods(&self) -> Vec<(Point, Reach)> {
        let mut open: Vec<(usize, usize, Point, Reach)> = Vec::new();
        for (rank, point) in self.told.ranked().take(self.width).enumerate() {
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
            if self.told.ask(&start) {
                out.push(start);
            }
        }
        if out.len() == n {
            return out;
        }
        for (point, ring) in self.neighbourhoods() {
            for neighbour in self.neighbours(&point, ring) {
                if out.len() == n {
                    return out;
                }
                if self.told.ask(&neighbour) {
                    out.push(neighbour);
                }
            }
            self.exhausted.insert((point, ring));
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
