//! `tilewright model ablation`: ISAAC's Table 2 and Figure 5 on recorded data.

use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, seconds};
use crate::progress::Bar;
use std::path::Path;
use tilewright_core::text::counted;
use tilewright_core::training::TrainingSet;
use tilewright_perfmodel_mlp::{Ablation, AblationFit, AblationReport, FeatureScale};

pub(crate) fn run(path: &Path, most: usize, seed: u64, output: Output) -> Result<(), Failure> {
    let whole = super::model::rows(path)?;
    let data = evenly(&whole, most);
    let ablation = Ablation::default();
    let sizes = ablation.sizes.iter().filter(|&&n| n <= data.len()).count();
    let bar = Bar::counting("ablation", (2 * ablation.layouts.len() + sizes) as u64);
    let mut done = 0;
    let mut progress = |fit: &AblationFit| {
        done += 1;
        bar.note(format!("{} on {}", fit.layout, counted(fit.rows, "row")));
        bar.set(done);
    };
    let report = ablation.run(&data, seed, &mut progress).map_err(|e| Failure::new(Kind::Input, "dataset", e))?;
    bar.finish();
    output.answer(&report, || text(&report))
}

/// At most `most` rows, spread evenly over the file, so that every input and device stays present.
fn evenly(data: &TrainingSet, most: usize) -> TrainingSet {
    if data.len() <= most {
        return data.clone();
    }
    let rows: Vec<usize> = (0..most).map(|i| i * data.len() / most).collect();
    data.subset(&rows)
}

fn text(report: &AblationReport) -> String {
    let error = |fit: Option<&AblationFit>| match fit {
        None => "-".to_owned(),
        Some(f) => f.mse.map_or("diverged".to_owned(), |m| format!("{m:.4}")),
    };
    let mut table = vec![["hidden layers", "weights", "mse (log)", "mse (raw)", "fit"].map(String::from).to_vec()];
    for fit in report.architectures.iter().filter(|f| f.features == FeatureScale::Log2) {
        let raw = report.architectures.iter().find(|f| f.layout == fit.layout && f.features == FeatureScale::Raw);
        table.push(vec![
            fit.layout.to_string(),
            fit.weights.to_string(),
            error(Some(fit)),
            error(raw),
            seconds(fit.seconds),
        ]);
    }
    let mut figure = vec![vec!["training rows".to_owned(), "mse".to_owned()]];
    figure.extend(report.sizes.iter().map(|f| vec![f.rows.to_string(), error(Some(f))]));
    format!(
        "{}, {}; errors of the log time on the test rows, whose variance is {:.4}\n\n{}\n{}",
        counted(report.training_rows, "training row"),
        counted(report.test_rows, "test row"),
        report.variance,
        aligned(&table),
        aligned(&figure)
    )
}
