//! Strategies over a list that learn nothing.

use super::listed::{Chooser, ListedHistory};
use rand_chacha::ChaCha8Rng;

/// Every point in order.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    next: u32,
}

impl Chooser for Sequence {
    fn choose(&mut self, history: &mut ListedHistory, _: &mut ChaCha8Rng) -> Option<u32> {
        while (self.next as usize) < history.listing.len() {
            let number = self.next;
            self.next += 1;
            if !history.knows(number) {
                return Some(number);
            }
        }
        None
    }

    fn learn(&mut self, _: &ListedHistory, _: u32, _: f64, _: &mut ChaCha8Rng) {}
}

/// Every point uniformly at random, none twice.
#[derive(Debug, Default)]
pub(crate) struct Shuffle;

impl Chooser for Shuffle {
    fn choose(&mut self, history: &mut ListedHistory, rng: &mut ChaCha8Rng) -> Option<u32> {
        history.unknown(rng)
    }

    fn learn(&mut self, _: &ListedHistory, _: u32, _: f64, _: &mut ChaCha8Rng) {}
}
