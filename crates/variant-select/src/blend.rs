//! Forest, boosted trees and kernel regression together: the first learns from all variants of an input at once, the second from
//! each by itself, the third is smooth where both have steps, and their mistakes differ.

use crate::forest::{CostForest, ForestSelector};
use crate::kernel::{KernelRidge, KernelSelector};
use crate::order::{RankScratch, by_score};
use crate::trees::{BoostedTrees, Objective, TreeSelector};
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// Fits all three, and adds the losses of performance that they expect. For few variants with names of their own; where a candidate
/// is none of the forest's classes, the boosted trees decide alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Blend {
    /// The forest.
    pub forest: CostForest,
    /// The boosted trees.
    pub trees: BoostedTrees,
    /// The kernel regression.
    pub kernel: KernelRidge,
    /// What its word counts, the others' being 1.
    pub weight: f32,
}

impl Default for Blend {
    fn default() -> Self {
        let trees = BoostedTrees {
            trees: 200,
            leaves: 16,
            rate: 0.06,
            objective: Objective::Listwise { temperature: 0.15 },
            ..BoostedTrees::default()
        };
        Self { forest: CostForest::thorough(), trees, kernel: KernelRidge::default(), weight: 1.0 }
    }
}

impl FitSelector for Blend {
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        let smooth = || match self.kernel.fit_kernel(data, seed) {
            // Trees can do without: they see candidates too.
            Err(SelectError::NoUsableFeature(_)) => Ok(None),
            other => other.map(Some),
        };
        let rest = || rayon::join(|| self.trees.fit_trees(data, seed), smooth);
        let (forest, (trees, kernel)) = rayon::join(|| self.forest.fit_forest(data, seed), rest);
        Ok(Box::new(BlendSelector { forest: forest?, trees: trees?, kernel: kernel?, weight: self.weight }))
    }
}

struct BlendSelector {
    forest: ForestSelector,
    trees: TreeSelector,
    kernel: Option<KernelSelector>,
    weight: f32,
}

impl BlendSelector {
    /// What forest and kernel expect every candidate to lose; none where one is none of their classes.
    fn losses(&self, input: &[f32], candidates: &[Candidate]) -> Option<Vec<f32>> {
        let mut losses = self.forest.losses(input, candidates)?;
        if let Some(kernel) = &self.kernel {
            let smooth = kernel.losses(input, candidates)?;
            losses.iter_mut().zip(smooth).for_each(|(l, s)| *l += self.weight * s);
        }
        Some(losses)
    }
}

impl Selector for BlendSelector {
    fn rank(&self, input: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        let expected = self.losses(input, candidates);
        RankScratch::with(|scratch| {
            self.trees.score(input, candidates, scratch);
            if let Some(expected) = expected {
                let least = scratch.scores.iter().copied().fold(f32::INFINITY, f32::min);
                for (score, loss) in scratch.scores.iter_mut().zip(expected) {
                    *score = 1.0 - (least - *score).exp() + loss;
                }
            }
            by_score(&scratch.scores, out);
        });
    }
}
