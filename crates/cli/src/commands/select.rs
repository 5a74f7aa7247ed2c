//! `tilewright select`: choosing among variants and configurations, judged on recorded measurements.

use crate::args::{SelectArgs, SelectCommand, SelectMethod};
use crate::commands::data::read_some;
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, seconds};
use rayon::prelude::*;
use serde::Serialize;
use std::path::Path;
use std::time::Instant;
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};
use tilewright_datasets::{Dataset, FeatureTable, SplitSpec};
use tilewright_perfmodel_mlp::MlpFit;
use tilewright_variant_select::blend::Blend;
use tilewright_variant_select::by_predictor::ByPredictor;
use tilewright_variant_select::evaluate::Auto;
use tilewright_variant_select::fixed::BestFixed;
use tilewright_variant_select::forest::CostForest;
use tilewright_variant_select::guard::guarded;
use tilewright_variant_select::map;
use tilewright_variant_select::metrics::Table1;
use tilewright_variant_select::process::CostProcess;
use tilewright_variant_select::regression::Regression;
use tilewright_variant_select::softmax::Softmax;
use tilewright_variant_select::svm::Svm;
use tilewright_variant_select::trees::BoostedTrees;

#[derive(Serialize)]
struct Answer {
    method: &'static str,
    #[serde(flatten)]
    scores: Table1,
    /// One choice: ranking all candidates of an input whose features are at hand, mean over the held-out inputs.
    predict_ns: f64,
    fit_s: f64,
    repeats: u32,
    holdout: String,
    /// What `auto` took, with how often.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chosen: Vec<(String, usize)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    devices: Vec<OfDevice>,
}

#[derive(Serialize)]
struct OfDevice {
    device: String,
    #[serde(flatten)]
    scores: Table1,
    predict_ns: f64,
}

pub(crate) fn run(command: &SelectCommand, seed: u64, output: Output) -> Result<(), Failure> {
    let SelectCommand::Evaluate { dataset, with } = command;
    evaluate(dataset, with, seed, output)
}

/// A method, fitted; what `auto` took under its name.
fn fit(method: SelectMethod, data: &ChoiceSet, seed: u64) -> Result<(String, Box<dyn Selector>), SelectError> {
    let plain: &dyn FitSelector = match method {
        SelectMethod::Auto => {
            let (name, selector) = Auto::recommended().choose(data, seed)?;
            return Ok((name, guarded(selector, data, seed)));
        }
        SelectMethod::Softmax => &Softmax::default(),
        SelectMethod::Regression => &Regression::default(),
        SelectMethod::Svm => &Svm::default(),
        SelectMethod::Trees => &BoostedTrees::default(),
        SelectMethod::Forest => &CostForest::default(),
        SelectMethod::Process => &CostProcess::default(),
        SelectMethod::Blend => &Blend::default(),
        SelectMethod::Mlp => &ByPredictor { fit: MlpFit::default(), name: "mlp" },
        SelectMethod::Fixed => &BestFixed,
    };
    Ok((method.name().to_owned(), guarded(plain.fit(data, seed)?, data, seed)))
}

/// One split of one device.
struct Job {
    device: usize,
    seed: u64,
    train: Vec<usize>,
    held_out: Vec<usize>,
}

struct Done {
    device: usize,
    scores: Table1,
    chosen: String,
    fit_s: f64,
    selector: Box<dyn Selector>,
    held_out: ChoiceSet,
}

/// The rows of each split by device. A device of which nothing is left to learn from is judged by what all others teach.
fn jobs(
    dataset: &Dataset,
    names: &[String],
    spec: &SplitSpec,
    args: &SelectArgs,
    seed: u64,
) -> Result<Vec<Job>, Failure> {
    let mut out = Vec::new();
    for repeat in 0..u64::from(args.repeats) {
        let seed = seed.wrapping_add(repeat);
        let split = dataset.split(spec, seed).map_err(|e| Failure::new(Kind::Input, "holdout", e))?;
        for (device, name) in names.iter().enumerate() {
            let own = |rows: &[usize]| rows.iter().copied().filter(|&r| dataset.device(r) == *name).collect::<Vec<_>>();
            let (native, held_out) = (own(&split.train), own(&split.held_out));
            if held_out.is_empty() {
                continue;
            }
            let train = if native.is_empty() { split.train.clone() } else { native };
            out.push(Job { device, seed, train, held_out });
        }
    }
    Ok(out)
}

