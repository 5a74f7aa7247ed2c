//! Selectors on measurements of a real machine: formats of sparse matrices and kinds of histograms, two threads with AVX2.

use tilewright_core::choice::{ChoiceSet, FitSelector};
use tilewright_core::metrics::ChoiceScores;
use tilewright_datasets::{Dataset, SplitSpec};
use tilewright_testkit::recorded;
use tilewright_variant_select::fixed::BestFixed;
use tilewright_variant_select::forest::CostForest;
use tilewright_variant_select::process::CostProcess;
use tilewright_variant_select::regression::Regression;

/// Two thirds of the inputs on one device, and the rest.
fn split(name: &str) -> (ChoiceSet, ChoiceSet) {
    let data = Dataset::open(recorded(name)).expect("the recorded data are sound");
    let split = data.split(&SplitSpec::Column("group".into(), 0.33), 1).expect("there are groups");
    let own = |rows: &[usize]| data.choices_of(&data.rows_of("avx2-t2", rows)).expect("the features are sound");
    (own(&split.train), own(&split.held_out))
}

/// The fraction of the oracle's performance on the inputs that were held out.
fn score((train, held_out): &(ChoiceSet, ChoiceSet), method: &dyn FitSelector) -> f64 {
    let selector = method.fit(train, 1).expect("the cases are sound");
    ChoiceScores::of(&*selector, held_out).expect("something ran").fraction_of_oracle
}

#[test]
fn formats_are_chosen_better_than_the_best_fixed_one() {
    let data = split("spmv.csv");
    let (fixed, forest) = (score(&data, &BestFixed), score(&data, &CostForest::default()));
    // Few cases and steps, so that the test is short.
    let process = score(&data, &CostProcess { cases: 500, learned: 120, steps: 10, ..CostProcess::default() });
    assert!(forest > 0.9 && forest > fixed + 0.05, "forest {forest}, fixed {fixed}");
    assert!(process > 0.9 && process > fixed + 0.05, "process {process}, fixed {fixed}");
}

#[test]
fn histograms_are_chosen_better_than_the_best_fixed_one() {
    let data = split("histogram.csv");
    let (fixed, forest) = (score(&data, &BestFixed), score(&data, &CostForest::default()));
    let regression = score(&data, &Regression::default());
    assert!(forest > 0.95 && forest > fixed, "forest {forest}, fixed {fixed}");
    assert!(regression > 0.8 && regression > fixed, "regression {regression}, fixed {fixed}");
}
