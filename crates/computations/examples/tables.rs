//! The tables of Nitro's second paper (Muralidharan and others, 2016) for the devices that `measure` measured.
//!
//! `cargo run --release -p tilewright-computations --example tables -- FOLDER`: how often each variant is best (Table 4),
//! what choosing among them comes to on a device that was left out (Figure 6), features of devices (Table 5), similarity of devices
//! (Table 2), what choosing features and variants costs (Table 6), and a device less to learn from (Figure 7). Figures are written to the folder.

#[path = "tables/figure.rs"]
mod figure;
#[path = "tables/study.rs"]
mod study;

use clap::{Parser, ValueEnum};
use figure::Panel;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use study::{Learners, METHODS, Scores, Study};
use tilewright_variant_select::blend::Blend;
use tilewright_variant_select::forest::CostForest;
use tilewright_variant_select::svm::Svm;
use tilewright_variant_select::trees::BoostedTrees;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Learner {
    Svm,
    Forest,
    Trees,
    Blend,
}

#[derive(Parser)]
struct Arguments {
    /// Where the datasets stand.
    folder: PathBuf,
    /// What learns.
    #[arg(long, default_value = "forest")]
    learner: Learner,
    /// Splits into training and test inputs.
    #[arg(long, default_value_t = 3)]
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
    /// Splits for Figure 7, which has five times as many models.
    #[arg(long, default_value_t = 1)]
    restricted_repeats: u64,
    /// Only Table 4 and Figure 6.
    #[arg(long)]
    brief: bool,
}

fn learners(which: Learner) -> Learners {
    // One width and penalty: thousands of models are fitted.
    let svm = || Box::new(Svm { widths: vec![2.0], penalties: vec![10.0], ..Svm::default() });
    let few = || Box::new(CostForest::default());
    match which {
        Learner::Svm => Learners { choose: svm(), compare: svm() },
        Learner::Forest => {
            Learners { choose: Box::new(CostForest { trees: 40, ..CostForest::default() }), compare: few() }
        }
        Learner::Trees => Learners { choose: Box::new(BoostedTrees::default()), compare: few() },
        Learner::Blend => Learners { choose: Box::new(Blend::default()), compare: few() },
    }
}

fn panel(title: &str, scores: &[(String, Scores)]) -> Panel {
    Panel { title: title.into(), groups: scores.iter().map(|(name, s)| (name.clone(), s.percent())).collect() }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let (learners, repeats, holdout) = (learners(arguments.learner), arguments.repeats, arguments.holdout);
    println!("learner {:?}, {repeats} splits, {holdout} of the inputs held out", arguments.learner);
    let mut studies = Vec::new();
    for name in &arguments.only {
        studies.push(Study::read(&arguments.folder, name)?);
    }
    studies.iter().for_each(Study::print_winners);
    println!("\nExhaustive search by one half of the visits, judged by the other half, in percent, by device");
    studies.iter().for_each(Study::print_noise);
    println!("\nFigure 6: percent of exhaustive search, by target device");
    println!("computation device {}", METHODS.join(" "));
    let (mut all, mut panels) = (Vec::new(), Vec::new());
    for study in &studies {
        let scores = study.figure6(&learners, repeats, holdout)?;
        panels.push(panel(&study.name, &scores));
        all.extend(scores.into_iter().map(|s| s.1));
    }
    println!("all mean {}", Scores::mean(&all));
    fs::write(arguments.folder.join("figure6.svg"), figure::bars(&panels, &METHODS, 2))?;
    if arguments.brief {
        return Ok(());
    }
    println!(
        "\nTable 5: best device features (exhaustive), proxies by P-DFS, best feature by CV-DFS; Table 6: seconds of each"
    );
    let mut chosen = Vec::new();
    for study in &studies {
        chosen.push(study.table5(&learners, holdout)?);
    }
    println!("\nTable 2: cosine similarity of devices by the best features");
    for (study, features) in studies.iter().zip(&chosen) {
        study.print_similarity(features)?;
    }
    println!("\nCost of a choice: features of the input and prediction, over the time of the chosen variant");
    for study in &studies {
        study.print_overhead(&*learners.choose)?;
    }
    if let Some(study) = studies.iter().find(|s| s.name == arguments.restricted) {
        println!("\nFigure 7: {}, one device less to learn from", study.name);
        println!("without target {}", METHODS.join(" "));
        let without = study.figure7(&learners, arguments.restricted_repeats, holdout)?;
        let panels: Vec<Panel> = without.iter().map(|(name, s)| panel(&format!("without {name}"), s)).collect();
        fs::write(arguments.folder.join("figure7.svg"), figure::bars(&panels, &METHODS, 2))?;
    }
    Ok(())
}
