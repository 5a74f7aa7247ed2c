//! When a random search may end: rules that bound the chance of having missed what matters.
//!
//! All rules answer the same question: with what probability is some point that was not measured faster than the best
//! measured one by more than a share `epsilon` (Vuduc et al., section 3)?

mod fit;
mod learned;
mod sample;

pub use fit::{FitTailError, fit_tail};
pub use learned::Tail;
pub use sample::Sample;

use std::sync::Arc;

/// What a searcher tolerates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// How far below the optimum's performance the best found may be: 0.05 for 5%.
    pub epsilon: f64,
    /// With what probability it may be further.
    pub alpha: f64,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self { epsilon: 0.05, alpha: 0.1 }
    }
}

/// A tolerance that nothing can keep, or that everything keeps.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{what} is {value}: it must be more than 0 and less than 1")]
pub struct ToleranceError {
    /// `epsilon` or `alpha`.
    pub what: &'static str,
    /// What was given.
    pub value: f64,
}

impl Tolerance {
    /// A tolerance.
    ///
    /// # Errors
    /// A number outside (0, 1).
    pub fn new(epsilon: f64, alpha: f64) -> Result<Self, ToleranceError> {
        for (what, value) in [("epsilon", epsilon), ("alpha", alpha)] {
            if !(value > 0.0 && value < 1.0) {
                return Err(ToleranceError { what, value });
            }
        }
        Ok(Self { epsilon, alpha })
    }
}

/// A rule: the probability of having missed, from what a uniform sample without replacement shows.
#[derive(Clone, Debug)]
pub enum Rule {
    /// Equations 1 to 4 of the paper as they are printed: the distribution function is that of the sample, rescaled so
    /// that the best of the sample is the best of all. It is blind to what lies beyond the sample's best.
    Vuduc,
    /// No assumption at all: only one point may be good enough, and the chance that it is among those that were not
    /// measured is their share.
    Conservative,
    /// How many points are as good as the sample's best says how likely better ones are, as learned from other spaces.
    Learned(Arc<Tail>),
}

impl Rule {
    /// The bound on the probability that the best of the sample is further than `epsilon` from the optimum.
    pub fn bound(&self, sample: &Sample) -> f64 {
        if sample.seen() >= sample.size() {
            return 0.0;
        }
        if !sample.best().is_finite() {
            return 1.0;
        }
        let bound = match self {
            Self::Vuduc => vuduc(sample),
            Self::Conservative => 1.0 - sample.share(),
            Self::Learned(tail) => tail.miss(sample),
        };
        // 0 is for a space that was seen in whole.
        bound.max(f64::MIN_POSITIVE)
    }
}

/// Equation 2 with the distribution function of equation 4: the chance that `t` draws without replacement all fall among
/// the points at or below `1 - epsilon`.
fn vuduc(sample: &Sample) -> f64 {
    let (t, size) = (sample.seen() as f64, sample.size() as f64);
    let seen_below = t - sample.within() as f64;
    if seen_below == 0.0 {
        return 1.0;
    }
    let below = (size * seen_below / t).floor();
    if below < t {
        return 0.0;
    }
    (ln_choose(below, t) - ln_choose(size, t)).exp()
}

/// ln of the binomial coefficient.
fn ln_choose(n: f64, k: f64) -> f64 {
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// ln n!: exact sums for small n, Stirling's series to the third term beyond, which is right to 1e-12 there.
fn ln_factorial(n: f64) -> f64 {
    if n < 32.0 {
        return (2..=n as u32).map(|i| f64::from(i).ln()).sum();
    }
    let inverse = 1.0 / n;
    let series = inverse * (1.0 / 12.0 - inverse * inverse * (1.0 / 360.0 - inverse * inverse / 1260.0));
    n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_product_is_the_ratio_of_binomials() {
        // 3 of 10 seen, one of them within epsilon: 6.67 of 10 are taken to lie below, which is 6.
        let mut sample = Sample::new(10, 0.05);
        [1.0, 2.0, 3.0].into_iter().for_each(|c| sample.see(c));
        let product: f64 = (0..3).map(|r| (6.0 - f64::from(r)) / (10.0 - f64::from(r))).product();
        assert!((Rule::Vuduc.bound(&sample) - product).abs() < 1e-12);
        assert!((ln_factorial(40.0) - (2..=40).map(|i| f64::from(i).ln()).sum::<f64>()).abs() < 1e-10);
    }

    #[test]
    fn bounds_begin_at_one_and_end_at_zero() {
        let tail = Arc::new(Tail::default());
        for rule in [Rule::Vuduc, Rule::Conservative, Rule::Learned(tail)] {
            let mut sample = Sample::new(4, 0.05);
            assert_eq!(rule.bound(&sample), 1.0);
            sample.see(f64::INFINITY);
            assert_eq!(rule.bound(&sample), 1.0, "{rule:?} after a failure");
            for cost in [3.0, 1.0, 2.0] {
                sample.see(cost);
            }
            assert_eq!(rule.bound(&sample), 0.0, "{rule:?} when all is seen");
        }
    }

    #[test]
    fn tolerances_lie_between_nothing_and_everything() {
        assert!(Tolerance::new(0.05, 0.1).is_ok());
        assert_eq!(Tolerance::new(0.0, 0.1).unwrap_err().what, "epsilon");
        assert_eq!(Tolerance::new(0.1, 1.0).unwrap_err().what, "alpha");
        assert!(Tolerance::new(f64::NAN, 0.1).is_err());
    }
}
