//! The tail beyond the best of a sample, by what random searches of other spaces met there.

use super::sample::Sample;
use serde::{Deserialize, Serialize};

/// How the chance of a miss follows from a sample.
///
/// If the number of points below a log cost falls off towards the optimum at a rate `s`, a uniform sample of the share
/// `f` has missed a point `w` below its best with the odds `(1 - f) / f * exp(-s w)`: the least of the sample is, in counts
/// of points below it, exponentially distributed. A tail of that rate shows about `exp(s w)` points within `w` of the best,
/// so that the odds are `(1 - f) / f` by this count. Where the tail comes to an end they fall faster, and a small share is
/// no reason for suspicion: it counts as one half. Where the optimum stands alone the count says nothing. So what a ratio
/// means in fact is learned from random searches of other spaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// The epsilon at which it was learned: at another, its chances are a guess.
    pub epsilon: f64,
    /// Chances of a miss, ascending, and the suspicion (a logarithm, see [`Tail`]) at or below which it is no more than
    /// that; ascending too.
    pub chances: Vec<(f64, f64)>,
}

impl Default for Tail {
    /// Fitted by [`super::fit_tail`] on the exhaustively measured spaces that the crate's README names, at an epsilon of 5%.
    fn default() -> Self {
        Self {
            epsilon: 0.05,
            chances: vec![
                (0.01, -5.78),
                (0.02, -4.96),
                (0.05, -3.37),
                (0.1, -2.71),
                (0.2, -2.2),
                (0.3, -1.95),
                (0.5, -1.61),
            ],
        }
    }
}

/// Log odds of not having looked, at most even ones, by the number of points as good as the best; infinite if none worked.
pub(super) fn suspicion(sample: &Sample) -> f64 {
    let share = sample.share();
    ((1.0 - share) / share).ln().min(0.0) - (sample.within() as f64).ln()
}

impl Tail {
    /// The probability that a point that was not seen is faster than the best seen by more than the tolerance. No more than
    /// the share that was not seen: the optimum is as likely there as anywhere.
    pub fn miss(&self, sample: &Sample) -> f64 {
        self.chance(suspicion(sample)).min(1.0 - sample.share())
    }

    /// What is to be said of its bound at an epsilon other than the one at which it was learned.
    pub fn caution(&self, asked: f64) -> Option<String> {
        let (learned, asked) = (100.0 * self.epsilon, 100.0 * asked);
        let is_other = (learned - asked).abs() > 1e-6;
        is_other.then(|| {
            format!("the rule that ends a random search was learned at an epsilon of {learned}%: at {asked}% its bound is a guess")
        })
    }

    /// Between the learned chances on a straight line in log odds, with the slope of the formula beyond them.
    fn chance(&self, suspicion: f64) -> f64 {
        let odds = |p: f64| (p / (1.0 - p)).ln();
        let above = self.chances.partition_point(|(_, s)| *s <= suspicion);
        let at = match (above.checked_sub(1).map(|i| self.chances[i]), self.chances.get(above)) {
            (Some((p, s)), Some((q, t))) => odds(p) + (odds(*q) - odds(p)) * (suspicion - s) / (t - s),
            (Some((p, s)), None) | (None, Some(&(p, s))) => odds(p) + suspicion - s,
            (None, None) => f64::INFINITY,
        };
        1.0 / (1.0 + (-at).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_met_where_they_were_learned_and_lie_between_elsewhere() {
        let tail = Tail { epsilon: 0.05, chances: vec![(0.05, -3.0), (0.1, -2.0), (0.3, 0.0)] };
        for (p, s) in &tail.chances {
            assert!((tail.chance(*s) - p).abs() < 1e-12);
        }
        let grid: Vec<f64> = (-80..40).map(|i| tail.chance(f64::from(i) / 10.0)).collect();
        assert!(grid.is_sorted() && grid[0] > 0.0 && grid[119] < 1.0);
        assert_eq!(Tail { epsilon: 0.05, chances: Vec::new() }.chance(-9.0), 1.0);
    }

    #[test]
    fn another_epsilon_than_the_learned_one_is_told() {
        assert_eq!(Tail::default().caution(0.05), None);
        let told = Tail::default().caution(0.1).unwrap();
        assert!(told.contains("5%") && told.contains("10%"), "{told}");
    }

    #[test]
    fn many_as_good_as_the_best_leave_little_suspicion() {
        let mut sample = Sample::new(1000, 0.05);
        (0..10).for_each(|i| sample.see(1.0 + f64::from(i)));
        assert_eq!(suspicion(&sample), 0.0);
        (0..10).for_each(|i| sample.see(1.0 + f64::from(i) * 1e-3));
        assert!((suspicion(&sample) + 11f64.ln()).abs() < 1e-12);
        (0..880).for_each(|_| sample.see(9.0));
        assert!((suspicion(&sample) - ((0.1f64 / 0.9).ln() - 11f64.ln())).abs() < 1e-9);
        assert!(Tail { epsilon: 0.05, chances: Vec::new() }.miss(&sample) <= 0.1 + 1e-12);
    }
}
