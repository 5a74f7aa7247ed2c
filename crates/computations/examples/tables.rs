//! The tables of Nitro's second paper (Muralidharan and others, 2016) for the devices that `measure` measured.
//!
//! `cargo run --release -p tilewright-computations --example tables -- FOLDER`: how often each variant is best (Table 4),
//! what choosing among them comes to on a device that was left out (Figure 6), features of devices (Table 5), similarity of devices
//! (Table 2), what choosing features and variants costs (Table 6), and a device less to learn from (Figure 7).

#[path = "tables/study.rs"]
mod study;

use clap::{Parser, ValueEnum};
use std::error::Error;
use std::path::PathBuf;
use study::{Scores, Study};
use tilewright_core::choice::FitSelector;
use tilewright_variant_select::forest::CostForest;
use tilewright_variant_select::svm::Svm;
use tilewright_variant_select::trees::BoostedTrees;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Learner {
    Svm,
    Forest,
    Trees,
}

#[derive(Parser)]
struct Arguments {
    /// Where the datasets stand.
    folder: PathBuf,
    /// What learns.
    #[arg(long, default_value = "svm")]
    learner: Learner,
    /// Splits into training and test inputs.
    #[arg(long, default_value_t = 5)]
    repeats: u64,
    /// Share of the inputs that are held out.
    #[arg(long, default_value_t = 0.4)]
    holdout: f64,
    /// Computations, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "histogram,spmv,sort,bfs,solver,transpose")]
    only: Vec<String>,
    /// The computation of Figure 7.
    #[arg(long, default_value = "histogram")]
    restricted: String,
}

fn learner(which: Learner) -> Box<dyn FitSelector> {
    match which {
        // One width and penalty: thousands of models are fitted.
        Learner::Svm => Box::new(Svm { widths: vec![2.0], penalties: vec![10.0], ..Svm::default() }),
        Learner::Forest => Box::new(CostForest::default()),
        Learner::Trees => Box::new(BoostedTrees::default()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let learner = learner(arguments.learner);
    println!(
        "learner {:?}, {} splits, {} of the inputs held out",
        arguments.learner, arguments.repeats, arguments.holdout
    );
    let mut studies = Vec::new();
    for name in &arguments.only {
        studies.push(Study::read(&arguments.folder, name)?);
    }
    for study in &studies {
        study.print_winners();
    }
    println!("\nFigure 6: percent of exhaustive search, by target device");
    println!("computation device native full p-dfs cv-dfs rehearsed majority fixed random");
    let mut all = Vec::new();
    for study in &studies {
        let scores = study.figure6(&*learner, arguments.repeats, arguments.holdout)?;
        all.push(scores);
    }
    let mean = Scores::mean(&all.iter().flatten().map(|s| s.1.clone()).collect::<Vec<_>>());
    println!("all mean {mean}");
    println!(
        "\nTable 5: best device features (exhaustive), proxies by P-DFS, best feature by CV-DFS; Table 6: seconds of each"
    );
    let mut chosen = Vec::new();
    for study in &studies {
        chosen.push(study.table5(&*learner, arguments.holdout)?);
    }
    println!("\nTable 2: cosine similarity of devices by the best features");
    for (study, features) in studies.iter().zip(&chosen) {
        study.print_similarity(features)?;
    }
    println!("\nCost of a choice: features of the input and prediction, over the time of the chosen variant");
    for study in &studies {
        study.print_overhead(&*learner)?;
    }
    if let Some(study) = studies.iter().find(|s| s.name == arguments.restricted) {
        println!("\nFigure 7: {}, one device less to learn from", study.name);
        study.figure7(&*learner, arguments.repeats, arguments.holdout)?;
    }
    Ok(())
}
