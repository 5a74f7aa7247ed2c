//! `tilewright search`: strategies on recorded measurements, or live on a device.

mod above;
mod grid;
mod live;
mod space;

use crate::args::SearchArgs;
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, expect_writable, note, seconds, write};
use crate::wiring::Wiring;
use above::Above;
use serde::Serialize;
use space::{About, Recording, prior, warm};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tilewright_charts as charts;
use tilewright_core::space::{Config, Point};
use tilewright_core::text::counted;
use tilewright_search::drive::{Budget, Recorded, StoppedBy, Trace, repeat};
use tilewright_search::stop::{Tail, Tolerance};
use tilewright_search::{Convergence, Setup, Strategy, convergence, drive};

/// Budgets of strategies that do not stop by themselves.
const BUDGETS: [u64; 5] = [25, 50, 100, 200, 400];

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    first: Row,
    /// All strategies, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compared: Vec<Row>,
    /// By how much the first of them is above the others, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    above: Vec<Above>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grid: Option<Vec<grid::Cell>>,
    /// What the learned stopping rule was fitted to, where recordings were given for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<Tail>,
    /// On a live device: what was known before anything was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    knowledge: Option<String>,
    /// On a live device: the best configuration that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<Config>,
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
    /// Seconds of compiling and running, mean over repeats: recorded ones, or a live device's.
    simulated_s: f64,
    seconds: f64,
    evaluations_per_second: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    each: Vec<Vec<f64>>,
}

/// What is asked of every strategy.
struct Asked {
    strategies: Vec<(String, Strategy)>,
    /// Sorted.
    budgets: Vec<u64>,
    seconds: Option<f64>,
    tolerance: Tolerance,
}

impl Asked {
    fn new(args: &SearchArgs) -> Result<Self, Failure> {
        let tolerance = Tolerance::new(args.epsilon, args.alpha).map_err(|e| Failure::new(Kind::Usage, e.what, e))?;
        let strategies = args.strategy.iter().map(|s| strategy(s, args)).collect::<Result<Vec<_>, _>>()?;
        let seconds = args.time.map(|t| t.as_secs_f64());
        let refuse = |field| move |e| Failure::new(Kind::Usage, field, e);
        for budget in &args.budget {
            Budget::evaluations(*budget).check().map_err(refuse("budget"))?;
        }
        Budget { seconds, ..Budget::NONE }.check().map_err(refuse("time"))?;
        let mut budgets = args.budget.clone();
        budgets.sort_unstable();
        budgets.dedup();
        Ok(Self { strategies, budgets, seconds, tolerance })
    }

    /// Says where a learned bound is asked for that was learned for something else.
    fn warn_of(&self, tail: &Tail) {
        let cautions = self.strategies.iter().filter_map(|(_, s)| s.caution(tail, self.tolerance.epsilon));
        cautions.for_each(|caution| note(format_args!("warning: {caution}")));
    }

    /// When a strategy ends at the latest.
    fn limit(&self, strategy: Strategy) -> Budget {
        let stops = strategy.stops() || self.seconds.is_some() || strategy == Strategy::Exhaustive;
        let most = self.budgets.last().copied().or((!stops).then_some(BUDGETS[BUDGETS.len() - 1]));
        Budget { evaluations: most, seconds: self.seconds, ..Budget::NONE }
    }

    /// Where the best is looked at.
    fn looked_at(&self) -> &[u64] {
        if self.budgets.is_empty() { &BUDGETS } else { &self.budgets }
    }
}

pub(crate) fn run(args: &SearchArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let asked = Asked::new(args)?;
    let _picture = expect_writable("plot", &args.plot)?;
    if let Some(kernel) = &args.kernel {
        return live::run(args, &asked, (kernel, wiring), seed, output);
    }
    let recording = Recording::read(args.device.device.as_deref())?;
    let mut setup = Setup { tolerance: asked.tolerance, ..Setup::new(recording.space()) };
    if !args.prior.is_empty() {
        setup.tail = Arc::new(prior(&args.prior, args.epsilon, seed)?);
    }
    asked.warn_of(&setup.tail);
    if !args.warm_start.is_empty() {
        setup.warm = Arc::new(warm(&args.warm_start, recording.space())?);
    }
    let mut tried = Vec::new();
    for &(_, strategy) in &asked.strategies {
        let start = Instant::now();
        let how = (&asked.limit(strategy), args.batch as usize);
        let traces = repeat(seed, args.repeats.into(), |seed| replayed(&recording, strategy, &setup, how, seed));
        let traces = traces.into_iter().collect::<Result<Vec<Trace>, Failure>>()?;
        tried.push((traces, start.elapsed().as_secs_f64()));
    }
    let rows = rows(&asked, &recording.about, &tried, args)?;
    let above = above::above(&asked, recording.about.optimum_s, &tried);
    let grid = args.grid.then(|| grid::grid(&recording, asked.strategies[0].1, &setup, args.repeats, seed));
    let tail = (!args.prior.is_empty()).then(|| (*setup.tail).clone());
    let answer = Answer { grid: grid.transpose()?, tail, ..Answer::new(&rows, above) };
    output.answer(&answer, || text(&rows, &answer))
}

