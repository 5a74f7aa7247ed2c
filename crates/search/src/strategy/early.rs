//! Random search that ends when enough was seen.

use super::listed::{Book, Chooser};
use crate::stop::{Rule, Sample};
use rand_chacha::ChaCha8Rng;

/// Fewer samples have no distribution that a rule could read.
pub(crate) const FEWEST: usize = 3;

/// Points uniformly at random until a rule's bound on the chance of a miss falls below alpha.
#[derive(Debug)]
pub(crate) struct Early {
    rule: Rule,
    alpha: f64,
    sample: Sample,
    bound: f64,
}

impl Early {
    pub(crate) fn new(rule: Rule, size: usize, tolerance: crate::stop::Tolerance) -> Self {
        let bound = if size == 0 { 0.0 } else { 1.0 };
        Self { rule, alpha: tolerance.alpha, sample: Sample::new(size, tolerance.epsilon), bound }
    }
}

impl Chooser for Early {
    fn choose(&mut self, book: &mut Book, rng: &mut ChaCha8Rng) -> Option<u32> {
        book.unknown(rng)
    }

    fn learn(&mut self, _: &Book, _: u32, cost: f64, _: &mut ChaCha8Rng) {
        self.sample.see(cost);
        self.bound = self.rule.bound(&self.sample);
    }

    fn bound(&self, _: &Book) -> Option<f64> {
        Some(self.bound)
    }

    fn done(&mut self, _: &Book) -> bool {
        self.bound < self.alpha && self.sample.seen() >= FEWEST
    }
}
