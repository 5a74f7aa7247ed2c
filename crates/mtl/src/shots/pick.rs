//! Which input to time next: the one that tells most about choices that are uncertain.

use super::Adapted;
use crate::experts::Expected;
use serde::Serialize;
use statrs::distribution::{Continuous, ContinuousCDF, Normal};
use std::collections::BTreeSet;
use tilewright_core::choice::ChoiceSet;
use tilewright_core::selector::Candidate;

/// Most inputs that are compared, and so most that can be timed: each counts for those near it.
pub const MOST: usize = 250;

/// What timing one input is expected to bring.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Worth {
    /// Which case of the pool.
    pub case: usize,
    /// What choices are expected to lose before it is timed, as a mean log cost over the pool.
    pub expected_loss: f64,
    /// How much of that timing it is expected to save.
    pub saved: f64,
}

/// The inputs that could be timed, and what is still uncertain of each.
pub struct Pool<'a> {
    cases: &'a ChoiceSet,
    /// Of those that are compared, the candidates and what the experts expect of them.
    expected: Vec<(Vec<Candidate>, Expected)>,
    /// Which cases are compared.
    compared: Vec<usize>,
    /// Covariances of the differences of one variant between them, given what was timed.
    left: Vec<f64>,
}

impl<'a> Pool<'a> {
    /// Cases of which only inputs and candidates count, not their times.
    pub fn new(adapted: &Adapted, cases: &'a ChoiceSet) -> Self {
        let kept = cases.len().min(MOST);
        let compared: Vec<usize> = (0..kept).map(|i| i * cases.len() / kept).collect();
        let all = cases.cases();
        let places: Vec<Vec<f64>> = compared.iter().map(|&i| adapted.covariance.place(&all[i].features)).collect();
        let names: Vec<BTreeSet<&str>> =
            compared.iter().map(|&i| all[i].trials.iter().map(|t| t.candidate.variant.as_str()).collect()).collect();
        let mut left = vec![0.0; kept * kept];
        for i in 0..kept {
            for j in 0..kept {
                let both = names[i].intersection(&names[j]).count() as f64;
                let share = both / ((names[i].len() * names[j].len()) as f64).sqrt();
                let near = adapted.covariance.near(&places[i], &places[j]);
                left[i * kept + j] = share * adapted.covariance.of_variant(near);
            }
        }
        let expected = compared.iter().map(|&i| {
            let candidates: Vec<Candidate> = all[i].trials.iter().map(|t| t.candidate.clone()).collect();
            let expected = adapted.experts.expect(&all[i].features, &candidates);
            (candidates, expected)
        });
        Self { cases, expected: expected.collect(), compared, left }
    }

    /// The case that is worth most to time, by what `adapted` expects now; none where all were taken.
    pub fn next(&self, adapted: &Adapted, taken: &[usize]) -> Option<Worth> {
        let n = self.compared.len();
        let losses: Vec<f64> = (0..n).map(|i| self.expected_loss(adapted, i)).collect();
        let variance = |i: usize| self.left[i * n + i].max(1e-9);
        let noise = adapted.covariance.noise();
        let saved = |j: usize| {
            let by = variance(j) + noise;
            (0..n).map(|i| losses[i] * self.left[i * n + j].powi(2) / (variance(i) * by)).sum::<f64>()
        };
        let open = (0..n).filter(|&j| !taken.contains(&self.compared[j])).map(|j| (j, saved(j)));
        let (best, saved) = open.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let mean = losses.iter().sum::<f64>() / n as f64;
        Some(Worth { case: self.compared[best], expected_loss: mean, saved: saved / n as f64 })
    }

    /// Notes that a case is timed.
    pub fn take(&mut self, adapted: &Adapted, case: usize) {
        let Some(at) = self.compared.iter().position(|&c| c == case) else { return };
        let n = self.compared.len();
        let column: Vec<f64> = (0..n).map(|i| self.left[i * n + at]).collect();
        let by = column[at] + adapted.covariance.noise();
        for (i, row) in self.left.chunks_exact_mut(n).enumerate() {
            row.iter_mut().zip(&column).for_each(|(l, c)| *l -= column[i] * c / by);
        }
    }

    /// What the choice for an input is expected to lose: the sum over the other candidates of the mean by which each may be better.
    fn expected_loss(&self, adapted: &Adapted, at: usize) -> f64 {
        let case = &self.cases.cases()[self.compared[at]];
        let (candidates, expected) = &self.expected[at];
        let costs = adapted.adapted(&case.features, candidates, expected);
        let spread = (2.0 * self.left[at * self.compared.len() + at].max(1e-9)).sqrt();
        let best = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let normal = Normal::standard();
        let better = |cost: &f64| {
            let far = (cost - best) / spread;
            spread * (normal.pdf(far) - far * normal.sf(far))
        };
        // The best itself stands once among them.
        costs.iter().map(better).sum::<f64>() - better(&best)
    }
}
