//! When a guided search has found what it will find.

/// Evaluations without an improvement, in square roots of the number of points, after which the chance of one falls to a part in e.
///
/// Chosen between what `scripts/guided-stop-table.sh` learns with convolution, the kernel that improves latest, and without it: the crate's
/// README has the figures.
const PATIENCE: f64 = 2.2;

/// The epsilon at which it was learned.
const LEARNED_AT: f64 = 0.05;

/// What is to be said of the bound at an epsilon other than the one at which it was learned.
pub(crate) fn caution(asked: f64) -> Option<String> {
    let is_other = (LEARNED_AT - asked).abs() > 1e-8;
    let (learned, asked) = (100.0 * LEARNED_AT, 100.0 * asked);
    is_other.then(|| {
        format!("the rule that ends a guided search was learned at an epsilon of {learned}%: at {asked}% its bound is a guess")
    })
}

/// Evaluations, and the last improvement by more than epsilon.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    epsilon: f64,
    /// Evaluations without an improvement after which the bound falls to a part in e.
    patience: f64,
    seen: usize,
    /// The cost that an improvement is measured from, and when it was found.
    level: f64,
    found_at: usize,
}

impl Progress {
    /// Of a search of so many points.
    pub(crate) fn new(size: usize, epsilon: f64) -> Self {
        let patience = PATIENCE * (size.max(1) as f64).sqrt();
        Self { epsilon, patience, seen: 0, level: f64::INFINITY, found_at: 0 }
    }

    /// Counts an evaluation; infinite for a failure.
    pub(crate) fn see(&mut self, cost: f64) {
        self.seen += 1;
        if cost < self.level * (1.0 - self.epsilon) {
            self.level = cost;
            self.found_at = self.seen;
        }
    }

    /// The chance that something better by more than epsilon is left.
    pub(crate) fn bound(&self) -> f64 {
        if !self.level.is_finite() {
            return 1.0;
        }
        (-((self.seen - self.found_at) as f64) / self.patience).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn improvements_give_time_and_small_ones_do_not() {
        let mut progress = Progress::new(10_000, 0.05);
        progress.see(f64::INFINITY);
        assert_eq!(progress.bound(), 1.0);
        progress.see(1.0);
        let patience = (100.0 * PATIENCE) as usize;
        (0..patience).for_each(|_| progress.see(0.97));
        assert!((progress.bound() - (-1.0_f64).exp()).abs() < 0.01);
        progress.see(0.9);
        assert_eq!(progress.bound(), 1.0);
    }

    #[test]
    fn larger_spaces_are_given_longer() {
        let waited = |size: usize| {
            let mut progress = Progress::new(size, 0.05);
            (0..1000).for_each(|_| progress.see(1.0));
            progress.bound()
        };
        assert!(waited(240_000) > waited(60_000) && waited(60_000) > waited(4_000));
        assert!((waited(240_000).ln() * 2.0 - waited(60_000).ln()).abs() < 1e-9, "by the square root");
    }

    #[test]
    fn another_epsilon_than_the_learned_one_is_told() {
        assert_eq!(caution(0.05), None);
        assert!(caution(0.02).is_some_and(|told| told.contains("5%") && told.contains("2%")));
    }
}
