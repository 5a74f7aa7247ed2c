//! `tilewright select`: choosing among variants and configurations, judged on recorded measurements.

use crate::args::{SelectArgs, SelectCommand, SelectMethod, word};
use crate::commands::data::read_some;
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, expect_writable, seconds, write};
use rayon::prelude::*;
use serde::Serialize;
use std::path::{Path, PathBuf};
use tilewright_bench_suite::statistics::Interval;
use tilewright_charts::{Axis, Mark, Panel, scatter};
use tilewright_core::choice::{FitSelector, SelectError};
use tilewright_core::metrics::ChoiceScores;
use tilewright_core::text::counted;
use tilewright_datasets::{Dataset, DeviceSplit, FeatureTable, SplitSpec};
use tilewright_files::Writable;
use tilewright_perfmodel_mlp::MlpFit;
use tilewright_variant_select::blend::Blend;
use tilewright_variant_select::by_predictor::ByPredictor;
use tilewright_variant_select::evaluate::Auto;
use tilewright_variant_select::extra::ExtraTrees;
use tilewright_variant_select::fixed::BestFixed;
use tilewright_variant_select::forest::CostForest;
use tilewright_variant_select::map::{VariantMap, axes};
use tilewright_variant_select::process::CostProcess;
use tilewright_variant_select::protocol::{Evaluation, Judged, Method, judge};
use tilewright_variant_select::regression::Regression;
use tilewright_variant_select::softmax::Softmax;
use tilewright_variant_select::svm::Svm;
use tilewright_variant_select::trees::BoostedTrees;

#[derive(Serialize)]
struct Answer {
    method: String,
    #[serde(flatten)]
    found: Evaluation,
    /// The fraction of the oracle's performance: devices are the units where there are several, else splits.
    interval: Option<Interval>,
    repeats: u32,
    holdout: String,
}

pub(crate) fn run(command: &SelectCommand, seed: u64, output: Output) -> Result<(), Failure> {
    let SelectCommand::Evaluate { dataset, with } = command;
    evaluate(dataset, with, seed, output)
}

fn method(named: SelectMethod) -> Method {
    let fit: Box<dyn FitSelector> = match named {
        SelectMethod::Auto => return Method::Auto(Auto::recommended()),
        SelectMethod::Softmax => Box::new(Softmax::default()),
        SelectMethod::Regression => Box::new(Regression::default()),
        SelectMethod::Svm => Box::new(Svm::default()),
        SelectMethod::Trees => Box::new(BoostedTrees::default()),
        SelectMethod::Forest => Box::new(CostForest::default()),
        SelectMethod::ExtraTrees => Box::new(ExtraTrees::default()),
        SelectMethod::Process => Box::new(CostProcess::default()),
        SelectMethod::Blend => Box::new(Blend::default()),
        SelectMethod::Mlp => Box::new(ByPredictor { fit: MlpFit::default(), name: "mlp" }),
        SelectMethod::Fixed => Box::new(BestFixed),
    };
    Method::Named(word(named), fit)
}

fn evaluate(path: &Path, args: &SelectArgs, seed: u64, output: Output) -> Result<(), Failure> {
    let mut dataset = read_some(path)?;
    let known = super::transfer::device_table(args.device_features.as_deref())?;
    dataset.know_devices(|device| known.of(device).ok().cloned());
    let spec = super::transfer::holdout(args.holdout.as_deref(), &dataset, "0.25")?;
    let _map = args.map.as_ref().map(|file| drawable(file, args.axes.as_deref())).transpose()?;
    let table = dataset.features().map_err(|e| Failure::of_file(Kind::Input, path, e))?;
    let splits = dataset.device_splits(&spec, args.repeats, seed);
    let splits = splits.map_err(|e| Failure::new(Kind::Input, "holdout", e))?;
    let method = method(args.method);
    let of = |split: &DeviceSplit| judged(&dataset, &table, split, &method);
    // The first alone: what it takes is what a fit takes.
    let (first, others) = splits.split_at(splits.len().min(1));
    let first = first.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    let others = others.par_iter().map(of).collect::<Result<Vec<_>, _>>()?;
    let judged: Vec<Judged> = first.into_iter().chain(others).flatten().collect();
    let answer = answer(&judged, &spec, args)?;
    if let (Some(file), Some(last)) = (&args.map, judged.last()) {
        draw(file, args, last)?;
    }
    output.answer(&answer, || text(&answer))
}

fn judged(
    dataset: &Dataset,
    table: &FeatureTable,
    split: &DeviceSplit,
    method: &Method,
) -> Result<Option<Judged>, Failure> {
    let of = |rows: &[usize]| dataset.choices_from(table, rows).map_err(|e| Failure::new(Kind::Input, "dataset", e));
    let fault = |e: SelectError| {
        let of = if split.device.is_empty() { String::new() } else { format!("device {:?}: ", split.device) };
        Failure::new(Kind::Input, "dataset", format!("{of}{e}"))
    };
    judge(method, &split.device, (&of(&split.train)?, of(&split.held_out)?), split.seed).map_err(fault)
}

