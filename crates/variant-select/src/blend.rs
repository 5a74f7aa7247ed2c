//! Forest, boosted trees and a Gaussian process together: the first learns from all variants of an input at once, the second from
//! each by itself, the third by likeness, and their mistakes differ.

use crate::classes::{ClassSelector, cost_of_loss};
use crate::forest::CostForest;
use crate::order::{RankScratch, by_score};
use crate::process::CostProcess;
use crate::trees::{BoostedTrees, Objective, TreeSelector};
use std::collections::HashSet;
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// Fits all, and adds the losses of performance that they expect. For few variants with names of their own; where a candidate is
/// none of the forest's classes, the boosted trees decide alone. The process is fitted where every variant can be
/// a class of it and some feature of the input varies.
#[derive(Clone, Debug, PartialEq)]
pub struct Blend {
    /// The forest.
    pub forest: CostForest,
    /// The boosted trees.
    pub trees: BoostedTrees,
    /// The Gaussian process.
    pub process: CostProcess,
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
        Self { forest: CostForest::thorough(), trees, process: CostProcess::default() }
    }
}

impl FitSelector for Blend {
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        let both = || rayon::join(|| self.forest.fit_forest(data, seed), || self.trees.fit_trees(data, seed));
        let process = || match self.process.fit_process(data) {
            Err(SelectError::NoUsableFeature(_)) => Ok(None),
            fitted => fitted.map(Some),
        };
        let trials = data.cases().iter().flat_map(|c| &c.trials);
        let variants: HashSet<&str> = trials.map(|t| t.candidate.variant.as_str()).collect();
        let few = variants.len() <= self.process.classes;
        let ((forest, trees), process) = rayon::join(both, || if few { process() } else { Ok(None) });
        Ok(Box::new(BlendSelector { forest: forest?, trees: trees?, process: process? }))
    }
}

struct BlendSelector {
    forest: ClassSelector,
    trees: TreeSelector,
    process: Option<ClassSelector>,
}

impl BlendSelector {
    /// Calls back with the sum of the losses that the methods expect; where only the trees know the candidates, with relative costs and
    /// 0, else with how many methods were added up.
    fn summed<R>(&self, input: &[f32], candidates: &[Candidate], seen: impl FnOnce(&[f32], u8) -> R) -> R {
        let forest = self.forest.scores(input, candidates);
        let process = self.process.as_ref().and_then(|p| p.scores(input, candidates));
        RankScratch::with(|scratch| {
            self.trees.score(input, candidates, scratch);
            if forest.is_some() || process.is_some() {
                let least = scratch.scores.iter().copied().fold(f32::INFINITY, f32::min);
                scratch.scores.iter_mut().for_each(|score| *score = 1.0 - (least - *score).exp());
            }
            for losses in [&forest, &process].into_iter().flatten() {
                scratch.scores.iter_mut().zip(losses).for_each(|(score, loss)| *score += loss);
            }
            let known = u8::from(forest.is_some()) + u8::from(process.is_some());
            seen(&scratch.scores, if known > 0 { known + 1 } else { 0 })
        })
    }
}

impl Selector for BlendSelector {
    fn rank(&self, input: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        self.summed(input, candidates, |scores, _| by_score(scores, out));
    }

    fn relative_costs(&self, input: &[f32], candidates: &[Candidate], out: &mut Vec<f32>) -> bool {
        out.clear();
        self.summed(input, candidates, |scores, methods| match methods {
            0 => out.extend_from_slice(scores),
            n => out.extend(scores.iter().map(|sum| cost_of_loss(sum / f32::from(n)))),
        });
        true
    }
}
