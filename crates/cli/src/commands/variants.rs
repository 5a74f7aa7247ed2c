//! `tilewright run` of a computation with several kernels: each against the reference, then all beside each other.

use crate::args::RunArgs;
use crate::device::{DeviceName, Named as _, Opened};
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, seconds};
use crate::wiring::{Wiring, home};
use crate::words;
use serde::Serialize;
use std::time::{Duration, Instant};
use tilewright_core::device::Device;
use tilewright_core::measurement::{CachePolicy, Timing};
use tilewright_core::objective::Objective;
use tilewright_core::problem::{Measure, MeasureError, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_runtime::RuntimeError;
use tilewright_runtime::paired::{PairedSettings, compare};
use tilewright_runtime::plan_cache::{Lookup, PlanCache};
use tilewright_runtime::verify::{Verifier, VerifyError, VerifySettings};

/// One kernel of the computation.
#[derive(Serialize)]
struct Row {
    name: String,
    config: Option<Config>,
    time_s: Option<f64>,
    /// Its time / the chosen one's.
    ratio: Option<f64>,
    /// Why it has no time: a rule, or no result on these data.
    reason: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    kernel: String,
    /// The fastest of the kernels.
    variant: String,
    input: Config,
    config: Config,
    time_s: f64,
    gflops: f64,
    bytes_per_s: f64,
    max_rel_error: f64,
    /// What the features of the input cost, in seconds.
    features_s: Option<f64>,
    cache_policy: &'static str,
    variants: Vec<Row>,
    /// No library computes it.
    baselines: [(); 0],
}

/// A kernel whose result is right.
struct Candidate {
    row: usize,
    problem: Box<dyn Problem>,
    point: Point,
    max_rel_error: f64,
}

pub(super) fn run(
    args: &RunArgs,
    wiring: &Wiring,
    mut device: Opened,
    seed: u64,
    output: Output,
) -> Result<(), Failure> {
    let fields = words::parse(&args.input)?;
    let spec = device.spec().clone();
    let mut verifier = Verifier::new(VerifySettings { seed, ..VerifySettings::default() });
    let (mut rows, mut candidates) = (Vec::new(), Vec::new());
    for kernel in wiring.variants(&args.kernel, DeviceName::of(&args.device)?.kind())? {
        let problem = wiring.problem(kernel, &spec, &fields)?;
        let name = problem.kernel().to_string();
        let mut row = Row { name, config: None, time_s: None, ratio: None, reason: None };
        match point(args, &*problem).and_then(|p| verified(device.device(), &mut verifier, &*problem, p)) {
            Ok((point, max_rel_error)) => {
                row.config = Some(problem.space().config(&point));
                candidates.push(Candidate { row: rows.len(), problem, point, max_rel_error });
            }
            Err(failure) if matches!(failure.kind, Kind::Nothing | Kind::Device | Kind::Usage) => {
                row.reason = Some(failure.message);
            }
            Err(failure) => return Err(failure),
        }
        rows.push(row);
    }
    let best = timed(&mut device, &candidates, &mut rows)?;
    let mut features = Vec::new();
    best.problem.input_features(&mut features);
    let (work, time_s) = (best.problem.work(), rows[best.row].time_s.unwrap_or(f64::NAN));
    let answer = Answer {
        kernel: best.problem.computation().to_string(),
        variant: best.problem.kernel().to_string(),
        input: best.problem.input(),
        config: best.problem.space().config(&best.point),
        time_s,
        gflops: work.flops / time_s / 1e9,
        bytes_per_s: work.bytes / time_s,
        max_rel_error: best.max_rel_error,
        features_s: best.problem.features_seconds(),
        cache_policy: CachePolicy::Warm.name(),
        variants: rows,
        baselines: [],
    };
    output.answer(&answer, || text(&answer))
}

/// The configuration asked for over the best known one of a kernel.
fn point(args: &RunArgs, problem: &dyn Problem) -> Result<Point, Failure> {
    let cache = PlanCache::new(home()?.plans());
    let best = match cache.get(problem, &Objective::default()).map_err(RuntimeError::from)? {
        Lookup::Hit(_, point) => Some(point),
        _ => problem.default_point(),
    };
    let best = best.ok_or_else(|| Failure::nothing_legal(problem.space()))?;
    let Some(text) = &args.config else { return Ok(best) };
    let bad = |e: tilewright_core::space::PointError| Failure::new(Kind::Usage, "config", e);
    let point = Config::parse(text).and_then(|c| c.to_point(problem.space().params(), Some(&best))).map_err(bad)?;
    problem.space().check(&point).map_err(|e| Failure::new(Kind::Nothing, "config", e))?;
    Ok(point)
}

/// Runs once against the reference; the largest relative error.
fn verified(
    device: &mut dyn Device,
    verifier: &mut Verifier,
    problem: &dyn Problem,
    point: Point,
) -> Result<(Point, f64), Failure> {
    let checked = verifier.check(device, problem, &point).map_err(|e| match e {
        VerifyError::Illegal(e) => Failure::new(Kind::Nothing, "config", e),
        VerifyError::Device(e) => Failure::new(Kind::Device, "device", e),
    })?;
    match checked.complaint() {
        Some(complaint) => Err(Failure::new(Kind::Wrong, "result", format!("{}: {complaint}", problem.kernel()))),
        None => Ok((point, checked.max_rel_error())),
    }
}

/// Times the candidates in interleaved rounds, writes their rows, and gives the best.
fn timed<'c>(device: &mut Opened, candidates: &'c [Candidate], rows: &mut [Row]) -> Result<&'c Candidate, Failure> {
    let timing = Timing { max_time: Duration::from_millis(20), ..Timing::default() };
    let mut one = |i: usize| match device.measure(&*candidates[i].problem, &candidates[i].point, &timing) {
        Ok(measurement) => Ok(Ok(measurement)),
        Err(MeasureError::Failed(failure)) => Ok(Err(failure)),
        Err(MeasureError::Device(error)) => Err(error),
    };
    let settings = PairedSettings { drop_beyond: 0.5, ..PairedSettings::default() };
    let found = compare(candidates.len(), &Objective::default(), &settings, &Instant::now(), &mut one)?;
    let best = found.first().filter(|c| c.outcome.is_ok());
    for contender in &found {
        let row = &mut rows[candidates[contender.index].row];
        match &contender.outcome {
            Ok(_) => row.time_s = Some(contender.settled),
            Err(failure) => row.reason = Some(failure.message.clone()),
        }
        row.ratio = best.and_then(|best| row.time_s.map(|s| s / best.settled));
    }
    let why = || rows.iter().filter_map(|r| r.reason.clone()).next_back().unwrap_or_default();
    best.map(|best| &candidates[best.index])
        .ok_or_else(|| Failure::new(Kind::Nothing, "variant", format!("no kernel has a result: {}", why())))
}

fn text(a: &Answer) -> String {
    let mut table = vec![["", "time", "ratio", "config"].map(String::from).to_vec()];
    for row in &a.variants {
        let time = row.time_s.map_or("-".to_owned(), seconds);
        let ratio = row.ratio.map_or(String::new(), |r| format!("{r:.2}"));
        let what = row.reason.clone().or(row.config.as_ref().map(Config::to_string)).unwrap_or_default();
        table.push(vec![row.name.clone(), time, ratio, what]);
    }
    format!(
        "{} for {}\n{}: {}, {:.2} GFLOP/s, {:.2} GB/s; right, largest relative error {:.1e}; caches {}\n\n{}",
        a.kernel,
        a.input,
        a.variant,
        seconds(a.time_s),
        a.gflops,
        a.bytes_per_s / 1e9,
        a.max_rel_error,
        a.cache_policy,
        aligned(&table)
    )
}
