//! `tilewright model`: predictors on recorded measurements.

use super::linear;
use crate::args::{ModelArgs, ModelCommand, ModelKind};
use crate::commands::data::read;
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, expect_writable, seconds, write};
use crate::progress::Bar;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tilewright_core::metrics::Scores;
use tilewright_core::predictor::{Fit, RowPredictor};
use tilewright_core::text::counted;
use tilewright_core::training::TrainingSet;
use tilewright_datasets::SplitSpec;
use tilewright_perfmodel_mlp::{Layout, Mlp, MlpFit, Settings};

#[derive(Serialize)]
struct Answer {
    model: &'static str,
    dataset: String,
    training_rows: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out_rows: Option<usize>,
    #[serde(flatten)]
    scores: Scores,
    rows_per_second: f64,
    fit_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

pub(crate) fn run(command: &ModelCommand, seed: u64, output: Output) -> Result<(), Failure> {
    match command {
        ModelCommand::Fit { dataset, with, device, out } if with.model == ModelKind::Linear => {
            measures(dataset, with)?;
            linear::fit(with, device, out.as_ref(), seed, output)
        }
        ModelCommand::Evaluate { dataset, with, device, .. } if with.model == ModelKind::Linear => {
            measures(dataset, with)?;
            linear::evaluate(with, device, seed, output)
        }
        ModelCommand::Fit { dataset, with, out, .. } => fit(named(dataset)?, with, out.as_ref(), seed, output),
        ModelCommand::Evaluate { dataset, with, holdout, .. } => evaluate(named(dataset)?, with, holdout, seed, output),
        ModelCommand::Ablation { dataset, rows } => super::ablation::run(dataset, *rows, seed, output),
    }
}

/// What the linear model has no use for: it measures kernels of its own.
fn measures(dataset: &Option<PathBuf>, with: &ModelArgs) -> Result<(), Failure> {
    if with.layers.is_some() {
        return Err(Failure::new(Kind::Usage, "layers", "the linear model has no layers"));
    }
    if let Some(file) = dataset {
        tracing::warn!("{} is not read: the linear model is fitted on kernels that it measures itself", file.display());
    }
    Ok(())
}

/// The dataset, which all models but the linear one are fitted on.
fn named(dataset: &Option<PathBuf>) -> Result<&Path, Failure> {
    dataset.as_deref().ok_or_else(|| Failure::new(Kind::Usage, "dataset", "missing: a CSV with its NAME.schema.json"))
}

/// Feature rows of a whole dataset.
pub(crate) fn rows(path: &Path) -> Result<TrainingSet, Failure> {
    read(path)?.training_set().map_err(|e| Failure::of_file(Kind::Input, path, e))
}

fn fitter(with: &ModelArgs) -> Result<MlpFit, Failure> {
    if with.ridge.is_some() {
        return Err(Failure::new(Kind::Usage, "ridge", "only the linear model has one: --model linear"));
    }
    let mut settings = Settings::default();
    if let Some(layers) = &with.layers {
        settings.layout = Layout::new(layers.clone()).map_err(|e| Failure::new(Kind::Usage, "layers", e))?;
    }
    Ok(MlpFit { settings, screen: None })
}

/// Fits on rows and scores on others.
fn fitted(
    path: &Path,
    fit: &MlpFit,
    train: &TrainingSet,
    test: &TrainingSet,
    seed: u64,
) -> Result<(Mlp, Answer), Failure> {
    let begun = Instant::now();
    let bar = Bar::working("fit", format!("learning from {}", counted(train.len(), "row")));
    let model = fit.fit(train, seed).map_err(|e| Failure::new(Kind::Input, "dataset", e))?;
    bar.finish();
    let fit_s = begun.elapsed().as_secs_f64();
    let mut predicted = Vec::with_capacity(test.len());
    let begun = Instant::now();
    model.predict(&test.rows, &mut predicted);
    let rows_per_second = test.len() as f64 / begun.elapsed().as_secs_f64();
    let nothing = || Failure::new(Kind::Nothing, "holdout", "no rows to score on");
    let answer = Answer {
        model: "mlp",
        dataset: path.display().to_string(),
        training_rows: train.len(),
        held_out_rows: None,
        scores: Scores::new(test, &predicted).ok_or_else(nothing)?,
        rows_per_second,
        fit_s,
        file: None,
    };
    Ok((model, answer))
}

fn fit(path: &Path, with: &ModelArgs, out: Option<&PathBuf>, seed: u64, output: Output) -> Result<(), Failure> {
    let (fitter, data) = (fitter(with)?, rows(path)?);
    let _model = expect_writable("out", out)?;
    let (model, answer) = fitted(path, &fitter, &data, &data, seed)?;
    let file = out.map_or_else(|| path.with_extension("mlp.json"), PathBuf::clone);
    write(&file, &model.to_json())?;
    let answer = Answer { file: Some(file.display().to_string()), ..answer };
    output.answer(&answer, || text(&answer))
}

fn evaluate(path: &Path, with: &ModelArgs, holdout: &str, seed: u64, output: Output) -> Result<(), Failure> {
    let (fitter, dataset) = (fitter(with)?, read(path)?);
    let spec: SplitSpec = holdout.parse().map_err(|e| Failure::new(Kind::Usage, "holdout", e))?;
    let split = dataset.split(&spec, seed).map_err(|e| Failure::new(Kind::Input, "holdout", e))?;
    let of = |rows: &[usize]| dataset.training_set_of(rows).map_err(|e| Failure::of_file(Kind::Input, path, e));
    let (train, test) = (of(&split.train)?, of(&split.held_out)?);
    let (_, answer) = fitted(path, &fitter, &train, &test, seed)?;
    let answer = Answer { held_out_rows: Some(test.len()), ..answer };
    output.answer(&answer, || text(&answer))
}

fn text(a: &Answer) -> String {
    let scored_on = a.held_out_rows.map_or("the training rows".to_owned(), |n| counted(n, "held-out row"));
    let mut rows = vec![
        ("mean squared error of log time", format!("{:.4}", a.scores.mse_log)),
        ("r2", format!("{:.4}", a.scores.r2)),
        ("rank correlation within an input", format!("{:.4}", a.scores.rank_correlation)),
        ("regret of the first choice", format!("{:.2}%", 100.0 * a.scores.top1_regret)),
        ("rows per second", format!("{:.0}", a.rows_per_second)),
        ("time to fit", seconds(a.fit_s)),
    ];
    if let Some(file) = &a.file {
        rows.push(("saved in", file.clone()));
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(n, v)| vec![n.to_owned(), v]).collect();
    format!(
        "{} fitted on {} of {}, scored on {scored_on}\n{}",
        a.model,
        counted(a.training_rows, "row"),
        a.dataset,
        aligned(&rows)
    )
}
