//! What a model for an unseen device must beat.

use crate::error::MtlError;
use crate::experts::Experts;
use crate::sources::Sources;
use std::collections::HashMap;
use tilewright_core::choice::FitSelector;
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// Every source's own model votes (the paper's majority); the sum of their ranks breaks ties.
pub struct Majority {
    voters: Experts,
}

impl Majority {
    /// A vote of given selectors.
    pub fn of(voters: Vec<Box<dyn Selector>>) -> Self {
        Self { voters: Experts::new(voters.into_iter().map(|voter| (voter, 1.0)).collect()) }
    }

    /// The voters, each of which counts the same.
    pub fn into_experts(self) -> Experts {
        self.voters
    }

    /// Fits one model a source; one on which nothing ran has no vote.
    ///
    /// # Errors
    /// A source whose model cannot be fitted.
    pub fn fit(sources: &Sources, learner: &dyn FitSelector, seed: u64) -> Result<Self, MtlError> {
        let sources = sources.that_ran();
        let voters = sources.all().iter().map(|s| learner.fit(&s.cases, seed)).collect::<Result<_, _>>()?;
        Ok(Self::of(voters))
    }
}

impl Selector for Majority {
    fn rank(&self, input: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        let mut votes = vec![(0usize, 0usize); candidates.len()];
        let mut order = VariantOrder::new();
        for voter in self.voters.models() {
            voter.rank(input, candidates, &mut order);
            for (rank, &i) in order.iter().enumerate() {
                votes[i].0 += usize::from(rank == 0);
                votes[i].1 += rank;
            }
        }
        out.clear();
        out.extend(0..candidates.len());
        out.sort_by_key(|&i| (std::cmp::Reverse(votes[i].0), votes[i].1));
    }

    /// What the voters expect on average.
    fn relative_costs(&self, input: &[f32], candidates: &[Candidate], out: &mut Vec<f32>) -> bool {
        self.voters.relative_costs(input, candidates, out)
    }
}

/// The variant that did best on average on the sources, for every input.
pub struct BestOnSources {
    /// Mean share of the best performance.
    share: HashMap<String, f64>,
}

impl BestOnSources {
    /// Averages over all cases of all sources, each device with the same weight.
    pub fn fit(sources: &Sources) -> Self {
        let mut share: HashMap<String, f64> = HashMap::new();
        for source in sources.all() {
            let mut own: HashMap<&str, (f64, f64)> = HashMap::new();
            for case in source.cases.cases() {
                let Some(best) = case.best() else { continue };
                for t in &case.trials {
                    let sum = own.entry(&t.candidate.variant).or_default();
                    sum.0 += t.cost.map_or(0.0, |c| best / c);
                    sum.1 += 1.0;
                }
            }
            for (variant, (sum, n)) in own {
                *share.entry(variant.to_owned()).or_default() += sum / n;
            }
        }
        Self { share }
    }
}

impl Selector for BestOnSources {
    fn rank(&self, _: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        let share = |i: &usize| self.share.get(&candidates[*i].variant).copied().unwrap_or(0.0);
        out.clear();
        out.extend(0..candidates.len());
        out.sort_by(|a, b| share(b).total_cmp(&share(a)));
    }
}
