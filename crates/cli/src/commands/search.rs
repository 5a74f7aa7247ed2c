//! `tilewright search`: strategies on recorded measurements.

mod grid;
mod space;

use crate::args::SearchArgs;
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, seconds};
use serde::Serialize;
use space::{Recording, prior, warm};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tilewright_charts as charts;
use tilewright_search::run::{Budget, StoppedBy, Trace, repeat, run as drive};
use tilewright_search::stop::{Tail, Tolerance};
use tilewright_search::{Convergence, Setup, Strategy, convergence};

/// Budgets of strategies that do not stop by themselves.
const BUDGETS: [u64; 5] = [25, 50, 100, 200, 400];

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    first: Row,
    /// All strategies, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compared: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grid: Option<Vec<grid::Cell>>,
    /// What the learned stopping rule was fitted to, where recordings were given for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<Tail>,
}

#[derive(Clone, Serialize)]
struct Row {
    strategy: String,
    device: String,
    points: usize,
    optimum_s: f64,
    budgets: Vec<u64>,
    fraction_of_optimum: Vec<f64>,
    /// Share of the space that was evaluated, mean over repeats.
    stopped_at_fraction: f64,
    /// Share of the repeats whose best is further than epsilon from the optimum.
    miss_rate: f64,
    /// How most repeats ended.
    stopped_by: &'static str,
    /// The strategy's own bound on the chance of a miss at its end, mean over repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<f64>,
    evaluations: f64,
    /// Recorded seconds of compiling and running, mean over repeats.
    simulated_s: f64,
    seconds: f64,
    evaluations_per_second: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    each: Vec<Vec<f64>>,
}

pub(crate) fn run(args: &SearchArgs, seed: u64, output: Output) -> Result<(), Failure> {
    let tolerance = Tolerance::new(args.epsilon, args.alpha).map_err(|e| Failure::new(Kind::Usage, e.what, e))?;
    let strategies = args.strategy.iter().map(|s| strategy(s, args)).collect::<Result<Vec<_>, _>>()?;
    let limit = |evaluations| Budget { evaluations, seconds: args.time.map(|t| t.as_secs_f64()), bound: None };
    for budget in &args.budget {
        limit(Some(*budget)).check().map_err(|e| Failure::new(Kind::Usage, "budget", e))?;
    }
    limit(None).check().map_err(|e| Failure::new(Kind::Usage, "time", e))?;
    let recording = Recording::read(&args.device)?;
    let mut setup = Setup { tolerance, ..Setup::new(recording.listing.clone()) };
    if !args.prior.is_empty() {
        setup.tail = Arc::new(prior(&args.prior, args.epsilon, seed)?);
    }
    if !args.warm_start.is_empty() {
        setup.warm = Arc::new(warm(&args.warm_start, &recording)?);
    }
    let mut rows = Vec::new();
    let mut curves = Vec::new();
    for (name, strategy) in &strategies {
        let mut budgets = args.budget.clone();
        budgets.sort_unstable();
        budgets.dedup();
        let most = budgets.last().copied();
        let stops = strategy.stops() || args.time.is_some() || *strategy == Strategy::Exhaustive;
        let most = most.or((!stops).then_some(BUDGETS[BUDGETS.len() - 1]));
        let start = Instant::now();
        let traces = repeat(seed, args.repeats.into(), |seed| {
            let mut search = strategy.make(&setup, seed);
            drive(&mut *search, &limit(most), args.batch as usize, &mut |p| recording.evaluate(p))
        });
        let took = start.elapsed().as_secs_f64();
        let budgets = if budgets.is_empty() { BUDGETS.to_vec() } else { budgets };
        rows.push(row(name, &recording, &budgets, &traces, tolerance, took, args.each));
        let sample =
            |c: Convergence| charts::Sample { x: c.evaluations as f64, mean: c.mean, low: c.low, high: c.high };
        let samples = convergence(&traces, recording.optimum_s).into_iter().map(sample).collect();
        curves.push(charts::Curve { name: name.clone(), samples });
    }
    if let Some(path) = &args.plot {
        let title = format!("{}: {} points", recording.device, recording.listing.len());
        let drawn = charts::curves(&title, ("evaluations", "fraction of the optimum"), &curves);
        let svg = drawn.map_err(|e| Failure::new(Kind::Other, "plot", e))?;
        std::fs::write(path, svg).map_err(|e| Failure::new(Kind::Store, &path.display().to_string(), e))?;
    }
    let grid = args.grid.then(|| grid::grid(&recording, strategies[0].1, &setup, args.repeats, seed)).transpose()?;
    let first = rows[0].clone();
    let compared = if rows.len() > 1 { rows.clone() } else { Vec::new() };
    let tail = (!args.prior.is_empty()).then(|| (*setup.tail).clone());
    let answer = Answer { first, compared, grid, tail };
    output.answer(&answer, || text(&rows, answer.grid.as_deref()))
}

