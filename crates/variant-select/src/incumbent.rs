//! A variant that is left only where another is surely faster: what a caller ran before, such as a vendor's library, must not be
//! replaced for the worse.

use crate::evaluate::folds;
use std::collections::BTreeSet;
use tilewright_core::choice::{Case, ChoiceSet, FitSelector, SelectError};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// Folds by which the margin is learned, and how often the cases are dealt to folds anew: what a method expects in vain depends on what
/// it was not fitted on.
const FOLDS: usize = 8;
const DEALS: u64 = 3;

/// The margin is this many times the largest gain that was expected in vain: the cases tell it only so well.
const SLACK: f64 = 1.25;

/// Fewer choices beside an incumbent that ran say nothing of others.
const LEAST: usize = 6;

/// Fits a method, and how much it must expect to gain by leaving the incumbent before it may.
///
/// By grouped cross-validation: of all choices on cases that the method was not fitted on, the largest gain that was expected in vain, by
/// one that was slower than the incumbent (below `floor` of its performance), is a quarter below the margin; so is what `floor` allows.
/// Choices are among the candidates that ran: what may fail is the matter of [`Guarded`](crate::guard::Guarded), around the fitted method
/// and around what keeps the incumbent. A method that ranks and expects nothing ([`Selector::relative_costs`]) never leaves the
/// incumbent, nor does any method where the incumbent ran beside another in fewer than six cases, or all cases are of one group.
pub struct Incumbent<F> {
    /// The method.
    pub method: F,
    /// The variant.
    pub variant: String,
    /// The share of the incumbent's performance, above 0 and at most 1, below which a choice is for the worse.
    pub floor: f64,
}

impl<F: FitSelector> FitSelector for Incumbent<F> {
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        let margin = self.margin(data, seed)?;
        Ok(kept(self.method.fit(data, seed)?, &self.variant, margin))
    }
}

impl<F: FitSelector> Incumbent<F> {
    /// The natural log of the speed-up that must be expected, above 0; infinite where the cases say nothing of it.
    ///
    /// # Errors
    /// As the method's.
    pub fn margin(&self, data: &ChoiceSet, seed: u64) -> Result<f64, SelectError> {
        let dealt: Result<Vec<_>, SelectError> =
            (0..DEALS).map(|deal| folds(data, FOLDS, seed.wrapping_add(deal))).collect();
        let Ok(dealt) = dealt else { return Ok(f64::INFINITY) };
        let is_choice = |case: &&Case| {
            let ran = || case.trials.iter().filter(|trial| trial.cost.is_some());
            ran().count() > 1 && ran().any(|trial| trial.candidate.variant == self.variant)
        };
        if data.cases().iter().filter(is_choice).count() < LEAST {
            return Ok(f64::INFINITY);
        }
        let mut most = -self.floor.ln();
        for held_out in dealt.into_iter().flatten() {
            let out: BTreeSet<usize> = held_out.iter().copied().collect();
            let rest: Vec<usize> = (0..data.len()).filter(|at| !out.contains(at)).collect();
            let selector = self.method.fit(&data.subset(&rest), seed)?;
            for case in held_out.iter().map(|at| &data.cases()[*at]) {
                most = most.max(self.vain(&*selector, case).unwrap_or(0.0));
            }
        }
        Ok(most * SLACK)
    }

    /// The gain that a selector expected where its choice was for the worse.
    fn vain(&self, selector: &dyn Selector, case: &Case) -> Option<f64> {
        let ran = case.trials.iter().filter_map(|trial| Some((trial.candidate.clone(), trial.cost?)));
        let (candidates, costs): (Vec<Candidate>, Vec<f64>) = ran.unzip();
        let mut order = VariantOrder::new();
        selector.rank(&case.features, &candidates, &mut order);
        let (first, at) = (*order.first()?, position(&candidates, &self.variant)?);
        let is_worse = costs[at] / costs[first] < self.floor;
        is_worse.then(|| expected_gain(selector, &case.features, &candidates, (first, at))).flatten()
    }
}

/// A fitted selector that leaves the variant only where it expects more than the margin ([`Incumbent::margin`]).
pub fn kept(inner: Box<dyn Selector>, variant: &str, margin: f64) -> Box<dyn Selector> {
    Box::new(Kept { inner, variant: variant.into(), margin })
}

struct Kept {
    inner: Box<dyn Selector>,
    variant: Box<str>,
    margin: f64,
}

