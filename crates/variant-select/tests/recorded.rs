//! Selectors on measurements of real GPUs, where they are at hand (`../shared/data` beside the workspace).

use std::path::PathBuf;
use tilewright_core::choice::{ChoiceSet, FitSelector};
use tilewright_core::metrics::ChoiceScores;
use tilewright_datasets::{Dataset, SplitSpec};
use tilewright_variant_select::fixed::BestFixed;
use tilewright_variant_select::forest::CostForest;
use tilewright_variant_select::process::CostProcess;
use tilewright_variant_select::regression::Regression;

/// Formats of sparse matrices on one device: two thirds of the collections, and the rest.
fn formats(device: &str) -> Option<(ChoiceSet, ChoiceSet)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/spmv-formats.csv");
    if !path.exists() {
        eprintln!("skipped: {} is not at hand", path.display());
        return None;
    }
    let data = Dataset::read(&path).expect("the recorded data are sound");
    let split = data.split(&SplitSpec::Column("collection".into(), 0.33), 1).expect("there are collections");
    let own = |rows: &[usize]| {
        let rows: Vec<usize> = rows.iter().copied().filter(|&r| data.device(r) == device).collect();
        data.choices_of(&rows).expect("the features are sound")
    };
    Some((own(&split.train), own(&split.held_out)))
}

#[test]
fn formats_are_chosen_better_than_the_best_fixed_one() {
    let Some((train, held_out)) = formats("V100") else { return };
    let score = |method: &dyn FitSelector| {
        let selector = method.fit(&train, 1).expect("the cases are sound");
        ChoiceScores::of(&*selector, &held_out).expect("something ran").fraction_of_oracle
    };
    let fixed = score(&BestFixed);
    let (forest, regression) = (score(&CostForest::default()), score(&Regression::default()));
    assert!(forest > 0.95 && forest > fixed, "forest {forest}, fixed {fixed}");
    assert!(regression > 0.9 && regression > fixed, "regression {regression}, fixed {fixed}");
    // Few cases and steps, so that the test is short.
    let process = score(&CostProcess { cases: 500, learned: 120, steps: 10, ..CostProcess::default() });
    assert!(process > 0.96 && process > fixed, "process {process}, fixed {fixed}");
}
