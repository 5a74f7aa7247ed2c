//! Every method on made-up cases whose best choice is known, and on cases that cannot be learned from.

use tilewright_core::choice::{Case, ChoiceError, ChoiceSet, FitSelector, SelectError, Trial};
use tilewright_core::feature::{Feature, FeatureSchema};
use tilewright_core::metrics::ChoiceScores;
use tilewright_core::selector::{Candidate, VariantOrder};
use tilewright_core::setting::SettingError;
use tilewright_variant_select::FeatureMap;
use tilewright_variant_select::blend::Blend;
use tilewright_variant_select::evaluate::{Auto, cross_validate, folds};
use tilewright_variant_select::extra::ExtraTrees;
use tilewright_variant_select::fixed::BestFixed;
use tilewright_variant_select::forest::CostForest;
use tilewright_variant_select::guard::Guarded;
use tilewright_variant_select::process::CostProcess;
use tilewright_variant_select::regression::{Regression, Terms};
use tilewright_variant_select::softmax::Softmax;
use tilewright_variant_select::svm::Svm;
use tilewright_variant_select::trees::{BoostedTrees, Objective};

fn schema(features: &[&str]) -> FeatureSchema {
    FeatureSchema { input: features.iter().map(|n| Feature::size(n)).collect(), config: Vec::new() }
}

fn trial(variant: &str, cost: Option<f64>) -> Trial {
    Trial { candidate: Candidate { variant: variant.into(), features: Vec::new() }, cost }
}

/// Overhead against slope: "small" wins up to 100, "middle" up to 10,000, "large" beyond.
fn three(n: usize) -> ChoiceSet {
    let mut set = ChoiceSet::new(schema(&["n", "other"]));
    for i in 0..n {
        let size = 10f64.powf(6.0 * ((i * 37) % n) as f64 / n as f64);
        let trials = vec![
            trial("small", Some(1e-6 * (1.0 + size))),
            trial("middle", Some(1e-6 * (81.0 + 0.2 * size))),
            trial("large", Some(1e-6 * (1581.0 + 0.05 * size))),
            trial("broken", None),
        ];
        let features = vec![size as f32, (i % 7) as f32];
        set.push(Case { features, trials, group: i as u32 }).unwrap();
    }
    set
}

fn methods() -> Vec<(&'static str, Box<dyn FitSelector>)> {
    let listwise = BoostedTrees { trees: 60, ..BoostedTrees::default() };
    let quick = BoostedTrees { least: 3.0, objective: Objective::Relative, ..listwise.clone() };
    let process = CostProcess { learned: 60, ..CostProcess::default() };
    vec![
        ("softmax", Box::new(Softmax::default())),
        ("regression", Box::new(Regression::default())),
        ("svm", Box::new(Svm { widths: vec![1.0], penalties: vec![10.0], ..Svm::default() })),
        ("forest", Box::new(CostForest::default())),
        ("trees", Box::new(quick)),
        ("blend", Box::new(Blend { forest: CostForest::default(), trees: listwise.clone(), process: process.clone() })),
        ("process", Box::new(process)),
        ("extra", Box::new(ExtraTrees::default())),
        ("listwise", Box::new(listwise)),
        ("guarded", Box::new(Guarded(CostForest::default()))),
    ]
}