impl Kept {
    /// Where the incumbent stands in an order that another leads without good reason.
    fn leads_after_all(&self, input: &[f32], candidates: &[Candidate], order: &[usize]) -> Option<usize> {
        let (first, at) = (*order.first()?, position(candidates, &self.variant)?);
        if first == at {
            return None;
        }
        let gain = expected_gain(&*self.inner, input, candidates, (first, at));
        let is_sure = gain.is_some_and(|gain| gain > self.margin);
        (!is_sure).then(|| order.iter().position(|place| *place == at)).flatten()
    }
}

impl Selector for Kept {
    fn rank(&self, input: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        self.inner.rank(input, candidates, out);
        if let Some(place) = self.leads_after_all(input, candidates, out) {
            out[..=place].rotate_right(1);
        }
    }

    fn relative_costs(&self, input: &[f32], candidates: &[Candidate], out: &mut Vec<f32>) -> bool {
        self.inner.relative_costs(input, candidates, out)
    }

    /// What the first is expected to lose, as long as it is the method's own.
    fn expected_loss(&self, input: &[f32], candidates: &[Candidate]) -> Option<f64> {
        let mut order = VariantOrder::new();
        self.inner.rank(input, candidates, &mut order);
        let kept = self.leads_after_all(input, candidates, &order);
        if kept.is_some() { None } else { self.inner.expected_loss(input, candidates) }
    }
}

fn position(candidates: &[Candidate], variant: &str) -> Option<usize> {
    candidates.iter().position(|candidate| candidate.variant == variant)
}

