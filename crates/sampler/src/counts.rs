//! How often each value of each parameter was accepted: the posterior of ISAAC's generative model.

use crate::DrawError;
use rand::{Rng, RngCore};
use tilewright_core::space::{BoundSpace, Param, ParamSpace};

/// Accepted values by parameter, over a symmetric Dirichlet prior: a categorical distribution for each parameter.
///
/// The counts belong to a kernel's parameters, whatever the input; which points are legal belongs to a bound space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    names: Vec<String>,
    /// By parameter and value, the prior included.
    counts: Vec<Vec<u64>>,
    totals: Vec<u64>,
}

impl Counts {
    /// No samples, and `alpha` pseudo-samples of every value (100 in ISAAC, section 4.1). A prior of 0 is taken as 1: no
    /// value must become impossible because it has not been seen yet.
    pub fn new(space: &ParamSpace, alpha: u64) -> Self {
        let prior = |p: &Param| vec![alpha.max(1); p.values.len()];
        let counts: Vec<_> = space.params().iter().map(prior).collect();
        let totals = counts.iter().map(|c| c.iter().sum()).collect();
        Self { names: space.params().iter().map(|p| p.name.clone()).collect(), counts, totals }
    }

    /// Counts an accepted point.
    pub fn accept(&mut self, point: &[u16]) {
        for ((counts, total), &index) in self.counts.iter_mut().zip(&mut self.totals).zip(point) {
            counts[usize::from(index)] += 1;
            *total += 1;
        }
    }

    /// The probabilities of a parameter's values.
    pub fn probabilities(&self, param: usize) -> impl Iterator<Item = f64> + '_ {
        let total = self.totals[param] as f64;
        self.counts[param].iter().map(move |&c| c as f64 / total)
    }

    /// The number of equally likely candidates that would be as hard to guess as one of these (the exponential of the
    /// entropy): how far the model still spreads. Before anything is counted it is the size of the space.
    pub fn perplexity(&self) -> f64 {
        let entropy = |param| -> f64 { self.probabilities(param).map(|p| -p * p.ln()).sum() };
        (0..self.counts.len()).map(entropy).sum::<f64>().exp()
    }

    /// Draws a value of a parameter among some of them, at least one, in proportion to their counts.
    pub(crate) fn draw_among(&self, param: usize, among: &[u16], rng: &mut dyn RngCore) -> u16 {
        let weighted = among.iter().map(|&i| (self.counts[param][usize::from(i)], i));
        let total = weighted.clone().map(|(count, _)| count).sum();
        pick(weighted, rng.random_range(0..total))
    }

    /// Refuses spaces of other parameters.
    pub(crate) fn expect(&self, space: &BoundSpace) -> Result<(), DrawError> {
        let params = space.params();
        let same =
            |((name, counts), p): ((&String, &Vec<u64>), &Param)| *name == p.name && counts.len() == p.values.len();
        if params.len() == self.names.len() && self.names.iter().zip(&self.counts).zip(params).all(same) {
            return Ok(());
        }
        let describe = |(name, len): (&str, usize)| format!("{name}[{len}]");
        let expected = self.names.iter().map(String::as_str).zip(self.counts.iter().map(Vec::len)).map(describe);
        let found = params.iter().map(|p| (p.name.as_str(), p.values.len())).map(describe);
        Err(DrawError::OtherSpace {
            expected: expected.collect::<Vec<_>>().join(" "),
            found: found.collect::<Vec<_>>().join(" "),
        })
    }
}

/// The index at position `at` of the line on which every index takes as much room as its count.
fn pick(weighted: impl Iterator<Item = (u64, u16)>, mut at: u64) -> u16 {
    let mut last = 0;
    for (count, index) in weighted {
        last = index;
        if at < count {
            break;
        }
        at -= count;
    }
    last
}
