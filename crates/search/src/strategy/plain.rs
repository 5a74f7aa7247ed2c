//! Strategies over a list that learn nothing.

use super::listed::{Book, Chooser};
use rand_chacha::ChaCha8Rng;

/// Every point in order.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    next: u32,
}

impl Chooser for Sequence {
    fn choose(&mut self, book: &mut Book, _: &mut ChaCha8Rng) -> Option<u32> {
        while (self.next as usize) < book.listing.len() {
            let number = self.next;
            self.next += 1;
            if !book.knows(number) {
                return Some(number);
            }
        }
        None
    }

    fn learn(&mut self, _: &Book, _: u32, _: f64, _: &mut ChaCha8Rng) {}
}

/// Every point uniformly at random, none twice.
#[derive(Debug, Default)]
pub(crate) struct Shuffle;

impl Chooser for Shuffle {
    fn choose(&mut self, book: &mut Book, rng: &mut ChaCha8Rng) -> Option<u32> {
        book.unknown(rng)
    }

    fn learn(&mut self, _: &Book, _: u32, _: f64, _: &mut ChaCha8Rng) {}
}
