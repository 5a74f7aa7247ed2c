//! The paper's ablation on a made-up matrix multiplication: log features against raw ones, Table 2's architectures,
//! Figure 5's learning curve. `tilewright model` runs the same on recorded data.
//!
//! `cargo run --release -p tilewright-perfmodel-mlp --example ablation [INPUTS [EPOCHS]]`

#[path = "../benches/synthetic/mod.rs"]
mod synthetic;

use std::error::Error;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tilewright_perfmodel_mlp::{Ablation, Settings};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(Ok(default), |text| text.parse::<usize>());
    let (inputs, epochs) = (number(500)?, number(20)?);
    let data = synthetic::training_set(inputs, 10, &mut ChaCha8Rng::seed_from_u64(1));
    let ablation = Ablation { settings: Settings { epochs, ..Settings::default() }, ..Ablation::default() };
    let report = ablation.run(&data, 1, &mut |fit| eprintln!("{} {:?}: {:?}", fit.layout, fit.features, fit.mse))?;
    println!("{report}");
    Ok(())
}