/// The natural log of the speed-up that the selector expects of the first over the second; none where it expects nothing of either.
fn expected_gain(
    selector: &dyn Selector,
    input: &[f32],
    candidates: &[Candidate],
    (first, second): (usize, usize),
) -> Option<f64> {
    let mut costs = Vec::new();
    let known = selector.relative_costs(input, candidates, &mut costs);
    let gain = f64::from(costs.get(second)? - costs.get(first)?);
    (known && gain.is_finite()).then_some(gain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::BestFixed;
    use crate::forest::CostForest;
    use crate::guard::Guarded;
    use crate::regression::Regression;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use tilewright_core::choice::Trial;
    use tilewright_core::feature::{Feature, FeatureSchema};

    fn trial(variant: &str, cost: Option<f64>) -> Trial {
        Trial { candidate: Candidate { variant: variant.into(), features: Vec::new() }, cost }
    }

    /// "own" takes a third of the vendor's time on thin inputs, and between .5 and 2 times as long, which no feature tells, on others.
    fn cases(n: u32, seed: u64) -> ChoiceSet {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let schema = FeatureSchema { input: vec![Feature::size("width")], config: Vec::new() };
        let mut data = ChoiceSet::new(schema);
        for group in 0..n {
            let width: f64 = rng.random_range(1.0_f64..1000.0);
            let own = if width < 200.0 { 1.0 / 3.0 } else { 2.0_f64.powf(rng.random_range(-1.2..0.8)) };
            let trials = vec![trial("own", Some(own)), trial("vendor", Some(1.0))];
            data.push(Case { features: vec![width as f32], trials, group }).unwrap();
        }
        data
    }

    fn with_incumbent<F>(method: F) -> Incumbent<F> {
        Incumbent { method, variant: "vendor".into(), floor: 0.97 }
    }

    /// Performance of the choices over that of "vendor": of each case.
    fn gains(selector: &dyn Selector, data: &ChoiceSet) -> Vec<f64> {
        let of = |case: &Case| {
            let candidates: Vec<Candidate> = case.trials.iter().map(|t| t.candidate.clone()).collect();
            let mut order = VariantOrder::new();
            selector.rank(&case.features, &candidates, &mut order);
            assert_eq!(order.len(), candidates.len());
            case.trials[1].cost.unwrap() / case.trials[order[0]].cost.unwrap()
        };
        data.cases().iter().map(of).collect()
    }

    #[test]
    fn it_is_left_where_that_is_sure_and_nowhere_else() {
        let (train, test) = (cases(200, 1), cases(400, 2));
        let worse = |gains: &[f64]| gains.iter().filter(|gain| **gain < 0.97).count();
        let alone = gains(&*CostForest::thorough().fit(&train, 0).unwrap(), &test);
        let kept = gains(&*with_incumbent(CostForest::thorough()).fit(&train, 0).unwrap(), &test);
        // Some in a row may be fast by chance, and close to the edge of the thin ones nobody can tell.
        assert!(worse(&alone) > 40 && worse(&kept) * 10 < worse(&alone), "{} alone, {}", worse(&alone), worse(&kept));
        let left = kept.iter().filter(|gain| **gain > 2.9).count();
        let thin = test.cases().iter().filter(|case| case.features[0] < 200.0).count();
        assert!(left * 10 >= thin * 9, "{left} of {thin}");
    }

    #[test]
    fn the_order_of_the_others_stays() {
        let order = |margin, name: &str| {
            let mut data = ChoiceSet::new(cases(1, 0).schema().clone());
            for group in 0..20 {
                let trials = vec![
                    trial("a", Some(1.0)),
                    trial("b", Some(1.2)),
                    trial("vendor", Some(1.4)),
                    trial("c", Some(2.0)),
                ];
                data.push(Case { features: vec![group as f32], trials, group }).unwrap();
            }
            let selector = kept(CostForest::default().fit(&data, 0).unwrap(), name, margin);
            let candidates: Vec<Candidate> = data.cases()[0].trials.iter().map(|t| t.candidate.clone()).collect();
            let mut order = VariantOrder::new();
            selector.rank(&[3.0], &candidates, &mut order);
            let mut costs = Vec::new();
            assert!(selector.relative_costs(&[3.0], &candidates, &mut costs));
            assert!(costs[0] < costs[1] && costs[1] < costs[2], "the expected costs are the method's own: {costs:?}");
            order
        };
        // By 34% it is left: the first is 40% faster.
        assert_eq!(order(0.3, "vendor"), [0, 1, 2, 3]);
        assert_eq!(order(0.4, "vendor"), [2, 0, 1, 3]);
        assert_eq!(order(f64::INFINITY, "a"), [0, 1, 2, 3]);
        assert_eq!(order(f64::INFINITY, "nobody"), [0, 1, 2, 3], "what is not there is not kept");
    }

    #[test]
    fn who_expects_nothing_never_leaves() {
        let train = cases(60, 3);
        let fixed = gains(&*with_incumbent(BestFixed).fit(&train, 0).unwrap(), &cases(20, 4));
        let ranked = gains(&*with_incumbent(Regression::default()).fit(&train, 0).unwrap(), &cases(20, 4));
        assert!(fixed.iter().chain(&ranked).all(|gain| *gain == 1.0));
    }

    #[test]
    fn what_is_not_known_is_not_left() {
        let margin = |method: Incumbent<CostForest>, data: &ChoiceSet| method.margin(data, 0).unwrap();
        let forest = || with_incumbent(CostForest::default());
        assert_eq!(margin(forest(), &cases(1, 5)), f64::INFINITY, "one group says nothing of others");
        assert_eq!(margin(forest(), &cases(5, 5)), f64::INFINITY, "nor do five inputs");
        let absent = Incumbent { variant: "nobody".into(), ..forest() };
        assert_eq!(margin(absent, &cases(60, 5)), f64::INFINITY);
        // Whether it failed, or all others did.
        for [own, vendor] in [[Some(1.0), None], [None, Some(1.0)]] {
            let mut failed = ChoiceSet::new(cases(1, 0).schema().clone());
            for case in cases(60, 5).cases() {
                let trials = vec![trial("own", own), trial("vendor", vendor)];
                failed.push(Case { trials, ..case.clone() }).unwrap();
            }
            assert_eq!(margin(forest(), &failed), f64::INFINITY);
        }
        // Nothing was expected in vain: what the floor allows is the least.
        let mut plain = ChoiceSet::new(cases(1, 0).schema().clone());
        for group in 0..40 {
            let trials = vec![trial("own", Some(0.5)), trial("vendor", Some(1.0)), trial("illegal", None)];
            plain.push(Case { features: vec![group as f32], trials, group }).unwrap();
        }
        assert!((margin(forest(), &plain) + 1.25 * 0.97_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn where_it_fails_another_leads() {
        let mut data = ChoiceSet::new(cases(1, 0).schema().clone());
        for group in 0..40 {
            let failed = group % 2 == 0;
            let trials = vec![trial("own", Some(2.0)), trial("vendor", (!failed).then_some(1.0))];
            data.push(Case { features: vec![if failed { 10.0 } else { 900.0 } + group as f32], trials, group })
                .unwrap();
        }
        let selector = Guarded(with_incumbent(CostForest::default())).fit(&data, 0).unwrap();
        let candidates: Vec<Candidate> = data.cases()[0].trials.iter().map(|t| t.candidate.clone()).collect();
        let mut order = VariantOrder::new();
        selector.rank(&[20.0], &candidates, &mut order);
        assert_eq!(order[0], 0);
        selector.rank(&[920.0], &candidates, &mut order);
        assert_eq!(order[0], 1);
    }
}
