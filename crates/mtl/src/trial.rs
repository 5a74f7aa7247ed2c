//! Sources in the place of a target: devices and inputs both unseen.

use crate::error::MtlError;
use crate::sources::{Source, Sources};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;

/// Share of the inputs that the models of a split are fitted on.
const TRAIN: f64 = 2.0 / 3.0;

/// Sources to learn from, and one to judge by, without an input in common.
pub(crate) struct Trial {
    pub(crate) rest: Sources,
    pub(crate) target: Source,
}

/// Every source as the target, in every split of the inputs.
pub(crate) fn trials(sources: &Sources, splits: usize, seed: u64) -> Result<Vec<Trial>, MtlError> {
    let groups: BTreeSet<u32> = sources.all().iter().flat_map(|s| s.cases.cases()).map(|c| c.group).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let split = |_| {
        let mut order: Vec<u32> = groups.iter().copied().collect();
        order.shuffle(&mut rng);
        let train = ((order.len() as f64 * TRAIN) as usize).clamp(1, order.len().max(2) - 1);
        order[..train.min(order.len())].iter().copied().collect::<BTreeSet<u32>>()
    };
    let splits: Vec<BTreeSet<u32>> = (0..splits).map(split).collect();
    let mut out = Vec::new();
    for at in 0..sources.all().len() {
        for train in &splits {
            let rest = sources.without(at)?.of_groups(|g| train.contains(&g));
            let target = sources.all()[at].of_groups(|g| !train.contains(&g));
            out.push(Trial { rest, target });
        }
    }
    Ok(out)
}
