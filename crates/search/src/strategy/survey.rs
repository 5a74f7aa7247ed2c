//! Points of one input that a model of many inputs is to learn from.

use crate::draws::Draws;
use crate::neighbourhood::Neighbourhood;
use crate::{Setup, history::History};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use tilewright_core::measurement::Outcome;
use tilewright_core::search::{Ranked, Search};
use tilewright_core::space::{BoundSpace, Point};

/// Told points before the best ones are varied.
const BEFORE_NEIGHBOURS: usize = 4;

/// Best points that are varied.
const VARIED: usize = 3;

/// Tries to find a point that was not asked yet.
const TRIES: u32 = 40;

/// From where a [`Survey`] takes what its starts leave open, as shares that sum up to at most 1; the rest is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mixture {
    /// Variations of the best points told.
    pub neighbours: f64,
    /// Variations of points carried over from other inputs.
    pub near_carried: f64,
    /// Points carried over from other inputs, as they are.
    pub carried: f64,
}

/// Asks for the starts of its [`Setup`], then for a mixture of variations of the best, of what was best for other inputs, and of
/// draws: a model must know the neighbourhood of optima as well as the rest of the space.
///
/// Ends when it finds nothing new: the space is small and seen.
pub struct Survey<'a> {
    space: &'a BoundSpace,
    mixture: Mixture,
    carried: Vec<Point>,
    starts: VecDeque<Point>,
    told: History,
    draws: Draws<'a>,
    rng: ChaCha8Rng,
    finished: bool,
}

impl<'a> Survey<'a> {
    /// A search of the space; the same generator and outcomes give the same questions. Of the carried points those count that are
    /// legal here.
    pub fn new(setup: &Setup<'a>, mixture: Mixture, carried: &[Point], rng: ChaCha8Rng) -> Self {
        let space = setup.space;
        let legal = |points: &[Point]| -> Vec<Point> {
            points.iter().filter(|p| space.contains(p) && space.is_legal(p)).cloned().collect()
        };
        Self {
            space,
            mixture,
            carried: legal(carried),
            starts: legal(&setup.starts).into(),
            told: History::new(setup.objective.clone()),
            draws: Draws::new(space, setup.source, rng.get_stream()),
            rng,
            finished: false,
        }
    }

    fn next(&mut self) -> Option<Point> {
        while let Some(point) = self.starts.pop_front() {
            if !self.told.knows(&point) {
                return Some(point);
            }
        }
        for _ in 0..TRIES {
            let found = self.candidate()?;
            if let Some(point) = found.filter(|p| !self.told.knows(p)) {
                return Some(point);
            }
        }
        None
    }

    /// One try; no answer at all where nothing can be drawn.
    #[expect(
        clippy::option_option,
        reason = "a variation that is illegal is one failed try, a draw without a result is the end"
    )]
    fn candidate(&mut self) -> Option<Option<Point>> {
        let Mixture { neighbours, near_carried, carried } = self.mixture;
        let source: f64 = self.rng.random();
        if source < neighbours && self.told.settled() >= BEFORE_NEIGHBOURS {
            let best: Vec<Point> = self.told.ranked().take(VARIED).cloned().collect();
            return Some(self.vary(&best));
        }
        if source >= 1.0 - carried - near_carried && !self.carried.is_empty() {
            if source < 1.0 - carried {
                let carried = std::mem::take(&mut self.carried);
                let found = self.vary(&carried);
                self.carried = carried;
                return Some(found);
            }
            let at = self.rng.random_range(0..self.carried.len());
            return Some(Some(self.carried[at].clone()));
        }
        self.draws.draw(&mut self.rng).map(Some)
    }

    fn vary(&mut self, of: &[Point]) -> Option<Point> {
        if of.is_empty() {
            return None;
        }
        let point = &of[self.rng.random_range(0..of.len())];
        Neighbourhood::of(self.space).varied(point, &mut self.rng)
    }
}

impl Search for Survey<'_> {
    fn ask(&mut self, n: usize) -> Vec<Point> {
        let mut out = Vec::new();
        while out.len() < n && !self.finished {
            let Some(point) = self.next() else {
                self.finished = self.told.outstanding() == 0;
                break;
            };
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
