//! Confidence intervals of a median.

/// A median with its 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The sample median.
    pub median: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The larger of the two half-widths, relative to the median.
    pub fn relative_error(&self) -> f64 {
        let half = (self.high - self.median).max(self.median - self.low);
        if self.median > 0.0 { half / self.median } else { f64::INFINITY }
    }
}

/// Student's t at 97.5% for 1 to 4 degrees of freedom.
const STUDENT_T: [f64; 4] = [12.706, 4.303, 3.182, 2.776];

/// Standard error of a median over that of a mean, for a normal distribution: sqrt(pi / 2).
const MEDIAN_OVER_MEAN: f64 = 1.2533;

/// The median of `samples` and its 95% confidence interval. Sorts the samples.
///
/// From six samples on the interval is free of any assumption about the distribution: the pair of order statistics
/// that covers the median with at least 95% by the binomial distribution. Fewer samples cannot give such a pair; there
/// the interval is Student's, widened for the median.
///
/// # Panics
/// If there are no samples.
pub fn median_interval(samples: &mut [f64]) -> Interval {
    samples.sort_by(f64::total_cmp);
    let n = samples.len();
    let median = f64::midpoint(samples[(n - 1) / 2], samples[n / 2]);
    if n == 1 {
        return Interval { low: 0.0, median, high: f64::INFINITY };
    }
    if n < 6 {
        let half = MEDIAN_OVER_MEAN * STUDENT_T[n - 2] * deviation(samples) / (n as f64).sqrt();
        return Interval { low: median - half, median, high: median + half };
    }
    let rank = interval_rank(n);
    Interval { low: samples[rank], median, high: samples[n - 1 - rank] }
}

fn deviation(samples: &[f64]) -> f64 {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    (samples.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}

/// The largest rank r (from zero) such that the r-th smallest and the r-th largest of n samples enclose the median
/// with at least 95%: the number of samples below the median is binomial (n, 1/2), and at most r of them has
/// probability at most 2.5%.
fn interval_rank(n: usize) -> usize {
    let mut term = 0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut tail = term;
    let mut rank = 0;
    while rank < n / 2 {
        term *= (n - rank) as f64 / (rank + 1) as f64;
        tail += term;
        if tail > 0.025 {
            break;
        }
        rank += 1;
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranks_are_those_of_the_tables() {
        // Published ranks (from one) of the 95% interval of a median: n=6: 1, 9: 2, 10: 2, 20: 6, 50: 18.
        for (n, from_one) in [(6, 1), (8, 1), (9, 2), (10, 2), (20, 6), (50, 18)] {
            assert_eq!(interval_rank(n) + 1, from_one, "n = {n}");
        }
    }

    #[test]
    fn few_samples_use_student() {
        let interval = median_interval(&mut [3.0, 1.0, 2.0]);
        assert!((interval.median - 2.0).abs() < 1e-12);
        // Deviation 1, so the half-width is 1.2533 * 4.303 / sqrt(3).
        assert!((interval.high - 2.0 - 3.1137).abs() < 1e-3, "{interval:?}");
        assert!(median_interval(&mut [1.0]).relative_error().is_infinite());
    }

    #[test]
    fn coverage_is_what_is_claimed() {
        use rand::{Rng, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
        for n in [3, 5, 6, 11, 20] {
            let trials = 2000;
            let covered = (0..trials).filter(|_| {
                // Sum of uniforms: close to normal, median 6.
                let draw = |rng: &mut rand_chacha::ChaCha8Rng| (0..12).map(|_| rng.random::<f64>()).sum::<f64>();
                let mut samples: Vec<f64> = (0..n).map(|_| draw(&mut rng)).collect();
                let interval = median_interval(&mut samples);
                interval.low <= 6.0 && 6.0 <= interval.high
            });
            let share = covered.count() as f64 / f64::from(trials);
            assert!(share > 0.935, "n = {n}: the interval covers the median in {share} of the trials");
        }
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_median(mut samples in prop::collection::vec(1e-9..1e3f64, 1..80)) {
            let interval = median_interval(&mut samples);
            prop_assert!(interval.low <= interval.median && interval.median <= interval.high);
        }
    }
}
