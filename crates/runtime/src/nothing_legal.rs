//! Saying why nothing is legal.

use crate::error::RuntimeError;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use tilewright_core::problem::Problem;

/// Points that are looked at for the rule that rejects most.
const LOOKED_AT: u64 = 2000;

/// The error of a problem without legal points, with the rule that rejects most of a random part of its space.
pub(crate) fn nothing_legal(problem: &dyn Problem) -> RuntimeError {
    let space = problem.space();
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for _ in 0..LOOKED_AT {
        let point: Vec<u16> = space.params().iter().map(|p| rng.random_range(0..p.values.len()) as u16).collect();
        for rule in space.broken(&point) {
            *counts.entry(rule).or_default() += 1;
        }
    }
    // The first by name among equals.
    let most = counts.into_iter().max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(a.0)));
    RuntimeError::NothingLegal {
        kernel: problem.kernel(),
        device: problem.device().id.clone(),
        input: problem.input(),
        rule: most.map(|(rule, count)| (rule.to_owned(), count, LOOKED_AT)),
    }
}
