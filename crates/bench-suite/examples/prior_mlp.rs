//! The linear model as the prior of the perceptron: errors on inputs that were left out, with it and without.
//!
//! `cargo run --release -p tilewright-bench-suite --example prior_mlp -- MODEL LOG [THREADS] [SEEDS]`, after
//! `tilewright model fit --model linear --threads THREADS --out MODEL` and `tilewright tune gemm --threads THREADS --out X.profile`, whose
//! campaign wrote LOG.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tilewright_core::objective::Objective;
use tilewright_core::problem::Erased;
use tilewright_core::training::TrainingSet;
use tilewright_cpu::{CpuDevice, CpuGemm};
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
    let prior = LinearModel::from_value(serde_json::from_slice(&std::fs::read(model)?)?)?;
    let spec = Arc::clone(CpuDevice::new(usize::try_from(threads)?)?.spec());
    let kernel = Erased::new(CpuGemm::new());
    let (_, samples) = CampaignLog::read(Path::new(log))?;
    let without = rows(&kernel, &spec, &samples, &Objective::default(), None)?.set;
    let over = rows(&kernel, &spec, &samples, &Objective::default(), Some(&prior))?.set;
    println!("{} rows; the linear model alone: squared error {:.3}", over.len(), alone(&over));
    for count in ROWS {
        let part: Vec<usize> = (0..over.len().min(count)).collect();
        let error = |set: &TrainingSet, seed| MlpFit::default().cross_validate(&set.subset(&part), FOLDS, seed);
        let (mut plain, mut more) = (0.0, 0.0);
        for seed in 0..seeds {
            plain += error(&without, seed)?.mse / seeds as f64;
            more += error(&over, seed)?.mse / seeds as f64;
        }
        println!("{:>6} rows: squared error {plain:.4}, with the linear model as the prior {more:.4}", part.len());
    }
    Ok(())
}

/// Mean squared error of the prior, up to one factor for all rows: the variance of what it leaves to the model.
fn alone(set: &TrainingSet) -> f64 {
    let n = set.len().max(1) as f64;
    let mean = set.costs.iter().map(|c| c.ln()).sum::<f64>() / n;
    set.costs.iter().map(|c| (c.ln() - mean).powi(2)).sum::<f64>() / n
}
