//! The paper's ablation: log features against raw ones, Table 2's architectures, Figure 5's learning curve; on a recorded
//! data set, or on a made-up matrix multiplication.
//!
//! `cargo run --release -p tilewright-perfmodel-mlp --example ablation [DATASET.csv [EPOCHS]]`

#[path = "../benches/synthetic/mod.rs"]
mod synthetic;

use std::error::Error;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tilewright_datasets::Dataset;
use tilewright_perfmodel_mlp::{Ablation, Settings};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let data = match arguments.next() {
        Some(path) => Dataset::open(path)?.training_set()?,
        None => synthetic::training_set(500, 10, &mut ChaCha8Rng::seed_from_u64(1)),
    };
    let epochs = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let ablation = Ablation { settings: Settings { epochs, ..Settings::default() }, ..Ablation::default() };
    let report = ablation.run(&data, 1, &mut |fit| eprintln!("{} {:?}: {:?}", fit.layout, fit.features, fit.mse))?;
    println!("{}", serde_json::to_string_pretty(&report)?);
    Ok(())
}
