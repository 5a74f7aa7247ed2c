//! Uniform sampling with rejection: what the generative models are compared with.

use crate::{Acceptance, Draw, DrawError, MAX_ATTEMPTS, Sampler};
use rand::{Rng, RngCore};
use tilewright_core::space::{BoundSpace, Point};

/// Every parameter uniform and independent, illegal points rejected: legal points come with equal probability.
#[derive(Clone, Debug)]
pub struct Uniform {
    max_attempts: u64,
    seen: Acceptance,
}

impl Default for Uniform {
    fn default() -> Self {
        Self::new(MAX_ATTEMPTS)
    }
}

impl Uniform {
    /// A sampler that gives a draw up after this many candidates.
    pub fn new(max_attempts: u64) -> Self {
        Self { max_attempts, seen: Acceptance::default() }
    }
}

impl Sampler for Uniform {
    fn draw(&mut self, space: &BoundSpace, rng: &mut dyn RngCore) -> Result<Draw, DrawError> {
        let mut rejected = Acceptance::default();
        let mut point = Vec::with_capacity(space.params().len());
        let attempts = if is_empty(space) { 0 } else { self.max_attempts };
        space.remember();
        for attempts in 1..=attempts {
            fill_uniform(space, rng, &mut point);
            let broken = space.first_broken(&point);
            self.seen.count(broken);
            rejected.count(broken);
            if broken.is_none() {
                return Ok(Draw { point: Point(point), attempts });
            }
        }
        Err(exhausted(space, &rejected))
    }

    fn acceptance(&self) -> &Acceptance {
        &self.seen
    }
}

/// Whether a parameter has no value that the rules allow: then nothing is legal, and nothing need be drawn. Without parameters the
/// only point says it.
pub(crate) fn is_empty(space: &BoundSpace) -> bool {
    space.domains().iter().any(Vec::is_empty) || space.params().is_empty() && !space.is_legal(&[])
}

/// A candidate of the possible configurations: the product of what each parameter may take on its own.
pub(crate) fn fill_uniform(space: &BoundSpace, rng: &mut dyn RngCore, point: &mut Vec<u16>) {
    point.clear();
    point.extend(space.domains().iter().map(|values| values[rng.random_range(0..values.len())]));
}

/// The error of a draw whose candidates were all rejected.
pub(crate) fn exhausted(space: &BoundSpace, rejected: &Acceptance) -> DrawError {
    DrawError::Exhausted {
        attempts: rejected.drawn,
        cartesian: space.cartesian(),
        rule: rejected.strictest().map(str::to_owned),
    }
}