fn finish(dataset: &Dataset, table: &FeatureTable, job: &Job, method: SelectMethod) -> Result<Option<Done>, Failure> {
    let of = |rows: &[usize]| dataset.choices_from(table, rows).map_err(|e| Failure::new(Kind::Input, "dataset", e));
    let (train, held_out) = (of(&job.train)?, of(&job.held_out)?);
    let start = Instant::now();
    let fault = |e: SelectError| {
        let device = dataset.device(job.held_out[0]);
        let of = if device.is_empty() { String::new() } else { format!("device {device:?}: ") };
        Failure::new(Kind::Input, "dataset", format!("{of}{e}"))
    };
    let (chosen, selector) = fit(method, &train, job.seed).map_err(fault)?;
    let fit_s = start.elapsed().as_secs_f64();
    let scores = Table1::of(&*selector, &held_out);
    Ok(scores.map(|scores| Done { device: job.device, scores, chosen, fit_s, selector, held_out }))
}

fn evaluate(path: &Path, args: &SelectArgs, seed: u64, output: Output) -> Result<(), Failure> {
    let mut dataset = read_some(path)?;
    let known = super::transfer::device_table(args.device_features.as_deref())?;
    dataset.know_devices(|device| known.of(device).ok().cloned());
    let spec = args.holdout.as_deref().unwrap_or(match dataset.schema().columns.group {
        Some(_) => "group:0.25",
        None => "input:0.25",
    });
    let spec: SplitSpec = spec.parse().map_err(|e| Failure::new(Kind::Usage, "holdout", e))?;
    if let Some(file) = &args.map {
        drawable(file, args.axes.as_deref())?;
    }
    let table = dataset.features().map_err(|e| Failure::new(Kind::Input, &path.display().to_string(), e))?;
    let mut names: Vec<String> = (0..dataset.len()).map(|r| dataset.device(r)).collect();
    names.sort();
    names.dedup();
    let jobs = jobs(&dataset, &names, &spec, args, seed)?;
    let done = jobs.par_iter().map(|job| finish(&dataset, &table, job, args.method)).collect::<Result<Vec<_>, _>>()?;
    let done: Vec<Done> = done.into_iter().flatten().collect();
    let answer = summary(&done, &names, &spec, args)?;
    if let (Some(file), Some(last)) = (&args.map, done.last()) {
        draw(file, args, last)?;
    }
    output.answer(&answer, || text(&answer))
}

/// A map that could not be drawn is refused before anything is fitted.
fn drawable(file: &Path, axes: Option<&[String]>) -> Result<(), Failure> {
    match axes {
        None => {}
        Some([x, y]) if x != y => {}
        Some(_) => return Err(Failure::new(Kind::Usage, "axes", "expected two features of the input, as in m,n")),
    }
    let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if file.is_dir() || !folder.is_dir() {
        let what = if file.is_dir() { "is a folder" } else { "is in no folder that is there" };
        return Err(Failure::new(Kind::Input, "map", format!("{} {what}", file.display())));
    }
    Ok(())
}

/// The truth map and the prediction map of the last split.
fn draw(file: &Path, args: &SelectArgs, done: &Done) -> Result<(), Failure> {
    let named = match args.axes.as_deref() {
        Some([x, y]) => Some((x.as_str(), y.as_str())),
        _ => None,
    };
    let axes = map::axes(&done.held_out, named).map_err(|e| Failure::new(Kind::Input, "axes", e))?;
    let svg = map::maps(&done.held_out, axes, &[(done.chosen.clone(), &*done.selector)]);
    std::fs::write(file, svg).map_err(|e| Failure::new(Kind::Other, &file.display().to_string(), e))
}

