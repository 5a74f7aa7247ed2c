//! Seeded inputs. Real collections cannot be shipped: these are named in every result instead.

pub mod graphs;
pub mod images;
pub mod keys;
pub mod matrices;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A generator of numbers for one input: the same seed and purpose give the same numbers.
pub fn rng(purpose: &str, seed: u64) -> ChaCha8Rng {
    // FNV-1a: inputs of different generators with the same seed have nothing in common.
    let hash = purpose.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    ChaCha8Rng::seed_from_u64(hash ^ seed)
}
