//! The linear model as one more feature of the perceptron: errors on inputs that were left out, with it and without.
//!
//! `cargo run --release -p tilewright-bench-suite --example hinted_mlp -- MODEL LOG [THREADS] [SEEDS]`, after
//! `tilewright model fit --model linear --threads THREADS --out MODEL` and `tilewright tune gemm --threads THREADS --out X.profile`, whose
//! campaign wrote LOG.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tilewright_bench_suite::linear::host_hint;
use tilewright_core::hint::{HintAlone, Hinted};
use tilewright_core::objective::Objective;
use tilewright_core::predictor::RowPredictor;
use tilewright_core::problem::{AnyKernel, Erased};
use tilewright_core::training::TrainingSet;
use tilewright_cpu::{CountedHint, CpuDevice, CpuGemm};
use tilewright_perfmodel_linear::LinearModel;
use tilewright_perfmodel_mlp::MlpFit;
use tilewright_runtime::log::CampaignLog;
use tilewright_runtime::tune::rows;

/// Rows that models are fitted on, beside all that there are.
const ROWS: [usize; 4] = [250, 1000, 4000, usize::MAX];
const FOLDS: usize = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [model, log, ..] = &words[..] else { return Err("name the weights and the log of a campaign".into()) };
    let number = |i: usize, default: u64| words.get(i).map_or(Ok(default), |w| w.parse());
    let (threads, seeds) = (number(2, 1)?, number(3, 3)?);
    let model = LinearModel::from_value(serde_json::from_slice(&std::fs::read(model)?)?)?;
    let spec = Arc::clone(CpuDevice::new(usize::try_from(threads)?)?.spec());
    let (caches, seconds) = host_hint(&model, &spec).ok_or("not a host")?;
    let hinted = Erased::new(Hinted::new(CpuGemm::new(), CountedHint { caches, seconds }));
    let (_, samples) = CampaignLog::read(Path::new(log))?;
    let of = |kernel: &dyn AnyKernel| rows(kernel, &spec, &samples, &Objective::default());
    let (without, with) = (of(&Erased::new(CpuGemm::new()))?.set, of(&hinted)?.set);
    println!("{} rows; the linear model alone: squared error {:.3}", with.len(), alone(&with)?);
    for count in ROWS {
        let part: Vec<usize> = (0..with.len().min(count)).collect();
        let error = |set: &TrainingSet, seed| MlpFit::default().cross_validate(&set.subset(&part), FOLDS, seed);
        let (mut plain, mut more) = (0.0, 0.0);
        for seed in 0..seeds {
            plain += error(&without, seed)?.mse / seeds as f64;
            more += error(&with, seed)?.mse / seeds as f64;
        }
        println!("{:>6} rows: squared error {plain:.4}, with the linear model as a feature {more:.4}", part.len());
    }
    Ok(())
}

/// Mean squared error of the hint, up to one factor for all rows.
fn alone(set: &TrainingSet) -> Result<f64, Box<dyn Error>> {
    let model = HintAlone::new(set.schema.clone()).ok_or("no features")?;
    let mut errors = Vec::new();
    for i in 0..set.len() {
        let mut out = Vec::new();
        model.predict(set.row(i), &mut out);
        errors.extend(out.iter().map(|log| f64::from(*log) - set.costs[i].ln()));
    }
    let n = errors.len().max(1) as f64;
    let mean = errors.iter().sum::<f64>() / n;
    Ok(errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / n)
}
