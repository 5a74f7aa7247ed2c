//! How good choices are: the columns of Table 1 of Vuduc et al., and what of the oracle's performance is left.

use crate::choice::{Case, ChoiceSet};
use crate::selector::{Candidate, Selector, VariantOrder};
use serde::Serialize;

/// Scores of a selector over cases. Fractions are between 0 and 1; a choice that failed counts as no performance at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ChoiceScores {
    /// Fraction of choices that are not the fastest.
    pub delta_miss: f64,
    /// Mean slow-down of the choice: its time over the best, less 1. Choices that failed have no time and are left out.
    pub delta_err: f64,
    /// Fraction of choices within 5% of the best time.
    pub best5: f64,
    /// Fraction of choices with less than 80% of the best performance.
    pub worst20: f64,
    /// Fraction of choices with less than 50% of the best performance.
    pub worst50: f64,
    /// Mean of the best time over the time of the choice.
    pub fraction_of_oracle: f64,
    /// The same, of the best of the first three choices, as if they were timed again.
    pub fraction_of_oracle_top3: f64,
    /// Cases that were scored: those in which something ran.
    pub cases: usize,
    /// Choices that failed.
    pub failed: usize,
}

impl ChoiceScores {
    /// Scores the order that a selector gives in each case; none where nothing ran in any.
    pub fn of(selector: &dyn Selector, data: &ChoiceSet) -> Option<Self> {
        let mut sums = Sums::default();
        let (mut order, mut candidates) = (VariantOrder::new(), Vec::<Candidate>::new());
        for case in data.cases() {
            candidates.clear();
            candidates.extend(case.trials.iter().map(|t| t.candidate.clone()));
            selector.rank(&case.features, &candidates, &mut order);
            sums.add(case, &order);
        }
        sums.mean()
    }

    /// Scores given orders, one a case, as [`ChoiceScores::of`] does.
    pub fn of_orders(data: &ChoiceSet, orders: &[VariantOrder]) -> Option<Self> {
        let mut sums = Sums::default();
        data.cases().iter().zip(orders).for_each(|(case, order)| sums.add(case, order));
        sums.mean()
    }

    /// What choosing at random among all that ran gives on average, exactly: its mean fraction of the oracle. 0 where nothing
    /// ran in any case.
    pub fn at_random(data: &ChoiceSet) -> f64 {
        let of_case = |case: &Case| {
            let best = case.best()?;
            let ran: Vec<f64> = case.trials.iter().filter_map(|t| t.cost).collect();
            Some(ran.iter().map(|c| best / c).sum::<f64>() / ran.len() as f64)
        };
        let fractions: Vec<f64> = data.cases().iter().filter_map(of_case).collect();
        fractions.iter().sum::<f64>() / fractions.len().max(1) as f64
    }

    /// The mean of scores, each weighing the same; counts are added up. None of none.
    pub fn mean(scores: &[Self]) -> Option<Self> {
        let n = scores.len() as f64;
        let mean = |of: fn(&Self) -> f64| scores.iter().map(of).sum::<f64>() / n;
        (!scores.is_empty()).then(|| Self {
            delta_miss: mean(|s| s.delta_miss),
            delta_err: mean(|s| s.delta_err),
            best5: mean(|s| s.best5),
            worst20: mean(|s| s.worst20),
            worst50: mean(|s| s.worst50),
            fraction_of_oracle: mean(|s| s.fraction_of_oracle),
            fraction_of_oracle_top3: mean(|s| s.fraction_of_oracle_top3),
            cases: scores.iter().map(|s| s.cases).sum(),
            failed: scores.iter().map(|s| s.failed).sum(),
        })
    }
}

#[derive(Default)]
struct Sums {
    total: ChoiceScores,
    timed: usize,
}

impl Sums {
    fn add(&mut self, case: &Case, order: &[usize]) {
        let Some(best) = case.best() else { return };
        let cost = |i: &usize| case.trials.get(*i).and_then(|t| t.cost);
        let chosen = order.first().and_then(cost);
        let fraction = chosen.map_or(0.0, |c| best / c);
        let of_three = order.iter().take(3).filter_map(cost).map(|c| best / c).fold(0.0, f64::max);
        let t = &mut self.total;
        t.cases += 1;
        t.failed += usize::from(chosen.is_none());
        t.delta_miss += f64::from(u8::from(fraction < 1.0));
        t.best5 += f64::from(u8::from(chosen.is_some_and(|c| c <= 1.05 * best)));
        t.worst20 += f64::from(u8::from(fraction < 0.8));
        t.worst50 += f64::from(u8::from(fraction < 0.5));
        t.fraction_of_oracle += fraction;
        t.fraction_of_oracle_top3 += of_three;
        if let Some(c) = chosen {
            t.delta_err += c / best - 1.0;
            self.timed += 1;
        }
    }

    fn mean(mut self) -> Option<ChoiceScores> {
        let n = self.total.cases as f64;
        let t = &mut self.total;
        for sum in [
            &mut t.delta_miss,
            &mut t.best5,
            &mut t.worst20,
            &mut t.worst50,
            &mut t.fraction_of_oracle,
            &mut t.fraction_of_oracle_top3,
        ] {
            *sum /= n;
        }
        t.delta_err /= self.timed.max(1) as f64;
        (t.cases > 0).then_some(self.total)
    }
}
