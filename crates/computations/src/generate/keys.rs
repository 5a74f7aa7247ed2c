//! Sequences of keys to sort.

use super::rng;
use rand::Rng;
use rand::seq::SliceRandom;

/// The order of a sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// Uniform at random.
    Random,
    /// Descending.
    Reversed,
    /// Ascending, then this share of the keys swapped with others.
    AlmostSorted(f64),
    /// Ascending runs of this length, one after another.
    Runs(usize),
}

impl Order {
    /// The generator's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Reversed => "reversed",
            Self::AlmostSorted(_) => "almost-sorted",
            Self::Runs(_) => "runs",
        }
    }
}

/// Finite numbers of both signs in this order.
pub fn keys(order: Order, count: usize, seed: u64) -> Vec<f64> {
    let mut rng = rng(order.name(), seed);
    let mut keys: Vec<f64> = (0..count).map(|_| rng.random_range(-1e6..1e6)).collect();
    match order {
        Order::Random => {}
        Order::Reversed => keys.sort_unstable_by(|a, b| b.total_cmp(a)),
        Order::AlmostSorted(share) => {
            keys.sort_unstable_by(f64::total_cmp);
            for _ in 0..(count as f64 * share / 2.0) as usize {
                let (a, b) = (rng.random_range(0..count), rng.random_range(0..count));
                keys.swap(a, b);
            }
        }
        Order::Runs(length) => keys.chunks_mut(length.max(1)).for_each(|run| run.sort_unstable_by(f64::total_cmp)),
    }
    if matches!(order, Order::Runs(_)) && count > 2 {
        // A last run of another length, so that runs do not end where blocks do.
        let cut = rng.random_range(1..count);
        keys.rotate_left(cut);
        keys[count - cut..].shuffle(&mut rng);
        keys[count - cut..].sort_unstable_by(f64::total_cmp);
    }
    keys
}
