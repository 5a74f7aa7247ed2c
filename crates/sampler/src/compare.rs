//! ISAAC's Table 1 for any space.

use crate::{Acceptance, Categorical, Chained, DrawError, Sampler, Settings};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_core::space::{BoundSpace, ParamSpace};

/// Candidates accepted by uniform sampling and by the generative models, each after its warm-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Uniform with rejection.
    pub uniform: Acceptance,
    /// ISAAC's model.
    pub categorical: Acceptance,
    /// The model with parameters conditioned in chain order.
    pub chained: Acceptance,
}

/// Draws legal points from a space in the three ways, and counts candidates: ISAAC's Table 1. The generative models
/// learn in their warm-up and from `learn` samples after it, which are not counted; then `count` samples are.
///
/// # Errors
/// A draw that gave up.
pub fn compare(
    space: &ParamSpace,
    bound: &BoundSpace,
    settings: Settings,
    (learn, count): (u64, u64),
    seed: u64,
) -> Result<Comparison, DrawError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut categorical = Categorical::new(space, settings);
    draw(&mut categorical, bound, settings.warmup + learn, &mut rng)?;
    let mut chained = Chained::new(space, settings);
    draw(&mut chained, bound, settings.warmup + learn, &mut rng)?;
    let uniform = categorical.warmup_acceptance().clone();
    let before = (categorical.acceptance().clone(), chained.acceptance().clone());
    draw(&mut categorical, bound, count, &mut rng)?;
    draw(&mut chained, bound, count, &mut rng)?;
    Ok(Comparison {
        uniform,
        categorical: categorical.acceptance().since(&before.0),
        chained: chained.acceptance().since(&before.1),
    })
}

fn draw(from: &mut dyn Sampler, space: &BoundSpace, count: u64, rng: &mut dyn RngCore) -> Result<(), DrawError> {
    (0..count).try_for_each(|_| from.draw(space, rng).map(drop))
}