/// One search of a recording.
fn replayed(
    recording: &Recording,
    strategy: Strategy,
    setup: &Setup<'_>,
    (budget, batch): (&Budget, usize),
    seed: u64,
) -> Result<Trace, Failure> {
    let refused = |e: &dyn std::fmt::Display| Failure::new(Kind::Input, "strategy", format!("{strategy}: {e}"));
    let mut search = strategy.make(setup, seed).map_err(|e| refused(&e))?;
    let mut recorded = Recorded::new(batch, |p: &Point| recording.look_up(p));
    drive(&mut *search, strategy.name(), &setup.objective, budget, &mut recorded).map_err(|e| refused(&e))
}

/// A row a strategy, and the picture of all where it is asked for.
fn rows(asked: &Asked, about: &About, tried: &[(Vec<Trace>, f64)], args: &SearchArgs) -> Result<Vec<Row>, Failure> {
    let named = || asked.strategies.iter().map(|(name, _)| name).zip(tried);
    if let Some(path) = &args.plot {
        let sample =
            |c: Convergence| charts::Sample { x: c.evaluations as f64, mean: c.mean, low: c.low, high: c.high };
        let curve = |(name, (traces, _)): (&String, &(Vec<Trace>, f64))| charts::Curve {
            name: name.clone(),
            samples: convergence(traces, about.optimum_s).into_iter().map(sample).collect(),
        };
        let title = format!("{}: {}", about.device, counted(about.points, "point"));
        let curves: Vec<charts::Curve> = named().map(curve).collect();
        let drawn = charts::curves(&title, ("evaluations", "fraction of the optimum"), &curves);
        let svg = drawn.map_err(|e| Failure::new(Kind::Other, "plot", e))?;
        write(path, &svg)?;
    }
    let row = |(name, (traces, took)): (&String, &(Vec<Trace>, f64))| row(name, about, asked, traces, *took, args.each);
    Ok(named().map(row).collect())
}

impl Answer {
    fn new(rows: &[Row], above: Vec<Above>) -> Self {
        let compared = if rows.len() > 1 { rows.to_vec() } else { Vec::new() };
        Self { first: rows[0].clone(), compared, above, grid: None, tail: None, knowledge: None, config: None }
    }
}

fn strategy(name: &str, args: &SearchArgs) -> Result<(String, Strategy), Failure> {
    if name == "auto" && (args.kernel.is_some() || !args.budget.is_empty()) {
        let strategy = if args.kernel.is_some() { Strategy::Refine } else { Strategy::Guided };
        return Ok((name.to_owned(), strategy));
    }
    let strategy = name.parse::<Strategy>().map_err(|e| Failure::new(Kind::Usage, "strategy", e))?;
    Ok((name.to_owned(), strategy))
}

/// How near a cost comes to the optimum; 0 before anything worked.
fn fraction(optimum_s: f64, cost: Option<f64>) -> f64 {
    cost.map_or(0.0, |c| optimum_s / c)
}

fn row(name: &str, about: &About, asked: &Asked, traces: &[Trace], took: f64, each: bool) -> Row {
    let (budgets, tolerance) = (asked.looked_at(), asked.tolerance);
    let fraction = |cost: Option<f64>| fraction(about.optimum_s, cost);
    let mean = |of: &dyn Fn(&Trace) -> f64| traces.iter().map(of).sum::<f64>() / traces.len() as f64;
    let missed = |t: &Trace| f64::from(u8::from(fraction(t.best()) < 1.0 - tolerance.epsilon));
    let mut ends: BTreeMap<StoppedBy, usize> = BTreeMap::new();
    traces.iter().for_each(|t| *ends.entry(t.stopped_by).or_default() += 1);
    let stopped_by = ends.iter().max_by_key(|(_, n)| **n).map_or("", |(s, _)| s.name());
    let bounds: Vec<f64> = traces.iter().filter_map(|t| t.bound).collect();
    let evaluations: u64 = traces.iter().map(|t| t.evaluations).sum();
    Row {
        strategy: name.to_owned(),
        device: about.device.clone(),
        points: about.points,
        optimum_s: about.optimum_s,
        budgets: budgets.to_vec(),
        fraction_of_optimum: budgets.iter().map(|b| mean(&|t| fraction(t.best_after(*b)))).collect(),
        stopped_at_fraction: mean(&|t| t.evaluations as f64) / about.points as f64,
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

fn text(rows: &[Row], answer: &Answer) -> String {
    let first = &rows[0];
    let mut out = format!(
        "{}: {}, optimum {}\n\nfraction of the optimum after evaluations\n",
        if first.device.is_empty() { "the recording" } else { &first.device },
        counted(first.points, "point"),
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
    out.push_str(&above::text(&first.strategy, &answer.above));
    if let Some(cells) = &answer.grid {
        out.push('\n');
        out.push_str(&grid::text(cells));
    }
    out
}
