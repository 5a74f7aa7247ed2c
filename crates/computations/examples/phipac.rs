//! Vuduc's Table 1 on this machine: three matrix multiplications, three ways to choose among them, ten random splits.
//!
//! `cargo run --release -p tilewright-computations --example phipac -- FOLDER`, where the folder has the recorded `multiply.csv`.

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;
use tilewright_core::choice::{ChoiceSet, FitSelector};
use tilewright_core::metrics::ChoiceScores;
use tilewright_core::selector::{Candidate, VariantOrder};
use tilewright_datasets::{Dataset, SplitSpec};
use tilewright_variant_select::fixed::BestFixed;
use tilewright_variant_select::regression::{Regression, Terms};
use tilewright_variant_select::softmax::Softmax;
use tilewright_variant_select::svm::Svm;

/// Vuduc's words for his rows, and the rows.
const PAPER: [(&str, &str); 4] = [
    ("Regression", "34.5 2.6 90.7 1.2 0.4"),
    ("Cost-Min", "31.6 2.2 94.5 2.8 1.2"),
    ("SVM", "12.0 1.5 99.0 0.4 0"),
    ("Best fixed", "- - - - -"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::args().nth(1).ok_or("the folder with multiply.csv")?);
    let data = Dataset::open(folder.join("multiply.csv"))?;
    // Equation 6 in three dimensions: a product of sizes for everything that a multiplication moves or adds up.
    let terms = ["m*n*k", "m*n", "m*k", "n*k", "m", "n", "k", "1"].map(String::from).to_vec();
    let methods: [Box<dyn FitSelector>; 4] = [
        Box::new(Regression { terms: Terms::Expressions(terms), ..Regression::default() }),
        Box::new(Softmax::default()),
        // A finer grid than the default: three sizes, one device, and time enough.
        Box::new(Svm {
            widths: vec![0.25, 0.5, 1.0, 2.0, 4.0],
            penalties: vec![1.0, 10.0, 100.0, 1000.0],
            folds: 5,
            ..Svm::default()
        }),
        Box::new(BestFixed),
    ];
    println!("method miss% err% best5% worst20% worst50% oracle% predict_ns | paper: miss err best5 worst20 worst50");
    for ((name, paper), method) in PAPER.iter().zip(&methods) {
        let (mut scores, mut predict_s) = (Vec::new(), 0.0);
        for seed in 0..10 {
            let split = data.split(&SplitSpec::Column("input".into(), 0.33), seed)?;
            let (train, test) = (data.choices_of(&split.train)?, data.choices_of(&split.held_out)?);
            let selector = method.fit(&train, seed)?;
            scores.extend(ChoiceScores::of(&*selector, &test));
            predict_s += seconds_of_a_choice(&*selector, &test) / 10.0;
        }
        let s = ChoiceScores::mean(&scores).ok_or("nothing ran")?;
        let percent = [s.delta_miss, s.delta_err, s.best5, s.worst20, s.worst50, s.fraction_of_oracle];
        let shown = percent.map(|v| format!("{:.1}", 100.0 * v)).join(" ");
        println!("{name} {shown} {:.0} | {paper}", predict_s * 1e9);
    }
    Ok(())
}

fn seconds_of_a_choice(selector: &dyn tilewright_core::selector::Selector, cases: &ChoiceSet) -> f64 {
    let Some(first) = cases.cases().first() else { return 0.0 };
    let candidates: Vec<Candidate> = first.trials.iter().map(|t| t.candidate.clone()).collect();
    let (mut order, times) = (VariantOrder::new(), 20);
    let start = Instant::now();
    for _ in 0..times {
        cases.cases().iter().for_each(|case| selector.rank(&case.features, &candidates, &mut order));
    }
    start.elapsed().as_secs_f64() / (times * cases.len()) as f64
}
