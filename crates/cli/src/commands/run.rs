//! `tilewright run`: once against the reference, timed beside the baselines.

use super::contest::Arena;
use crate::args::{PlanArgs, RunArgs};
use crate::device::Opened;
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, seconds};
use crate::wiring::{Wiring, home};
use crate::words;
use serde::Serialize;
use tilewright_bench_suite::tasks::Task;
use tilewright_core::computation::Computation;
use tilewright_core::measurement::CachePolicy;
use tilewright_core::problem::{Measure, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_ops::gemm::Gemm;
use tilewright_runtime::RuntimeError;
use tilewright_runtime::plan_cache::{Lookup, PlanCache};
use tilewright_runtime::verify::{Verifier, VerifySettings};

#[derive(Serialize)]
struct BaselineRow {
    name: String,
    time_s: f64,
    /// Its time / our time: above 1, we are faster.
    ratio: f64,
}

#[derive(Serialize)]
struct Answer {
    kernel: String,
    input: Config,
    config: Config,
    time_s: f64,
    gflops: f64,
    max_rel_error: f64,
    cache_policy: &'static str,
    baselines: Vec<BaselineRow>,
}

pub(crate) fn run(args: &RunArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let kernel = wiring.kernel(&args.kernel, &args.device)?;
    let mut device = wiring.measure(&args.device)?;
    if kernel.computation() != Gemm.id() {
        return super::variants::run(args, wiring, device, seed, output);
    }
    let arena = Arena::of(&device, &args.baselines, seed)?;
    let words = words::parse(&args.input)?;
    let problem = wiring.problem(kernel, device.spec(), &words)?;
    let point = point(args, wiring, &mut device, &*problem, seed)?;
    problem.space().check(&point).map_err(|e| Failure::new(Kind::Input, "config", e))?;

    let mut verifier = Verifier::new(VerifySettings { seed, ..VerifySettings::default() });
    let verification =
        verifier.check(device.device(), &*problem, &point).map_err(|e| Failure::new(Kind::Device, "config", e))?;
    if let Some(complaint) = verification.complaint() {
        return Err(Failure::new(Kind::Wrong, "result", complaint));
    }
    let input = Gemm.parse(&words).map_err(|e| Failure::new(Kind::Input, &e.field, &e.message))?;
    let task = Task { name: "run".to_owned(), input };
    let row = arena.contest(&mut device, &*problem, &point, &task)?;
    let time_s = row.ours_s.ok_or_else(|| {
        let why = row.wrong.first().map_or("it was not timed", |w| w.reason.as_str());
        Failure::new(Kind::Wrong, "result", why)
    })?;
    let answer = Answer {
        kernel: problem.kernel().to_string(),
        input: problem.input(),
        config: problem.space().config(&point),
        time_s,
        gflops: problem.work().flops / time_s / 1e9,
        max_rel_error: verification.max_rel_error(),
        cache_policy: CachePolicy::Warm.name(),
        baselines: row
            .baselines
            .iter()
            .map(|b| BaselineRow { name: b.name.clone(), time_s: b.time_s, ratio: b.time_s / time_s })
            .collect(),
    };
    output.answer(&answer, || text(&answer))
}

/// The configuration asked for, over the best known one.
fn point(
    args: &RunArgs,
    wiring: &Wiring,
    device: &mut Opened,
    problem: &dyn Problem,
    seed: u64,
) -> Result<Point, Failure> {
    let best = best_known(args, wiring, device, problem, seed)?;
    let Some(text) = &args.config else { return Ok(best) };
    let bad = |e: &dyn std::error::Error| Failure::new(Kind::Input, "config", e.to_string());
    let config = Config::parse(text).map_err(|e| bad(&e))?;
    config.to_point(problem.space().params(), Some(&best)).map_err(|e| bad(&e))
}

/// From the plan cache; else by the model where there is a profile or the device's weights; else the kernel's own default.
fn best_known(
    args: &RunArgs,
    wiring: &Wiring,
    device: &mut Opened,
    problem: &dyn Problem,
    seed: u64,
) -> Result<Point, Failure> {
    let cache = PlanCache::new(home()?.plans());
    if let Lookup::Hit(_, point) = cache.get(problem, &Default::default()).map_err(RuntimeError::from)? {
        return Ok(point);
    }
    let kernel = wiring.kernel(&args.kernel, &args.device)?;
    let known = || wiring.adviser((None, None), kernel, problem.device(), &problem.input());
    if args.config.is_none() && known()?.predictor.is_some() {
        let args = PlanArgs::of(args.kernel.clone(), args.input.clone(), args.device.clone());
        return super::plan::decide(&args, wiring, device, seed).map(|(_, planned)| planned.point);
    }
    problem.default_point().ok_or_else(|| Failure::nothing_legal(problem.space()))
}

fn text(a: &Answer) -> String {
    let mut table = vec![["", "time", "ratio"].map(String::from).to_vec()];
    table.push(vec!["tilewright".into(), seconds(a.time_s), String::new()]);
    table.extend(a.baselines.iter().map(|b| vec![b.name.clone(), seconds(b.time_s), format!("{:.2}", b.ratio)]));
    format!(
        "{} for {}\n{}\n{:.1} GFLOP/s; right, largest relative error {:.1e}; caches {}\n\n{}",
        a.kernel,
        a.input,
        a.config,
        a.gflops,
        a.max_rel_error,
        a.cache_policy,
        aligned(&table)
    )
}
