//! Fits a model on a made-up matrix multiplication, saves and loads it, and ranks a hundred thousand configurations of
//! an input it never saw.
//!
//! `cargo run --release -p tilewright-perfmodel-mlp --example fit`

#[path = "../benches/synthetic/mod.rs"]
mod synthetic;

use std::error::Error;
use std::time::Instant;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tilewright_core::predictor::Fit;
use tilewright_perfmodel_mlp::{Mlp, MlpFit, ScreenSettings, mse};

fn main() -> Result<(), Box<dyn Error>> {
    let mut rng = ChaCha8Rng::seed_from_u64(42);
    let data = synthetic::training_set(1000, 10, &mut rng);
    let test = synthetic::training_set(100, 10, &mut rng);
    let start = Instant::now();
    let fit = MlpFit { screen: Some(ScreenSettings::default()), ..MlpFit::default() };
    let model = fit.fit(&data, 1)?;
    println!(
        "{} on {} rows in {:.1} s: error {:.4} on rows set aside, {:.4} on unseen inputs, {:.2} for a constant",
        model.layout(),
        data.len(),
        start.elapsed().as_secs_f64(),
        model.report().best_mse(),
        mse(&model, &test),
        model.report().variance,
    );
    let model = Mlp::from_json(&model.to_json())?;
    let input = synthetic::Input::draw(&mut rng);
    let rows = synthetic::config_rows(&input, 100_000, &mut rng);
    let mut scorer = model.bind_features(&input.features())?;
    let mut scores = vec![0.0; 100_000];
    let start = Instant::now();
    scorer.score(&rows, &mut scores);
    let seconds = start.elapsed().as_secs_f64();
    let best = scores.iter().copied().fold(f32::INFINITY, f32::min);
    println!("best of 100,000 configurations: predicted {:.3e} s, found in {seconds:.3} s", best.exp());

    // A bound problem samples its own space; here the first rows are as random as any.
    scorer.set_sample(rows[..rows.len() / 10].to_vec());
    if let Some(report) = scorer.screen_report() {
        println!("screen: margin {:.3}, keeps {:.1} % of the configurations", report.margin, 100.0 * report.kept);
    }
    Ok(())
}
