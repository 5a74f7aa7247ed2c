//! Seeded inputs. Real collections cannot be shipped: these are named in every result instead.

pub mod graphs;
pub mod images;
pub mod keys;
pub mod matrices;

use crate::computation::Named;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;

/// A generator of numbers for one input: the same seed and purpose give the same numbers.
pub fn rng(purpose: &str, seed: u64) -> ChaCha8Rng {
    // FNV-1a: inputs of different generators with the same seed have nothing in common.
    let hash = purpose.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    ChaCha8Rng::seed_from_u64(hash ^ seed)
}

/// A number within these limits whose logarithm is uniform.
pub(crate) fn sized(rng: &mut impl Rng, from: f64, to: f64) -> f64 {
    rng.random_range(from.ln()..to.ln()).exp()
}

/// So many inputs of those that `draw` makes of 0, 1, ..., without any that is there already.
pub(crate) fn collection<I>(
    purpose: &str,
    count: usize,
    mut draw: impl FnMut(&mut ChaCha8Rng, u64) -> Named<I>,
) -> Vec<Named<I>> {
    let (mut rng, mut names) = (rng(purpose, 1), HashSet::new());
    (0..).map(|i| draw(&mut rng, i)).filter(|named| names.insert(named.name.clone())).take(count).collect()
}
