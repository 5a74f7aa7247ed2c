//! The model on measurements of real GPUs, where they are at hand (`../shared/data` beside the workspace).

use std::path::PathBuf;

use tilewright_core::predictor::{Fit, RowPredictor};
use tilewright_core::training::TrainingSet;
use tilewright_datasets::Dataset;
use tilewright_perfmodel_mlp::{Layout, MlpFit, Settings};

fn recorded(name: &str) -> Option<TrainingSet> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if !path.exists() {
        eprintln!("skipped: {name} is not at hand");
        return None;
    }
    let dataset = Dataset::read(&path).expect("the recorded data are sound");
    Some(dataset.training_set().expect("the features are sound"))
}

/// Every fifth row to learn from, and a fit that is quick enough for a test.
fn fit_on_a_fifth(data: &TrainingSet) -> impl RowPredictor + use<> {
    let rows: Vec<usize> = (0..data.len()).filter(|row| row * 7919 % 5 == 0).collect();
    let layout = Layout::new(vec![64, 32]).expect("a layout");
    let settings = Settings { layout, epochs: 40, ..Settings::default() };
    MlpFit { settings, screen: None }.fit(&data.subset(&rows), 1).expect("the rows are sound")
}

/// Best cost of all over the best of the `k` points that the model likes most.
fn top(k: usize, model: &impl RowPredictor, data: &TrainingSet) -> f64 {
    let mut predicted = Vec::new();
    model.predict(&data.rows, &mut predicted);
    let mut order: Vec<usize> = (0..data.len()).collect();
    order.sort_by(|&a, &b| predicted[a].total_cmp(&predicted[b]));
    let best = |rows: &[usize]| rows.iter().map(|&row| data.costs[row]).fold(f64::INFINITY, f64::min);
    best(&order) / best(&order[..k])
}

#[test]
fn a_fifth_of_a_gemm_space_finds_its_optimum() {
    let Some(data) = recorded("space-gemm-p100.csv") else { return };
    let model = fit_on_a_fifth(&data);
    let fraction = top(10, &model, &data);
    assert!(fraction > 0.93, "{fraction} of the optimum");
}

#[test]
fn a_fifth_of_a_convolution_space_finds_its_optimum() {
    let Some(data) = recorded("space-convolution-titan-rtx.csv") else { return };
    let model = fit_on_a_fifth(&data);
    let fraction = top(10, &model, &data);
    assert!(fraction > 0.85, "{fraction} of the optimum");
}
