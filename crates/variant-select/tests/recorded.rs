//! Selectors on measurements of a real machine: formats of sparse matrices, two threads with AVX2.

use tilewright_core::choice::{ChoiceSet, FitSelector};
use tilewright_core::metrics::ChoiceScores;
use tilewright_datasets::{Dataset, SplitSpec};
use tilewright_testkit::recorded;
use tilewright_variant_select::fixed::BestFixed;
use tilewright_variant_select::forest::CostForest;
use tilewright_variant_select::process::CostProcess;
use tilewright_variant_select::regression::Regression;

/// Two thirds of the matrices on one device, and the rest.
fn formats(device: &str) -> (ChoiceSet, ChoiceSet) {
    let data = Dataset::read(recorded("spmv.csv")).expect("the recorded data are sound");
    let split = data.split(&SplitSpec::Column("group".into(), 0.33), 1).expect("there are groups");
    let own = |rows: &[usize]| data.choices_of(&data.rows_of(device, rows)).expect("the features are sound");
    (own(&split.train), own(&split.held_out))
}

#[test]
fn formats_are_chosen_better_than_the_best_fixed_one() {
    let (train, held_out) = formats("avx2-t2");
    let score = |method: &dyn FitSelector| {
        let selector = method.fit(&train, 1).expect("the cases are sound");
        ChoiceScores::of(&*selector, &held_out).expect("something ran").fraction_of_oracle
    };
    let fixed = score(&BestFixed);
    let (forest, regression) = (score(&CostForest::default()), score(&Regression::default()));
    // Few cases and steps, so that the test is short.
    let process = score(&CostProcess { cases: 500, learned: 120, steps: 10, ..CostProcess::default() });
    println!("fixed {fixed}, forest {forest}, regression {regression}, process {process}");
    assert!(forest > 0.9 && forest > fixed + 0.05, "forest {forest}, fixed {fixed}");
    assert!(regression > 0.85 && regression > fixed + 0.05, "regression {regression}, fixed {fixed}");
    assert!(process > 0.9 && process > fixed + 0.05, "process {process}, fixed {fixed}");
}
