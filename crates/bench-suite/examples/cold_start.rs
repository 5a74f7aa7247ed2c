//! GEMM configurations ranked by the linear model alone, no training data: its best twenty timed again, beside a long random search.
//!
//! `cargo run --release -p tilewright-bench-suite --example cold_start -- MODEL [SAMPLES] [THREADS] [SEED] [INPUT...]`, after
//! `tilewright model fit --model linear --device cpu --threads THREADS --out MODEL`.

mod random_best;

use random_best::{outcome, random_best};
use rayon::prelude::*;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;
use tilewright_bench_suite::linear::host_hint;
use tilewright_core::computation::Computation;
use tilewright_core::device::DeviceSpec;
use tilewright_core::hint::{HintAlone, Hinted};
use tilewright_core::kernel::Kernel;
use tilewright_core::predictor::{Predictor, Scorer};
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_cpu::{CountedHint, CpuDevice, CpuGemm, GemmConfig};
use tilewright_ops::gemm::Gemm;
use tilewright_perfmodel_linear::{LinearModel, Share};
use tilewright_runtime::HostMeasure;
use tilewright_runtime::plan::{PlanSettings, spread};
use tilewright_sampler::Exact;
use tilewright_search::{Sampling, sampled};

const INPUTS: [&str; 5] = [
    "m=768,n=768,k=768,layout=nn",
    "m=2000,n=24,k=2000,layout=nn",
    "m=48,n=48,k=40000,layout=nt",
    "m=1800,n=1800,k=40,layout=nt",
    "m=251,n=509,k=1021,layout=tt",
];

const TOP: usize = 20;
/// Of so many ranked for each of those, as a plan takes them.
const RANKED_PER_TIMED: usize = 100;
/// Rounds of the closing comparison.
const ROUNDS: usize = 15;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default| arguments.get(index).map_or(default, String::as_str);
    let model = LinearModel::from_value(serde_json::from_slice(&std::fs::read(argument(0, "linear.json"))?)?)?;
    let (samples, threads): (usize, usize) = (argument(1, "5000").parse()?, argument(2, "1").parse()?);
    let seed: u64 = argument(3, "1").parse()?;
    let given: Vec<&str> = arguments.iter().skip(4).map(String::as_str).collect();
    let device = CpuDevice::new(threads)?;
    let spec = device.spec().clone();
    model.expect_device(&spec.fingerprint())?;
    let kernel = Arc::new(hinted(&model, &spec)?);
    let mut measure = HostMeasure::new(device);
    let mut fractions = Vec::new();
    for text in if given.is_empty() { &INPUTS[..] } else { &given[..] } {
        let input = Gemm.parse(&Config::parse(text)?)?;
        let problem = Bound::new(kernel.clone(), spec.clone(), input)?;
        let begun = Instant::now();
        let (top, looked_at) = ranked(&problem, seed)?;
        println!("{looked_at} configurations ranked in {:.1} s", begun.elapsed().as_secs_f64());
        let found = random_best(&problem, &mut measure, samples, seed)?;
        let found: Vec<Point> = found.into_iter().map(|f| f.1).collect();
        let (fraction, times) = meet(&problem, &mut measure, &top, &found)?;
        println!("{fraction:.3} of the best of {samples} random configurations for {text}");
        if std::env::var_os("DETAILS").is_some() {
            details(&problem, &top, &found, &times)?;
            top.iter().take(1).chain(found.iter().take(2)).for_each(|point| shares(&problem, &model, point));
        }
        fractions.push(fraction);
    }
    let geomean = (fractions.iter().map(|f: &f64| f.ln()).sum::<f64>() / fractions.len() as f64).exp();
    println!("geometric mean {geomean:.3}");
    Ok(())
}

/// The kernel with the linear model's word as a feature.
fn hinted(
    model: &LinearModel,
    spec: &DeviceSpec,
) -> Result<impl Kernel<Of = Gemm, Config = GemmConfig> + use<>, Box<dyn Error>> {
    let (caches, seconds) = host_hint(model, spec).ok_or("not a host")?;
    Ok(Hinted::new(CpuGemm::new(), CountedHint { caches, seconds }))
}

/// The model's best points as a plan would time them, and how many it looked at.
fn ranked(problem: &dyn Problem, seed: u64) -> Result<(Vec<Point>, u64), Box<dyn Error>> {
    let alone = HintAlone::new(problem.schema().clone()).ok_or("no features")?;
    let scorer = alone.bind(problem)?;
    let (mut sampler, how) = (Exact::new(), Sampling::default());
    let found = sampled(problem, &*scorer, &mut sampler, TOP * RANKED_PER_TIMED, &how, seed ^ 0x5eed)?.ranked;
    Ok((spread(found.points, TOP).into_iter().map(|(point, _)| point).collect(), found.considered))
}

fn scored(problem: &dyn Problem, scorer: &dyn Scorer, points: &[Point]) -> Vec<(Point, f32)> {
    let score = |point: &Point| {
        let (mut row, mut out) = (Vec::new(), [0.0]);
        problem.config_features(point, &mut row);
        scorer.score(&row, &mut out);
        (point.clone(), out[0])
    };
    points.par_iter().map(score).collect()
}

/// What was expected and what was measured.
fn details(problem: &dyn Problem, top: &[Point], found: &[Point], times: &[f64]) -> Result<(), Box<dyn Error>> {
    let alone = HintAlone::new(problem.schema().clone()).ok_or("no features")?;
    let scorer = alone.bind(problem)?;
    let all: Vec<Point> = top.iter().chain(found).cloned().collect();
    for ((point, log), time) in scored(problem, &*scorer, &all).into_iter().zip(times) {
        println!("  {:.3e} expected, {time:.3e} measured: {}", log.exp(), problem.space().config(&point));
    }
    Ok(())
}

/// What the model takes packing and product of a point for.
fn shares(problem: &Bound<impl Kernel<Of = Gemm, Config = GemmConfig>>, model: &LinearModel, point: &Point) {
    let Some((caches, _)) = host_hint(model, problem.device()) else { return };
    let config = problem.kernel_ref().decode(point);
    for (what, found) in
        ["packing", "product"].iter().zip(CpuGemm::new().operations(problem.input_ref(), &config, &caches))
    {
        let counts: Vec<f64> =
            model.weights.iter().map(|w| found.get(w.property.name.as_str()).copied().unwrap_or(0.0)).collect();
        let part = |s: &Share| format!("{} {:.2e} ({:.2e})", s.property, s.seconds, s.count);
        println!("  {what}: {}", model.breakdown(&counts, 1.0).iter().map(part).collect::<Vec<_>>().join(", "));
    }
}

/// Least time of `found` over least time of `top`, all in turn.
fn meet(
    problem: &dyn Problem,
    measure: &mut HostMeasure<CpuDevice>,
    top: &[Point],
    found: &[Point],
) -> Result<(f64, Vec<f64>), Box<dyn Error>> {
    let all: Vec<&Point> = top.iter().chain(found).collect();
    let mut least = vec![f64::INFINITY; all.len()];
    for _ in 0..ROUNDS {
        for (point, least) in all.iter().zip(&mut least) {
            if let Ok(measurement) = outcome(measure, problem, point, &PlanSettings::default().timing)? {
                *least = least.min(measurement.time_s);
            }
        }
    }
    let of = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let (ours, theirs) = least.split_at(top.len());
    Ok((of(theirs) / of(ours), least))
}
