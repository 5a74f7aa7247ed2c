//! How good the choices on a device are.

use serde::Serialize;
use tilewright_core::choice::{Case, ChoiceSet};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// Scores over the cases in which something ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// Mean of the best time over the time of the choice; a choice that failed counts 0.
    pub fraction_of_oracle: f64,
    /// Fraction of choices that are the fastest.
    pub accuracy: f64,
    /// Cases that were scored.
    pub cases: usize,
}

impl Score {
    /// Scores what a selector chooses.
    pub fn of(selector: &dyn Selector, data: &ChoiceSet) -> Self {
        let (mut order, mut candidates) = (VariantOrder::new(), Vec::<Candidate>::new());
        Self::of_choices(data, |case| {
            candidates.clear();
            candidates.extend(case.trials.iter().map(|t| t.candidate.clone()));
            selector.rank(&case.features, &candidates, &mut order);
            order.first().copied()
        })
    }

    /// Scores given choices: the number of the trial that is chosen in a case.
    pub fn of_choices(data: &ChoiceSet, mut choose: impl FnMut(&Case) -> Option<usize>) -> Self {
        let mut score = Self::default();
        for case in data.cases() {
            let Some(best) = case.best() else { continue };
            let cost = choose(case).and_then(|i| case.trials.get(i)).and_then(|t| t.cost);
            score.fraction_of_oracle += cost.map_or(0.0, |c| best / c);
            score.accuracy += f64::from(u8::from(cost == Some(best)));
            score.cases += 1;
        }
        let n = score.cases.max(1) as f64;
        score.fraction_of_oracle /= n;
        score.accuracy /= n;
        score
    }

    /// What choosing among all that ran by lot gives on average, exactly.
    pub fn of_lot(data: &ChoiceSet) -> Self {
        let mut score = Self::default();
        for case in data.cases() {
            let Some(best) = case.best() else { continue };
            let ran: Vec<f64> = case.trials.iter().filter_map(|t| t.cost).collect();
            let n = ran.len() as f64;
            score.fraction_of_oracle += ran.iter().map(|c| best / c).sum::<f64>() / n;
            score.accuracy += ran.iter().filter(|c| **c == best).count() as f64 / n;
            score.cases += 1;
        }
        let n = score.cases.max(1) as f64;
        Self { fraction_of_oracle: score.fraction_of_oracle / n, accuracy: score.accuracy / n, cases: score.cases }
    }
}
