//! What fails is not chosen: a model of failures beside any selector.

use crate::classes::NameHasher;
use crate::trees::{Derived, Risk};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError, WORST};
use tilewright_core::feature::FeatureKind;
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// Fits a method, and a model of which candidates fail on which inputs. In the order of a choice, candidates that are likely to
/// fail come last, whatever the method says of them; they are only chosen where nothing else is left.
///
/// Where nothing failed in training, choices cost the same as without.
pub struct Guarded<F>(pub F);

/// Fits a guard for an already fitted selector; none where it cannot be fitted.
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
        risk.allows(|column| self.derived.value(column, input, candidate))
    }
}

struct GuardedSelector {
    inner: Box<dyn Selector>,
    guard: Guard,
}

impl Selector for GuardedSelector {
    fn rank(&self, input: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        self.inner.rank(input, candidates, out);
        // Only the first is chosen; those behind it keep their order, for whoever times more of them.
        for _ in 0..out.len() {
            if self.guard.allows(input, &candidates[out[0]]) {
                break;
            }
            out.rotate_left(1);
        }
    }

    fn relative_costs(&self, input: &[f32], candidates: &[Candidate], out: &mut Vec<f32>) -> bool {
        let known = self.inner.relative_costs(input, candidates, out);
        for (cost, candidate) in out.iter_mut().zip(candidates).filter(|_| known) {
            if !self.guard.allows(input, candidate) {
                *cost += WORST as f32;
            }
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::BestFixed;
    use tilewright_core::choice::{Case, Trial};
    use tilewright_core::feature::{Feature, FeatureSchema};
    use tilewright_core::metrics::ChoiceScores;

    /// "packed" is always fastest, and fails where its memory, rows times the longest row, runs out; "never" never ran.
    fn cases(from: u32, to: u32) -> ChoiceSet {
        let schema = FeatureSchema { input: vec![Feature::size("rows"), Feature::size("longest")], config: Vec::new() };
        let mut data = ChoiceSet::new(schema);
        for i in from..to {
            let (rows, longest) = (f64::from(10 + (i * 37) % 990), f64::from(1 + (i * 61) % 97));
            let trial =
                |name: &str, cost| Trial { candidate: Candidate { variant: name.into(), features: vec![] }, cost };
            let packed = (rows * longest < 30_000.0).then_some(1.0);
            let trials = vec![trial("packed", packed), trial("plain", Some(6.0)), trial("never", None)];
            data.push(Case { features: vec![rows as f32, longest as f32], trials, group: i }).unwrap();
        }
        data
    }

    #[test]
    fn what_fails_is_not_chosen() {
        let (train, test) = (cases(0, 800), cases(800, 1600));
        let alone = ChoiceScores::of(&*BestFixed.fit(&train, 0).unwrap(), &test).unwrap();
        assert!(alone.failed > 100, "{alone:?}");
        let guarded = ChoiceScores::of(&*Guarded(BestFixed).fit(&train, 0).unwrap(), &test).unwrap();
        // Close to the edge a failure cannot be told; far from it "packed" is still chosen.
        assert!(guarded.failed <= 5 && guarded.fraction_of_oracle > 0.93, "{guarded:?}");
    }

    #[test]
    fn where_everything_may_fail_the_order_stays_whole() {
        let selector = Guarded(BestFixed).fit(&cases(0, 400), 0).unwrap();
        let candidates = ["never", "packed"].map(|v| Candidate { variant: v.into(), features: vec![] });
        let mut order = VariantOrder::new();
        selector.rank(&[1000.0, 97.0], &candidates, &mut order);
        order.sort_unstable();
        assert_eq!(order, [0, 1]);
        selector.rank(&[10.0, 1.0], &candidates, &mut order);
        assert_eq!(order, [1, 0]);
    }

    #[test]
    fn without_failures_there_is_no_guard() {
        let mut data = ChoiceSet::new(cases(0, 1).schema().clone());
        let trials = vec![Trial { candidate: Candidate { variant: "a".into(), features: vec![] }, cost: Some(1.0) }];
        data.push(Case { features: vec![1.0, 1.0], trials, group: 0 }).unwrap();
        assert!(Guard::fit(&data, 0).is_none());
    }
}
