//! Small products, one by one and in batches: every combination of the sizes that finite elements, blocks of sparse matrices and
//! layers of small networks have, and random ones beside them.

use super::Task;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

/// Sizes of which every triple is a task.
const SIZES: [usize; 6] = [4, 8, 16, 24, 32, 64];
/// Random shapes beside them, sizes of which are from 1 to [`MOST`].
const RANDOM: usize = 100;
const MOST: usize = 64;
const SEED: u64 = 64;
/// Products of a batch.
const BATCH: usize = 1000;

/// Names and sizes, m n k.
fn shapes() -> Vec<(String, [usize; 3])> {
    let triples = SIZES.iter().flat_map(|&m| SIZES.iter().flat_map(move |&n| SIZES.map(|k| [m, n, k])));
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut size = || rng.random_range(1..=MOST);
    let random: Vec<[usize; 3]> = (0..RANDOM).map(|_| [size(), size(), size()]).collect();
    let named = |kind: &str, at: usize, [m, n, k]: [usize; 3]| (format!("{kind}-{at}-{m}x{n}x{k}"), [m, n, k]);
    let triples = triples.enumerate().map(|(at, shape)| named("small", at + 1, shape));
    triples.chain(random.into_iter().enumerate().map(|(at, shape)| named("random", at + 1, shape))).collect()
}

/// The tasks, as single products or as batches right behind each other; what is fixed takes the place of what the set says.
pub(super) fn tasks(is_batch: bool, fixed: &Config) -> Vec<Task> {
    let task = |(name, [m, n, k]): (String, [usize; 3])| {
        let batch = is_batch.then_some(("batch", BATCH));
        let fields = [("m", m), ("n", n), ("k", k)].into_iter().chain(batch);
        let fields = fields.filter(|(name, _)| fixed.get(name).is_none());
        let fields = fields.map(|(name, size)| (name.to_owned(), Value::from(size)));
        Task { name, input: Config(fields.chain(fixed.0.iter().cloned()).collect()) }
    };
    shapes().into_iter().map(task).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn all_triples_and_the_same_random_ones_each_time() {
        let tasks = tasks(false, &Config::default());
        assert_eq!(tasks.len(), 216 + RANDOM);
        assert!(tasks.iter().any(|task| task.shape() == "8x64x24"));
        assert_eq!(shapes(), shapes());
        let random: HashSet<[usize; 3]> = shapes().into_iter().skip(216).map(|(_, shape)| shape).collect();
        assert!(random.len() > RANDOM / 2, "{random:?}");
        assert!(random.iter().flatten().all(|size| (1..=MOST).contains(size)));
    }

    #[test]
    fn batches_are_the_same_shapes() {
        let (single, batch) = (tasks(false, &Config::default()), tasks(true, &Config::default()));
        for (one, many) in single.iter().zip(&batch) {
            assert_eq!(many.shape(), format!("{}x{BATCH}", one.shape()));
        }
        let fixed = Config(vec![("batch".into(), Value::Int(3))]);
        assert_eq!(tasks(true, &fixed)[0].shape(), "4x4x4x3");
    }
}
