//! Which candidates count as equal to the best: those that chance may have put behind it.
//!
//! This is subset selection (Gupta, "On some multiple decision (selection and ranking) rules", Technometrics 7(2), 1965): of
//! candidates that are measured with noise, all are kept whose distance to the best measured one is no more than the noise makes of
//! the largest such distance. Taking the best measured one instead takes another one on every run.
//!
//! The noise is estimated from all candidates together, so that the width of the band is nearly the same on every run.

use tilewright_core::timing::median_interval;

/// The probability that chance alone puts a candidate out of the band which is as good as the best, in all looks together.
const MISSED: f64 = 0.05;

/// How often a comparison looks who is still in the band; each look is another chance to miss one.
pub(super) const LOOKS: u32 = 3;

/// The standard error of a median by that of a mean, for normal noise: the root of half of pi.
const OF_MEDIAN: f64 = 1.253_314_137_315_500_1;

/// The standard deviation by the median of absolute deviations, for normal noise.
const OF_DEVIATIONS: f64 = 1.482_602_218_505_602;

/// Candidates beside the best.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Band {
    /// The cost of each by that of the best, at least 1. None of those that were not timed in every round.
    pub(crate) relative: Vec<Option<f64>>,
    /// What chance makes of the distance between two equal ones, as a share; infinite where one round is all there is.
    pub(crate) chance: f64,
}

impl Band {
    /// From the cost of every candidate in each round from the first on; none of those that failed.
    pub(crate) fn of(costs: &[&[f64]]) -> Self {
        let rounds = costs.iter().map(|c| c.len()).max().unwrap_or(0);
        let stayed: Vec<usize> = (0..costs.len()).filter(|at| rounds > 0 && costs[*at].len() == rounds).collect();
        let median = |at: usize| median_interval(&mut costs[at].to_vec()).median;
        let mut relative = vec![None; costs.len()];
        let Some(&best) = stayed.iter().min_by(|a, b| median(**a).total_cmp(&median(**b))) else {
            return Self { relative, chance: 0.0 };
        };
        let (mut left, mut compared) = (Vec::new(), 0);
        let mut logs: Vec<(usize, f64)> = vec![(best, 0.0)];
        for &at in stayed.iter().filter(|at| **at != best) {
            let apart = Apart::of(costs[at], costs[best]);
            logs.push((at, apart.log));
            left.extend(apart.left);
            compared += rounds;
        }
        // By pairs another one may be ahead of the one with the least median.
        let least = logs.iter().map(|(_, log)| *log).fold(f64::INFINITY, f64::min);
        logs.iter().for_each(|(at, log)| relative[*at] = Some((log - least).exp()));
        let others = stayed.len() - 1;
        let chance = if others == 0 { 0.0 } else { largest(others) * OF_MEDIAN * deviation(left, compared) };
        Self { relative, chance: (chance / (rounds as f64).sqrt()).exp_m1() }
    }

    /// How far behind the best a candidate may be and still count as equal to it, as a share: the margin, or half of it and what
    /// chance adds, but never more than `most`. So a candidate within half the margin of the best stays in with 95%.
    pub(crate) fn within(&self, margin: f64, most: f64) -> f64 {
        (0.5 * margin + self.chance).min(most).max(margin)
    }

    /// The candidates this close, each with its cost by the best's.
    pub(crate) fn members(&self, within: f64) -> Vec<(usize, f64)> {
        let all = self.relative.iter().enumerate().filter_map(|(at, relative)| Some((at, (*relative)?)));
        all.filter(|(_, relative)| *relative <= 1.0 + within).collect()
    }
}

/// How far the largest of so many equally distributed normal distances is from zero in standard errors, in all looks, but for
/// [`MISSED`]: by Bonferroni's inequality, and the bound `exp(-z^2 / 2) / 2` on the tail beyond z.
fn largest(distances: usize) -> f64 {
    (2.0 * (distances as f64 * f64::from(LOOKS) / (2.0 * MISSED)).ln()).sqrt()
}

/// Two candidates round by round.
struct Apart {
    /// Logarithm of the ratio of their costs.
    log: f64,
    /// How far the ratios of single rounds are off the median of their kind, but for one of each kind: a median is one of its own
    /// numbers, or halfway between two.
    left: Vec<f64>,
}

impl Apart {
    /// The mean of the median of the forward rounds and that of the backward ones, in which a steady drift cancels.
    fn of(costs: &[f64], best: &[f64]) -> Self {
        let logs: Vec<f64> = costs.iter().zip(best).map(|(a, b)| (a / b).ln()).collect();
        // Of two rounds each would be its own median, which leaves nothing to tell the noise by.
        let kinds = if logs.len() < 3 { 1 } else { 2 };
        let (mut left, mut log) = (Vec::new(), 0.0);
        for kind in 0..kinds {
            let mut of_kind: Vec<f64> = logs.iter().copied().skip(kind).step_by(kinds).collect();
            let median = median_interval(&mut of_kind).median;
            let mut off: Vec<f64> = of_kind.iter().map(|log| (log - median).abs()).collect();
            off.sort_by(f64::total_cmp);
            left.extend(off.drain(1..));
            log += median / kinds as f64;
        }
        Self { log, left }
    }
}

/// The standard deviation by what is left of so many numbers beside their medians: robust, since a disturbed round says nothing of the
/// others.
fn deviation(mut left: Vec<f64>, numbers: usize) -> f64 {
    if left.is_empty() {
        return f64::INFINITY;
    }
    OF_DEVIATIONS * median_interval(&mut left).median * (numbers as f64 / left.len() as f64).sqrt()
}

#[cfg(test)]
mod tests;
