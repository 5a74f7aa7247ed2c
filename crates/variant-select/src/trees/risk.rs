//! The chance that a candidate fails, by boosted trees.

use super::bins::Binned;
use super::boost;
use super::derive::Derived;
use super::grow::Shape;
use super::model::Tree;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use tilewright_core::choice::ChoiceSet;

/// Trees, their shape, and how many trials that ran are taken for each that failed.
const TREES: usize = 16;
const SHAPE: Shape = Shape { leaves: 12, depth: 6, rate: 0.4, least_curvature: 2.0, l2: 1.0 };
const RAN_PER_FAILED: usize = 8;
/// At least so many that ran.
const RAN: usize = 4000;

/// Squared errors on 0 (ran) and 1 (failed), so that a leaf is a share of failures.
#[derive(Clone, Debug)]
pub(crate) struct Risk {
    trees: Vec<Tree>,
    limit: f32,
}

impl Risk {
    /// None where nothing tells failures apart.
    pub(crate) fn fit(data: &ChoiceSet, derived: &Derived, seed: u64) -> Option<Self> {
        let (rows, failed) = sample(data, derived, seed);
        let width = derived.width();
        let binned = Binned::new(&rows, width, 254);
        let features = binned.varying();
        if features.is_empty() || !failed.contains(&true) || !failed.contains(&false) {
            return None;
        }
        // Half is judged by what the other half teaches, to see what the risk of a failure unseen looks like.
        let halves: Vec<Vec<u32>> = (0..2).map(|h| (0..failed.len() as u32).filter(|r| r % 2 == h).collect()).collect();
        let mut unseen: Vec<f32> = Vec::new();
        for (taught, judged) in [(0, 1), (1, 0)] {
            let trees = taught_by(&halves[taught], &binned, &features, &failed);
            let failures = halves[judged].iter().filter(|&&r| failed[r as usize]);
            unseen.extend(failures.map(|&row| sum(&trees, |column| rows[row as usize * width + column])));
        }
        unseen.sort_unstable_by(f32::total_cmp);
        // A failure costs everything, a refusal only what the next best is behind: nearly all failures are to be refused.
        let low = unseen.get(unseen.len() / 50).copied().unwrap_or(0.0);
        let all: Vec<u32> = (0..failed.len() as u32).collect();
        let trees = taught_by(&all, &binned, &features, &failed);
        Some(Self { trees, limit: (0.5 * low).clamp(0.03, 0.3) })
    }

    /// Whether the candidate may be chosen; `value` gives a number of its row.
    pub(crate) fn allows(&self, value: impl Fn(usize) -> f32) -> bool {
        sum(&self.trees, value) < self.limit
    }
}

/// All failed trials, and some of those that ran.
fn sample(data: &ChoiceSet, derived: &Derived, seed: u64) -> (Vec<f32>, Vec<bool>) {
    let trials = || data.cases().iter().flat_map(|c| (0..c.trials.len()).map(move |t| (c, t)));
    let of = |failed: bool| trials().filter(move |(c, t)| c.trials[*t].cost.is_none() == failed);
    let mut kept: Vec<_> = of(true).collect();
    let mut ran: Vec<_> = of(false).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    ran.shuffle(&mut rng);
    ran.truncate((RAN_PER_FAILED * kept.len()).max(RAN));
    kept.extend(ran);
    kept.shuffle(&mut rng);
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for (case, trial) in kept {
        derived.row(&case.features, &case.trials[trial].candidate, &mut rows);
        failed.push(case.trials[trial].cost.is_none());
    }
    (rows, failed)
}

fn sum(trees: &[Tree], value: impl Fn(usize) -> f32) -> f32 {
    trees.iter().map(|tree| tree.value(&value)).sum()
}

/// Trees that are taught by some of the rows.
fn taught_by(rows: &[u32], binned: &Binned, features: &[usize], failed: &[bool]) -> Vec<Tree> {
    boost(binned, TREES, &SHAPE, |predicted, gradient, _| {
        for ((g, p), &f) in gradient.iter_mut().zip(predicted).zip(failed) {
            *g = p - f32::from(u8::from(f));
        }
        (rows.to_vec(), features.to_vec())
    })
}
