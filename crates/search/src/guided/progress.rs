//! When a guided search has found what it will find.

/// Evaluations without an improvement after which the chance of one falls to a part in e. Learned: on the recorded spaces of
/// the crate's README, a search that was going to improve by more than 5% did within 150 evaluations, but for one in a hundred
/// that took 400.
const PATIENCE: f64 = 170.0;
/// The same, relative to how many evaluations the last improvement took: who still improves late is given longer.
const LATE: f64 = 0.4;

/// Evaluations, and the last improvement by more than epsilon.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    epsilon: f64,
    seen: usize,
    /// The cost that an improvement is measured from, and when it was found.
    level: f64,
    found_at: usize,
}

impl Progress {
    pub(crate) fn new(epsilon: f64) -> Self {
        Self { epsilon, seen: 0, level: f64::INFINITY, found_at: 0 }
    }

    /// Counts an evaluation; infinite for a failure.
    pub(crate) fn see(&mut self, cost: f64) {
        self.seen += 1;
        if cost < self.level * (1.0 - self.epsilon) {
            self.level = cost;
            self.found_at = self.seen;
        }
    }

    /// The chance that the search would still improve by more than epsilon.
    pub(crate) fn bound(&self) -> f64 {
        if !self.level.is_finite() {
            return 1.0;
        }
        let patience = PATIENCE.max(LATE * self.found_at as f64);
        (-((self.seen - self.found_at) as f64) / patience).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn improvements_give_time_and_small_ones_do_not() {
        let mut progress = Progress::new(0.05);
        progress.see(f64::INFINITY);
        assert_eq!(progress.bound(), 1.0);
        progress.see(1.0);
        (0..170).for_each(|_| progress.see(0.97));
        assert!((progress.bound() - (-1.0_f64).exp()).abs() < 1e-12);
        progress.see(0.9);
        assert_eq!(progress.bound(), 1.0);
        let mut late = Progress::new(0.05);
        (0..999).for_each(|_| late.see(f64::INFINITY));
        late.see(1.0);
        (0..400).for_each(|_| late.see(1.0));
        assert!((late.bound() - (-1.0_f64).exp()).abs() < 1e-12);
    }
}
