//! Feature rows without costs: what a screen is distilled on.

use rand::seq::SliceRandom;
use rand::seq::index;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_core::problem::Problem;
use tilewright_core::training::TrainingSet;

/// One input with a random sample of its configurations, as feature rows.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolInput {
    /// The input's features.
    pub input: Vec<f32>,
    /// Config features, `[configuration][feature]`.
    pub configs: Vec<f32>,
}

impl PoolInput {
    /// The feature rows of a problem's input and of some of its legal points.
    pub fn new<'a>(problem: &dyn Problem, points: impl IntoIterator<Item = &'a [u16]>) -> Self {
        let (mut input, mut configs) = (Vec::new(), Vec::new());
        problem.input_features(&mut input);
        for point in points {
            problem.config_features(point, &mut configs);
        }
        Self { input, configs }
    }
}

/// A pool out of nothing but training rows: inputs and configurations of different rows are put together.
///
/// A feature that depends on input and configuration then takes values that the two would not have; rows of the real
/// space are better where the caller can draw them.
pub fn recombined(data: &TrainingSet, inputs: usize, configs: usize, seed: u64) -> Vec<PoolInput> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let split = data.schema.input.len();
    let mut firsts: Vec<usize> = {
        let mut seen = std::collections::BTreeSet::new();
        (0..data.len()).filter(|&row| seen.insert(data.groups[row])).collect()
    };
    firsts.shuffle(&mut rng);
    let drawn = |rng: &mut ChaCha8Rng| {
        let rows = index::sample(rng, data.len(), configs.min(data.len()));
        rows.into_iter().flat_map(|row| data.row(row)[split..].iter().copied()).collect()
    };
    let mut pool = Vec::with_capacity(inputs);
    for at in 0..inputs {
        // Once every group has had its turn, any row may lend its input.
        let row = firsts.get(at).copied().unwrap_or_else(|| rng.random_range(0..data.len()));
        pool.push(PoolInput { input: data.row(row)[..split].to_vec(), configs: drawn(&mut rng) });
    }
    pool
}
