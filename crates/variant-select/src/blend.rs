//! Forest and boosted trees together: one learns from all variants of an input at once, the other from each by itself, and
//! their mistakes differ.

use crate::forest::{CostForest, ForestSelector};
use crate::order::{RankScratch, by_score};
use crate::trees::{BoostedTrees, Objective, TreeSelector};
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// Fits both, and adds the losses of performance that they expect. For few variants with names of their own; where a candidate is
/// none of the forest's classes, the boosted trees decide alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Blend {
    /// The forest.
    pub forest: CostForest,
    /// The boosted trees.
    pub trees: BoostedTrees,
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
        Self { forest: CostForest::thorough(), trees }
    }
}

impl FitSelector for Blend {
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        let (forest, trees) = rayon::join(|| self.forest.fit_forest(data, seed), || self.trees.fit_trees(data, seed));
        Ok(Box::new(BlendSelector { forest: forest?, trees: trees? }))
    }
}

struct BlendSelector {
    forest: ForestSelector,
    trees: TreeSelector,
}

impl Selector for BlendSelector {
    fn rank(&self, input: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        let expected = self.forest.losses(input, candidates);
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
