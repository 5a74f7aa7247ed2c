//! What fails is not chosen: a model of failures beside any selector.

use crate::classes::NameHasher;
use crate::order::RankScratch;
use crate::trees::{Derived, Risk};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::feature::FeatureKind;
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// Fits a method, and a model of which candidates fail on which inputs. In the order of a choice, candidates that are likely to
/// fail come last, whatever the method says of them; they are only chosen where nothing else is left.
///
/// Where nothing failed in training, choices cost the same as without.
pub struct Guarded<F>(pub F);

/// Fits a guard for an already fitted selector.
///
/// # Errors
/// None today: a guard that cannot be fitted is none.
pub fn guarded(inner: Box<dyn Selector>, data: &ChoiceSet, seed: u64) -> Box<dyn Selector> {
    match Guard::fit(data, seed) {
        Some(guard) => Box::new(GuardedSelector { inner, guard }),
        None => inner,
    }
}

impl<F: FitSelector> FitSelector for Guarded<F> {
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        Ok(guarded(self.0.fit(data, seed)?, data, seed))
    }
}

impl FitSelector for Box<dyn FitSelector> {
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        (**self).fit(data, seed)
    }
}

/// So many trials without a failure, and a candidate counts as one that cannot fail.
const SURE: u32 = 30;

/// What is known of failures.
struct Guard {
    derived: Derived,
    /// None where every candidate either always failed or never did.
    risk: Option<Risk>,
    known: HashMap<Box<str>, Known, BuildHasherDefault<NameHasher>>,
    /// Whether candidates that were never seen may fail: where candidates have features of their own, these tell.
    strangers: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It ran always, often enough.
    Safe,
    /// It never ran.
    Hopeless,
    /// It depends on the input, or it was seen too rarely.
    Open,
}

impl Guard {
    fn fit(data: &ChoiceSet, seed: u64) -> Option<Self> {
        let mut counts: HashMap<&str, (u32, u32)> = HashMap::new();
        for trial in data.cases().iter().flat_map(|c| &c.trials) {
            let count = counts.entry(&trial.candidate.variant).or_default();
            count.0 += 1;
            count.1 += u32::from(trial.cost.is_none());
        }
        if counts.values().all(|c| c.1 == 0) {
            return None;
        }
        let known = |(trials, failed): (u32, u32)| match failed {
            0 if trials >= SURE => Known::Safe,
            n if n == trials => Known::Hopeless,
            _ => Known::Open,
        };
        let known = counts.into_iter().map(|(name, c)| (name.into(), known(c))).collect();
        let derived = Derived::of_failures(data);
        let risk = Risk::fit(data, &derived, seed);
        let strangers = data.schema().config.iter().any(|f| f.kind == FeatureKind::Size);
        Some(Self { derived, risk, known, strangers })
    }

    /// Whether a candidate may be chosen.
    fn allows(&self, input: &[f32], candidate: &Candidate) -> bool {
        match self.known.get(candidate.variant.as_str()) {
            Some(Known::Safe) => return true,
            Some(Known::Hopeless) => return false,
            None if !self.strangers => return true,
            Some(Known::Open) | None => {}
        }
        let Some(risk) = &self.risk else { return true };
        RankScratch::with(|scratch| {
            scratch.rows.clear();
            self.derived.row(input, candidate, &mut scratch.rows);
            risk.allows(&scratch.rows)
        })
    }
}

struct GuardedSelector {
    inner: Box<dyn Selector>,
    guard: Guard,
}

/// How many of the front of an order are checked: as many as anybody times again.
const CHECKED: usize = 3;

impl Selector for GuardedSelector {
    fn rank(&self, input: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        self.inner.rank(input, candidates, out);
        // Candidates behind the first few that are allowed keep their order.
        let (mut allowed, mut at) = (0, 0);
        for _ in 0..out.len() {
            if allowed == CHECKED {
                break;
            }
            if self.guard.allows(input, &candidates[out[at]]) {
                allowed += 1;
                at += 1;
            } else {
                out[at..].rotate_left(1);
            }
        }
    }
}