fn strategy(name: &str, args: &SearchArgs) -> Result<(String, Strategy), Failure> {
    if name == "auto" && !args.budget.is_empty() {
        return Ok((name.to_owned(), Strategy::Guided));
    }
    let strategy = name.parse::<Strategy>().map_err(|e| Failure::new(Kind::Usage, "strategy", e))?;
    Ok((name.to_owned(), strategy))
}

fn row(
    name: &str,
    recording: &Recording,
    budgets: &[u64],
    traces: &[Trace],
    tolerance: Tolerance,
    took: f64,
    each: bool,
) -> Row {
    let fraction = |cost: Option<f64>| cost.map_or(0.0, |c| recording.optimum_s / c);
    let mean = |of: &dyn Fn(&Trace) -> f64| traces.iter().map(of).sum::<f64>() / traces.len() as f64;
    let missed = |t: &Trace| f64::from(u8::from(fraction(t.best()) < 1.0 - tolerance.epsilon));
    let mut ends: BTreeMap<StoppedBy, usize> = BTreeMap::new();
    traces.iter().for_each(|t| *ends.entry(t.stopped_by).or_default() += 1);
    let stopped_by = ends.iter().max_by_key(|(_, n)| **n).map_or("", |(s, _)| s.name());
    let bounds: Vec<f64> = traces.iter().filter_map(|t| t.bound).collect();
    let evaluations: u64 = traces.iter().map(|t| t.evaluations).sum();
    Row {
        strategy: name.to_owned(),
        device: recording.device.clone(),
        points: recording.listing.len(),
        optimum_s: recording.optimum_s,
        budgets: budgets.to_vec(),
        fraction_of_optimum: budgets.iter().map(|b| mean(&|t| fraction(t.best_after(*b)))).collect(),
        stopped_at_fraction: mean(&|t| t.evaluations as f64) / recording.listing.len() as f64,
        miss_rate: mean(&missed),
        stopped_by,
        bound: (!bounds.is_empty()).then(|| bounds.iter().sum::<f64>() / bounds.len() as f64),
        evaluations: evaluations as f64 / traces.len() as f64,
        simulated_s: mean(&|t| t.seconds),
        seconds: took,
        evaluations_per_second: evaluations as f64 / took,
        each: match each {
            true => traces.iter().map(|t| budgets.iter().map(|b| fraction(t.best_after(*b))).collect()).collect(),
            false => Vec::new(),
        },
    }
}

fn text(rows: &[Row], grid: Option<&[grid::Cell]>) -> String {
    let first = &rows[0];
    let mut out = format!(
        "{}: {} points, optimum {}\n\nfraction of the optimum after evaluations\n",
        first.device,
        first.points,
        seconds(first.optimum_s)
    );
    let mut table = vec![vec![String::new()]];
    table[0].extend(first.budgets.iter().map(u64::to_string));
    table[0].extend(["stopped at", "missed", "by", "simulated", "took"].map(String::from));
    for row in rows {
        let mut line = vec![row.strategy.clone()];
        line.extend(row.fraction_of_optimum.iter().map(|f| format!("{f:.3}")));
        line.push(format!("{:.2}%", 100.0 * row.stopped_at_fraction));
        line.push(format!("{:.1}%", 100.0 * row.miss_rate));
        line.push(row.stopped_by.to_owned());
        line.push(seconds(row.simulated_s));
        line.push(seconds(row.seconds));
        table.push(line);
    }
    out.push_str(&aligned(&table));
    if let Some(cells) = grid {
        out.push('\n');
        out.push_str(&grid::text(cells));
    }
    out
}