fn answer(judged: &[Judged], spec: &SplitSpec, args: &SelectArgs) -> Result<Answer, Failure> {
    let nothing = || Failure::new(Kind::Nothing, "holdout", "nothing that ran was held out");
    let mut found = Evaluation::of(judged).ok_or_else(nothing)?;
    if args.method != SelectMethod::Auto {
        found.chosen.clear();
    }
    let fractions = || judged.iter().map(|j| (j.device.as_str(), j.scores.fraction_of_oracle));
    let interval = if found.devices.is_empty() {
        Interval::of_splits(&fractions().map(|f| f.1).collect::<Vec<f64>>(), spec.drawn_share())
    } else {
        Interval::of_units(fractions())
    };
    Ok(Answer { method: word(args.method), found, interval, repeats: args.repeats, holdout: spec.to_string() })
}

/// A map that could not be drawn is refused before anything is fitted.
fn drawable(file: &PathBuf, axes: Option<&[String]>) -> Result<Option<Writable>, Failure> {
    match axes {
        None => {}
        Some([x, y]) if x != y => {}
        Some(_) => return Err(Failure::new(Kind::Usage, "axes", "expected two features of the input, as in m,n")),
    }
    expect_writable("map", file)
}

/// What was fastest and what was chosen for the held-out inputs of the last split.
fn draw(file: &Path, args: &SelectArgs, last: &Judged) -> Result<(), Failure> {
    let named = match args.axes.as_deref() {
        Some([x, y]) => Some((x.as_str(), y.as_str())),
        _ => None,
    };
    let data = &last.held_out;
    let (x, y) = axes(data, named).map_err(|e| Failure::new(Kind::Input, "axes", e))?;
    let maps = [VariantMap::fastest(data), VariantMap::chosen(&last.chosen, &*last.selector, data)];
    let legend = VariantMap::legend(&maps);
    let mark = |(case, variant): (&tilewright_core::choice::Case, &Option<String>)| {
        let series = legend.iter().position(|name| Some(name) == variant.as_ref())?;
        Some(Mark { x: case.features[x].into(), y: case.features[y].into(), series })
    };
    let panel = |map: &VariantMap| {
        let marks = data.cases().iter().zip(&map.variants).filter_map(mark).collect();
        Panel { title: map.title.clone(), marks }
    };
    let axis = |of: usize| {
        Axis::over(&data.schema().input[of].name, data.cases().iter().map(|case| f64::from(case.features[of])))
    };
    let panels: Vec<Panel> = maps.iter().map(panel).collect();
    let fault = |e: &dyn std::fmt::Display| Failure::of_file(Kind::Other, file, e);
    let svg = scatter(&panels, (&axis(x), &axis(y)), &legend).map_err(|e| fault(&e))?;
    write(file, &svg)
}

fn text(a: &Answer) -> String {
    let row = |name: &str, s: &ChoiceScores, (ns, cold): (f64, f64)| {
        let percent = |x: f64| format!("{:.1}%", 100.0 * x);
        let mut row = vec![name.to_owned(), percent(s.delta_miss), percent(s.delta_err), percent(s.best5)];
        row.extend([percent(s.worst20), percent(s.worst50)]);
        row.extend([format!("{:.4}", s.fraction_of_oracle), format!("{:.4}", s.fraction_of_oracle_top3)]);
        row.extend([seconds(ns * 1e-9), seconds(cold * 1e-9)]);
        row
    };
    let head = ["", "miss", "error", "best 5%", "worst 20%", "worst 50%", "of oracle", "top 3", "a choice", "cold"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(a.found.devices.iter().map(|d| row(&d.device, &d.scores, (d.predict_ns, d.predict_cold_ns))));
    rows.push(row(&a.method, &a.found.scores, (a.found.predict_ns, a.found.predict_cold_ns)));
    let chosen: Vec<String> = a.found.chosen.iter().map(|(name, times)| format!("{name} ({times})")).collect();
    let chosen = if chosen.is_empty() { String::new() } else { format!("auto took {}\n", chosen.join(", ")) };
    let units = if a.found.devices.is_empty() { "splits" } else { "devices" };
    let sure = a.interval.filter(|i| i.low.is_finite());
    let sure = sure.map_or(String::new(), |i| format!("of oracle, 95% over {units}: {:.4} to {:.4}\n", i.low, i.high));
    let (fit, table) = (seconds(a.found.fit_s), aligned(&rows));
    format!("{} by {}, {fit} a fit\n{table}{sure}{chosen}", counted(a.repeats, "split"), a.holdout)
}
