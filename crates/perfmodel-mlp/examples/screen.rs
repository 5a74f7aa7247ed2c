//! Screening against dense search: how often both find the same best point, what the screen keeps, and how long both
//! take with the distilling, on random inputs of a made-up matrix multiplication.
//!
//! `cargo run --release -p tilewright-perfmodel-mlp --example screen [INPUTS [POINTS [FIRST [LAYOUT [EPOCHS]]]]]`

#[path = "../benches/synthetic/mod.rs"]
mod synthetic;

use std::error::Error;
use std::time::Instant;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use tilewright_core::predictor::Fit;
use tilewright_perfmodel_mlp::{Layout, MlpFit, MlpRows, ScreenSettings, Settings};

/// What became of one input.
struct Trial {
    same: bool,
    kept: usize,
    dense_s: f64,
    screened_s: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize, default: &str| arguments.get(at).cloned().unwrap_or_else(|| default.to_owned());
    let (inputs, points): (u64, usize) = (argument(0, "10").parse()?, argument(1, "1000000").parse()?);
    let first: u64 = argument(2, "0").parse()?;
    let layout: Layout = argument(3, "64-128-192-256-192-128-64").parse()?;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let data = synthetic::training_set(1000, 10, &mut rng);
    let settings = Settings { layout, epochs: argument(4, "15").parse()?, ..Settings::default() };
    let model = MlpFit { settings, screen: Some(ScreenSettings::default()) }.fit(&data, 1)?;
    println!("error {:.4} of variance {:.2}", model.report().best_mse(), model.report().variance);
    let trials: Vec<Trial> = (first..first + inputs)
        .map(|seed| {
            let (input, rows) = draw(seed, points);
            let mut scorer = model.bind_features(&input.features())?;
            Ok(trial(&mut scorer, &rows, points))
        })
        .collect::<Result<_, Box<dyn Error>>>()?;
    let count = trials.len() as f64;
    let mean = |of: fn(&Trial) -> f64| trials.iter().map(of).sum::<f64>() / count;
    println!(
        "{points} points: same best in {} of {inputs}; kept {:.2} %; dense {:.3} s, screened {:.3} s",
        trials.iter().filter(|trial| trial.same).count(),
        100.0 * mean(|trial| trial.kept as f64) / points as f64,
        mean(|trial| trial.dense_s),
        mean(|trial| trial.screened_s),
    );
    Ok(())
}

fn draw(seed: u64, points: usize) -> (synthetic::Input, Vec<f32>) {
    const CHUNK: usize = 1000;
    let input = synthetic::Input::draw(&mut ChaCha8Rng::seed_from_u64(1_000_000 + seed));
    let rows = (0..points.div_ceil(CHUNK)).into_par_iter().flat_map_iter(|chunk| {
        let mut rng = ChaCha8Rng::seed_from_u64((seed << 32) + chunk as u64);
        synthetic::config_rows(&input, CHUNK.min(points - chunk * CHUNK), &mut rng)
    });
    (input, rows.collect())
}

fn trial(scorer: &mut MlpRows<'_>, rows: &[f32], points: usize) -> Trial {
    let width = rows.len() / points;
    let least = |scores: &[f32]| {
        let order = |&a: &usize, &b: &usize| scores[a].total_cmp(&scores[b]);
        (0..scores.len()).min_by(order).expect("there are points")
    };
    let start = Instant::now();
    let mut dense = vec![0.0; points];
    scorer.score(rows, &mut dense);
    let best = least(&dense);
    let dense_s = start.elapsed().as_secs_f64();

    let start = Instant::now();
    // The rows are in random order: the first ones are a sample of them.
    let sample = points.min(ScreenSettings::default().points) * width;
    scorer.set_sample(rows[..sample].to_vec());
    let mut cheap = vec![0.0; points];
    assert!(scorer.score_screen(rows, &mut cheap), "the model was distilled");
    let limit = cheap[least(&cheap)] + scorer.screen_report().expect("it was distilled").margin;
    let kept: Vec<usize> = (0..points).filter(|&at| cheap[at] <= limit).collect();
    let kept_rows: Vec<f32> = kept.iter().flat_map(|&at| &rows[at * width..(at + 1) * width]).copied().collect();
    let mut scores = vec![0.0; kept.len()];
    scorer.score(&kept_rows, &mut scores);
    let found = kept[least(&scores)];
    let screened_s = start.elapsed().as_secs_f64();
    Trial { same: dense[found] == dense[best], kept: kept.len(), dense_s, screened_s }
}
