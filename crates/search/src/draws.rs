//! Where searches get legal points from that nothing speaks for.

use crate::strategy::Random;
use rand::RngCore;
use rand_chacha::ChaCha8Rng;
use std::sync::{Mutex, PoisonError};
use tilewright_core::objective::Objective;
use tilewright_core::search::Search;
use tilewright_core::space::{BoundSpace, Point};
use tilewright_sampler::Sampler;

/// Draws legal points for any number of searches.
pub trait Source: Sync {
    /// A legal point of the space; none where none was found.
    fn draw(&self, space: &BoundSpace, rng: &mut dyn RngCore) -> Option<Point>;
}

/// A sampler whose failures are not told apart.
impl<S: Sampler + ?Sized> Source for Mutex<S> {
    fn draw(&self, space: &BoundSpace, rng: &mut dyn RngCore) -> Option<Point> {
        self.lock().unwrap_or_else(PoisonError::into_inner).draw(space, rng).ok().map(|draw| draw.point)
    }
}

/// Points from a source; without one uniform points, none twice.
pub(crate) enum Draws<'a> {
    Source(&'a BoundSpace, &'a dyn Source),
    Uniform(Box<Random<'a>>),
}

impl<'a> Draws<'a> {
    pub(crate) fn new(space: &'a BoundSpace, source: Option<&'a dyn Source>, seed: u64) -> Self {
        match source {
            Some(source) => Self::Source(space, source),
            None => Self::Uniform(Box::new(Random::new(space, Objective::default(), seed))),
        }
    }

    pub(crate) fn draw(&mut self, rng: &mut ChaCha8Rng) -> Option<Point> {
        match self {
            Self::Source(space, source) => source.draw(space, rng),
            Self::Uniform(random) => random.ask(1).pop(),
        }
    }
}
