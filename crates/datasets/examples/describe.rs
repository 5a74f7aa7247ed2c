//! Prints what a dataset holds, its features, and the best recorded configuration of its first problems.
//!
//! ```text
//! cargo run -p tilewright-datasets --example describe -- FILE.csv
//! ```
//! Without a file, the made-up dataset of the tests is described.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tilewright_core::problem::Problem;
use tilewright_datasets::{Dataset, RecordedKernel};

fn main() -> Result<(), Box<dyn Error>> {
    let made_up = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/blur.csv");
    let path = std::env::args_os().nth(1).map_or_else(made_up, PathBuf::from);
    let dataset = Arc::new(Dataset::open(&path)?);
    println!("{}: {:?}", path.display(), dataset.describe());
    let features = dataset.features()?;
    let names =
        |f: &[tilewright_core::feature::Feature]| f.iter().map(|f| f.name.clone()).collect::<Vec<_>>().join(" ");
    println!("input features: {}", names(&features.schema().input));
    println!("config features: {}", names(&features.schema().config));
    for problem in RecordedKernel::new(dataset)?.problems()?.iter().take(10) {
        let Some((best, seconds)) = problem.optimum() else { continue };
        println!("{} {}: {seconds:e} s with {}", problem.device().name, problem.input(), problem.space().config(&best));
    }
    Ok(())
}
