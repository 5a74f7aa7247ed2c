//! The model on measurements of a real machine.

use tilewright_core::metrics::Scores;
use tilewright_core::predictor::{Fit, RowPredictor};
use tilewright_core::training::TrainingSet;
use tilewright_datasets::{Dataset, SplitSpec};
use tilewright_perfmodel_mlp::{Layout, MlpFit, Settings};
use tilewright_testkit::recorded;

/// Scores on a third of the inputs, which were held out of a fit that is quick enough for a test.
fn scores(name: &str) -> Scores {
    let data = Dataset::open(recorded(name)).expect("the recorded data are sound");
    let split = data.split(&SplitSpec::Column("group".into(), 0.33), 1).expect("there are groups");
    let of = |rows: &[usize]| data.training_set_of(rows).expect("the features are sound");
    let (train, held_out): (TrainingSet, TrainingSet) = (of(&split.train), of(&split.held_out));
    let layout = Layout::new(vec![64, 32]).expect("a layout");
    let settings = Settings { layout, epochs: 40, ..Settings::default() };
    let model = MlpFit { settings, screen: None }.fit(&train, 1).expect("the rows are sound");
    let mut predicted = Vec::new();
    model.predict(&held_out.rows, &mut predicted);
    Scores::new(&held_out, &predicted).expect("one prediction a row")
}

#[test]
fn times_of_products_of_unseen_sizes_are_foreseen() {
    let found = scores("multiply.csv");
    assert!(found.r2 > 0.97 && found.top1_regret < 0.3, "{found:?}");
}

#[test]
fn times_of_formats_of_unseen_matrices_are_foreseen() {
    let found = scores("spmv.csv");
    // Six devices in one model that sees nothing of them but their times: ranks are what is left to learn.
    assert!(found.r2 > 0.7 && found.rank_correlation > 0.75, "{found:?}");
}