fn summary(done: &[Done], names: &[String], spec: &SplitSpec, args: &SelectArgs) -> Result<Answer, Failure> {
    let nothing = || Failure::new(Kind::Nothing, "holdout", "nothing that ran was held out");
    let mut devices = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let own: Vec<&Done> = done.iter().filter(|d| d.device == i).collect();
        let scores: Vec<Table1> = own.iter().map(|d| d.scores).collect();
        // Alone and after all fits, so that nothing disturbs the clock.
        let (Some(scores), Some(last)) = (Table1::mean(&scores), own.last()) else { continue };
        devices.push(OfDevice { device: name.clone(), scores, predict_ns: time_a_choice(last) });
    }
    let all: Vec<Table1> = devices.iter().map(|d| d.scores).collect();
    let mut chosen: Vec<(String, usize)> = Vec::new();
    for d in done.iter().filter(|_| args.method == SelectMethod::Auto) {
        match chosen.iter_mut().find(|(name, _)| *name == d.chosen) {
            Some((_, times)) => *times += 1,
            None => chosen.push((d.chosen.clone(), 1)),
        }
    }
    Ok(Answer {
        method: args.method.name(),
        scores: Table1::mean(&all).ok_or_else(nothing)?,
        predict_ns: devices.iter().map(|d| d.predict_ns).sum::<f64>() / devices.len() as f64,
        fit_s: done.iter().map(|d| d.fit_s).sum::<f64>() / done.len() as f64,
        repeats: args.repeats,
        holdout: spec.to_string(),
        chosen,
        devices: if devices.len() > 1 { devices } else { Vec::new() },
    })
}

/// Nanoseconds of one choice: for each held-out case the best of seven, each a few choices long so that the clock is fine enough;
/// the mean over cases. Whole passes would also time whatever else the machine does.
fn time_a_choice(done: &Done) -> f64 {
    let of =
        |c: &tilewright_core::choice::Case| c.trials.iter().map(|t| t.candidate.clone()).collect::<Vec<Candidate>>();
    let cases: Vec<(&[f32], Vec<Candidate>)> =
        done.held_out.cases().iter().map(|c| (c.features.as_slice(), of(c))).collect();
    let mut order = VariantOrder::new();
    const CHOICES: u32 = 8;
    let mut once = |(features, candidates): &(&[f32], Vec<Candidate>)| {
        let start = Instant::now();
        for _ in 0..CHOICES {
            done.selector.rank(std::hint::black_box(*features), candidates, &mut order);
            std::hint::black_box(&order);
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CHOICES)
    };
    let best = |case| (0..7).map(|_| once(case)).fold(f64::INFINITY, f64::min);
    let total: f64 = cases.iter().map(best).sum();
    total / cases.len() as f64
}

fn text(a: &Answer) -> String {
    let row = |name: &str, s: &Table1, ns: f64| {
        let percent = |x: f64| format!("{:.1}%", 100.0 * x);
        let mut row = vec![name.to_owned(), percent(s.delta_miss), percent(s.delta_err), percent(s.best5)];
        row.extend([percent(s.worst20), percent(s.worst50)]);
        row.extend([format!("{:.4}", s.fraction_of_oracle), format!("{:.4}", s.fraction_of_oracle_top3)]);
        row.push(seconds(ns * 1e-9));
        row
    };
    let head = ["", "miss", "error", "best 5%", "worst 20%", "worst 50%", "of oracle", "top 3", "a choice"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(a.devices.iter().map(|d| row(&d.device, &d.scores, d.predict_ns)));
    rows.push(row(a.method, &a.scores, a.predict_ns));
    let chosen: Vec<String> = a.chosen.iter().map(|(name, times)| format!("{name} ({times})")).collect();
    let chosen = if chosen.is_empty() { String::new() } else { format!("auto took {}\n", chosen.join(", ")) };
    format!("{} splits by {}, {} a fit\n{}{chosen}", a.repeats, a.holdout, seconds(a.fit_s), aligned(&rows))
}
