//! What became of drawn candidates: the proportion that ISAAC's Table 1 compares.

use std::collections::BTreeMap;
use tilewright_core::space::Rule;

/// Candidates drawn, accepted and rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acceptance {
    /// Legal candidates.
    pub accepted: u64,
    /// All candidates.
    pub drawn: u64,
    /// By rule name, the candidates for which it was the first rule that did not hold, in the space's order of checking.
    /// Sums to `drawn - accepted`.
    pub rejected_by: BTreeMap<String, u64>,
}

impl Acceptance {
    /// Accepted candidates by drawn ones, 0 before the first.
    pub fn rate(&self) -> f64 {
        if self.drawn == 0 { 0.0 } else { self.accepted as f64 / self.drawn as f64 }
    }

    /// The rule that rejected most, the first by name among equals.
    pub fn strictest(&self) -> Option<&str> {
        let most = self.rejected_by.iter().max_by(|a, b| a.1.cmp(b.1).then(b.0.cmp(a.0)));
        most.map(|(rule, _)| rule.as_str())
    }

    /// Adds the candidates of another count.
    pub fn merge(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.drawn += other.drawn;
        for (rule, count) in &other.rejected_by {
            *self.rejected_by.entry(rule.clone()).or_default() += count;
        }
    }

    /// The candidates since an earlier state of the same count.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |rule: &str| earlier.rejected_by.get(rule).copied().unwrap_or(0);
        let rejected = self.rejected_by.iter().map(|(rule, count)| (rule.clone(), count - before(rule)));
        Self {
            accepted: self.accepted - earlier.accepted,
            drawn: self.drawn - earlier.drawn,
            rejected_by: rejected.filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// Counts a candidate: accepted, or rejected by a rule.
    pub(crate) fn count(&mut self, broken: Option<&Rule>) {
        self.drawn += 1;
        let Some(rule) = broken else {
            self.accepted += 1;
            return;
        };
        // Looked up before it is inserted, so that only the first rejection by a rule allocates.
        match self.rejected_by.get_mut(&rule.name) {
            Some(count) => *count += 1,
            None => {
                self.rejected_by.insert(rule.name.clone(), 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::space::{Param, ParamSpace, RuleGroup, Symbols};

    #[test]
    fn every_rejection_is_charged_to_one_rule() {
        let space = ParamSpace::builder()
            .param(Param::ints("a", [1, 2, 3]))
            .param(Param::ints("b", [1, 2, 3]))
            .rule("small", RuleGroup::User, "a < 3", "")
            .rule("order", RuleGroup::User, "a <= b", "")
            .build()
            .unwrap()
            .bind(&Symbols::new())
            .unwrap();
        let mut seen = Acceptance::default();
        for a in 0..3 {
            for b in 0..3 {
                seen.count(space.first_broken(&[a, b]));
            }
        }
        // Of (3, 1) both rules reject; it counts for the one that is decided first.
        assert_eq!(seen.rejected_by, BTreeMap::from([("small".to_owned(), 3), ("order".to_owned(), 1)]));
        assert_eq!((seen.accepted, seen.drawn), (5, 9));
        assert_eq!(seen.strictest(), Some("small"));
        let mut twice = seen.clone();
        twice.merge(&seen);
        assert_eq!(twice.rejected_by["small"], 6);
        assert_eq!(twice.since(&seen), seen);
        assert!((twice.rate() - 5.0 / 9.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_drawn_is_no_acceptance() {
        assert_eq!(Acceptance::default().rate(), 0.0);
        assert_eq!(Acceptance::default().strictest(), None);
    }
}