#[test]
fn every_method_finds_the_regions() {
    let data = three(240);
    let fixed = cross_validate(&BestFixed, &data, 3, 1).unwrap().fraction_of_oracle;
    for (name, method) in methods() {
        let scores = cross_validate(&*method, &data, 3, 1).unwrap();
        assert!(scores.fraction_of_oracle > 0.95 && scores.failed == 0, "{name}: {scores:?}");
        assert!(scores.fraction_of_oracle > fixed, "{name}: {scores:?}, fixed {fixed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_order() {
    let data = three(90);
    for (name, method) in methods() {
        let orders = |seed: u64| {
            let selector = method.fit(&data, seed).unwrap();
            let of = |c: &Case| {
                let candidates: Vec<Candidate> = c.trials.iter().map(|t| t.candidate.clone()).collect();
                let mut order = VariantOrder::new();
                selector.rank(&c.features, &candidates, &mut order);
                order
            };
            data.cases().iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(orders(3), orders(3), "{name}");
    }
}

#[test]
fn relative_costs_are_those_of_the_order_and_of_the_times() {
    let (train, test) = (three(240), three(77));
    let mut told = Vec::new();
    for (name, method) in methods() {
        let selector = method.fit(&train, 0).unwrap();
        let (mut order, mut costs, mut errors) = (VariantOrder::new(), Vec::new(), Vec::new());
        for case in test.cases() {
            // Without the one that always fails, of which methods say different things.
            let candidates: Vec<Candidate> = case.trials[..3].iter().map(|t| t.candidate.clone()).collect();
            if !selector.relative_costs(&case.features, &candidates, &mut costs) {
                continue;
            }
            selector.rank(&case.features, &candidates, &mut order);
            let least = costs.iter().copied().fold(f32::INFINITY, f32::min);
            assert!(costs.len() == 3 && costs[order[0]] - least < 1e-5, "{name}: {costs:?} {order:?}");
            let best = case.best().unwrap();
            let truth = case.trials[..3].iter().map(|t| (t.cost.unwrap() / best).ln().min(1.5) as f32);
            errors.extend(costs.iter().zip(truth).map(|(c, t)| f64::from((c - least - t).abs())));
        }
        if !errors.is_empty() {
            told.push(name);
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            // The listwise objective, which is a third of the blend, knows the front only.
            let limit = [("listwise", 1.0), ("blend", 0.5)].into_iter().find(|l| l.0 == name).map_or(0.25, |l| l.1);
            assert!(mean < limit, "{name}: {mean}");
        }
    }
    assert_eq!(told, ["forest", "trees", "blend", "process", "extra", "listwise", "guarded"]);
}

#[test]
fn an_order_is_a_permutation_of_whatever_is_offered() {
    let data = three(60);
    let strangers = ["large", "never seen", "small"].map(|v| Candidate { variant: v.into(), features: vec![1.0] });
    for (name, method) in methods() {
        let selector = method.fit(&data, 0).unwrap();
        for features in [&[1.0, 2.0][..], &[f32::NAN, f32::INFINITY], &[]] {
            for candidates in [&strangers[..], &strangers[..1], &[]] {
                let mut order = vec![9, 9, 9, 9, 9];
                selector.rank(features, candidates, &mut order);
                order.sort_unstable();
                assert_eq!(order, (0..candidates.len()).collect::<Vec<_>>(), "{name}");
            }
        }
    }
}

#[test]
fn a_class_with_one_example_is_no_obstacle() {
    let mut data = three(60);
    let trials = vec![trial("small", Some(2.0)), trial("rare", Some(1.0))];
    data.push(Case { features: vec![5.0, 5.0], trials, group: 1000 }).unwrap();
    for (name, method) in methods() {
        let selector = method.fit(&data, 0).unwrap();
        assert!(ChoiceScores::of(&*selector, &data).unwrap().fraction_of_oracle > 0.9, "{name}");
    }
}

#[test]
fn features_that_say_nothing_are_named_or_ignored() {
    let mut data = ChoiceSet::new(schema(&["constant", "unknown"]));
    for i in 0..20 {
        let trials = vec![trial("a", Some(1.0)), trial("b", Some(2.0))];
        data.push(Case { features: vec![3.0, f32::NAN], trials, group: i }).unwrap();
    }
    for (name, method) in methods() {
        match method.fit(&data, 0) {
            Err(error) => assert_eq!(error, SelectError::NoUsableFeature(2), "{name}"),
            // Methods that see candidates too can do without.
            Ok(selector) => {
                let chosen = ChoiceScores::of(&*selector, &data).unwrap().fraction_of_oracle;
                assert!(
                    ["forest", "trees", "listwise", "blend", "guarded", "extra"].contains(&name) && chosen > 0.4,
                    "{name}"
                );
            }
        }
    }
}

/// Every input has one of two sets of candidates, of which one is common to both: what a variant costs is learned where it was tried.
#[test]
fn variants_that_are_missing_at_times_are_told_apart() {
    let mut data = ChoiceSet::new(schema(&["n"]));
    for i in 0..200u32 {
        let n = f64::from(i * 37 % 200) + 1.0;
        let mut trials = vec![trial("flat", Some(100.0))];
        trials.push(if i % 2 == 0 { trial("steep", Some(n)) } else { trial("falling", Some(10_000.0 / n)) });
        data.push(Case { features: vec![n as f32], trials, group: i }).unwrap();
    }
    let scores = cross_validate(&ExtraTrees::default(), &data, 4, 1).unwrap();
    assert!(scores.fraction_of_oracle > 0.98, "{scores:?}");
}

/// One feature is constant, one missing everywhere, one only here and there, one infinite at times; the last decides.
#[test]
fn what_is_missing_does_not_hide_what_is_there() {
    let mut data = ChoiceSet::new(schema(&["constant", "unknown", "sometimes", "infinite", "n"]));
    for i in 0..120u16 {
        let n = f32::from(i * 37 % 120);
        let trials = vec![trial("flat", Some(60.0)), trial("steep", Some(f64::from(n) + 1.0))];
        let sometimes = if i % 3 == 0 { f32::NAN } else { 1.0 + f32::from(i % 5) };
        let infinite = if i % 7 == 0 { f32::INFINITY } else { 2.0 + f32::from(i % 4) };
        data.push(Case { features: vec![3.0, f32::NAN, sometimes, infinite, n], trials, group: u32::from(i) }).unwrap();
    }
    for (name, method) in methods() {
        let scores = cross_validate(&*method, &data, 3, 1).unwrap();
        assert!(scores.fraction_of_oracle > 0.93, "{name}: {scores:?}");
    }
}

#[test]
fn nothing_that_ran_is_an_error() {
    let mut data = ChoiceSet::new(schema(&["n"]));
    for i in 0..20 {
        data.push(Case { features: vec![i as f32], trials: vec![trial("a", None)], group: i }).unwrap();
    }
    for (name, method) in methods() {
        assert_eq!(method.fit(&data, 0).err(), Some(SelectError::NothingLegal), "{name}");
        assert_eq!(method.fit(&ChoiceSet::new(schema(&["n"])), 0).err(), Some(SelectError::NothingLegal), "{name}");
    }
    assert_eq!(ChoiceScores::of(&*BestFixed.fit(&three(9), 0).unwrap(), &data), None);
}

#[test]
fn poisoned_cases_are_refused() {
    let mut data = ChoiceSet::new(schema(&["n"]));
    let case = |features: &[f32], trials: Vec<Trial>| Case { features: features.to_vec(), trials, group: 0 };
    for cost in [-1.0, 0.0, f64::NAN, f64::INFINITY] {
        let refused = data.push(case(&[1.0], vec![trial("a", Some(cost))]));
        let message = format!("variant \"a\": cost {cost}; costs are positive and finite");
        assert_eq!(refused, Err(ChoiceError { case: 0, message }));
    }
    let twice = data.push(case(&[1.0], vec![trial("a", None), trial("a", Some(1.0))]));
    assert_eq!(twice.unwrap_err().to_string(), "case 0: variant \"a\" stands twice");
    assert_eq!(data.push(case(&[1.0], Vec::new())).unwrap_err().message, "it has no variants");
    let width = data.push(case(&[1.0, 2.0], vec![trial("a", None)])).unwrap_err();
    assert_eq!(width.message, "the input has 2 features, the schema has 1");
    assert!(data.is_empty());
}

#[test]
fn settings_out_of_range_are_named() {
    let data = three(30);
    let field = |method: &dyn FitSelector| match method.fit(&data, 0) {
        Err(SelectError::Setting(SettingError { field, .. }) | SelectError::UnknownFeature { field, .. }) => field,
        other => panic!("{:?}", other.err()),
    };
    assert_eq!(field(&BoostedTrees { trees: 0, ..BoostedTrees::default() }), "trees");
    assert_eq!(field(&BoostedTrees { rate: f32::NAN, ..BoostedTrees::default() }), "rate");
    assert_eq!(field(&BoostedTrees { bins: 300, ..BoostedTrees::default() }), "bins");
    assert_eq!(field(&Softmax { ridge: -1.0, ..Softmax::default() }), "ridge");
    assert_eq!(field(&Regression { ridge: 0.0, ..Regression::default() }), "ridge");
    assert_eq!(field(&Svm { penalties: vec![f64::NAN], ..Svm::default() }), "penalties");
    assert_eq!(field(&Svm { widths: vec![], ..Svm::default() }), "widths");
    assert_eq!(field(&CostForest { trees: 0, ..CostForest::default() }), "trees");
    assert_eq!(field(&ExtraTrees { least: 0, ..ExtraTrees::default() }), "least");
    assert_eq!(field(&ExtraTrees { columns: 0.0, ..ExtraTrees::default() }), "columns");
    assert_eq!(field(&CostProcess { cases: 0, ..CostProcess::default() }), "cases");
    assert_eq!(field(&CostProcess { learned: 0, ..CostProcess::default() }), "learned");
    let terms = |text: &str| Regression { terms: Terms::Expressions(vec![text.into()]), ..Regression::default() };
    assert_eq!(field(&terms("n * * 2")), "terms");
    assert_eq!(field(&terms("m * 2")), "terms");
}

/// Equation 6 with the very terms that the times have is exact.
#[test]
fn the_right_terms_make_no_mistakes() {
    let data = three(60);
    let terms = Terms::Expressions(vec!["1".into(), "n".into()]);
    let method = Regression { terms, ridge: 1e-9, ..Regression::default() };
    let scores = cross_validate(&method, &data, 3, 0).unwrap();
    assert!(scores.fraction_of_oracle > 0.9999, "{scores:?}");
}

#[test]
fn metrics_are_those_of_the_table() {
    let mut data = ChoiceSet::new(schema(&["n"]));
    for (chosen, best) in [(Some(1.0), 1.0), (Some(1.04), 1.0), (Some(3.0), 1.0), (None, 1.0)] {
        let trials = vec![trial("chosen", chosen), trial("best", Some(best)), trial("bad", Some(9.0))];
        data.push(Case { features: vec![1.0], trials, group: 0 }).unwrap();
    }
    let scores = ChoiceScores::of_orders(&data, &[vec![0, 2, 1], vec![0, 2, 1], vec![0, 1, 2], vec![0, 1, 2]]).unwrap();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
    close(scores.delta_miss, 0.75);
    close(scores.best5, 0.5);
    close(scores.worst20, 0.5);
    close(scores.worst50, 0.5);
    close(scores.delta_err, (0.04 + 2.0) / 3.0);
    close(scores.fraction_of_oracle, (1.0 + 1.0 / 1.04 + 1.0 / 3.0) / 4.0);
    close(scores.fraction_of_oracle_top3, 1.0);
    assert_eq!((scores.cases, scores.failed), (4, 1));
}

#[test]
fn folds_keep_groups_whole() {
    let mut data = three(40);
    data = {
        let mut grouped = ChoiceSet::new(data.schema().clone());
        for (i, case) in data.cases().iter().enumerate() {
            grouped.push(Case { group: (i / 4) as u32, ..case.clone() }).unwrap();
        }
        grouped
    };
    let dealt = folds(&data, 3, 5).unwrap();
    let group = |&i: &usize| data.cases()[i].group;
    for (a, fold) in dealt.iter().enumerate() {
        for other in &dealt[a + 1..] {
            assert!(fold.iter().all(|i| !other.iter().any(|j| group(i) == group(j))));
        }
    }
    assert_eq!(dealt.concat().len(), 40);
    assert!(matches!(folds(&data.subset(&[0, 1]), 3, 0), Err(SelectError::TooFew { found: 1, needed: 2, .. })));
}

#[test]
fn auto_takes_the_better_method() {
    let methods: Vec<(String, Box<dyn FitSelector>)> = vec![
        ("fixed".into(), Box::new(BestFixed)),
        ("regression".into(), Box::new(Regression { terms: Terms::Map(FeatureMap::Linear), ..Regression::default() })),
    ];
    let auto = Auto { methods, folds: 3 };
    assert_eq!(auto.choose(&three(90), 0).unwrap().0, "regression");
    assert_eq!(auto.choose(&three(1), 0).unwrap().0, "fixed");
}
