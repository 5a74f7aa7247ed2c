//! GEMM configurations ranked by the linear model alone, no training data: its best twenty timed again, beside a long random search.
//!
//! `cargo run --release -p tilewright-bench-suite --example cold_start -- MODEL [SAMPLES] [THREADS] [SEED] [INPUT...]`, after
//! `tilewright model fit --model linear --device cpu --threads THREADS --out MODEL`.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tilewright_bench_suite::linear::{Columns, HostTerms};
use tilewright_core::computation::Computation;
use tilewright_core::measurement::Timing;
use tilewright_core::problem::{Bound, Measure, MeasureError, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_cpu::{CpuDevice, CpuGemm};
use tilewright_loops::host::Caches;
use tilewright_ops::gemm::Gemm;
use tilewright_perfmodel_linear::LinearModel;
use tilewright_runtime::HostMeasure;
use tilewright_runtime::plan::PlanSettings;
use tilewright_sampler::{Exact, Sampler};

const INPUTS: [&str; 5] = [
    "m=768,n=768,k=768,layout=nn",
    "m=2000,n=24,k=2000,layout=nn",
    "m=48,n=48,k=40000,layout=nt",
    "m=1800,n=1800,k=40,layout=nt",
    "m=251,n=509,k=1021,layout=tt",
];

/// Points that the model ranks.
const RANKED: usize = 20_000;
const TOP: usize = 20;
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
    let Some(Columns::Host { caches, .. }) = Columns::host(&spec, HostTerms { footprint: true, chains: true }) else {
        return Err("not a host".into());
    };
    let mut measure = HostMeasure::new(device);
    let mut fractions = Vec::new();
    for text in if given.is_empty() { &INPUTS[..] } else { &given[..] } {
        let input = Gemm.parse(&Config::parse(text)?)?;
        let problem = Bound::new(Arc::new(CpuGemm::new()), spec.clone(), input)?;
        let top = ranked(&problem, &model, &caches, seed)?;
        let found = random(&problem, &mut measure, samples, seed)?;
        let fraction = meet(&problem, &mut measure, &top, &found)?;
        println!("{fraction:.3} of the best of {samples} random configurations for {text}");
        fractions.push(fraction);
    }
    let geomean = (fractions.iter().map(|f: &f64| f.ln()).sum::<f64>() / fractions.len() as f64).exp();
    println!("geometric mean {geomean:.3}");
    Ok(())
}

/// The model's best points.
fn ranked(
    problem: &Bound<CpuGemm>,
    model: &LinearModel,
    caches: &Caches,
    seed: u64,
) -> Result<Vec<Point>, Box<dyn Error>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
    let mut sampler = Exact::new();
    let mut scored = Vec::new();
    for _ in 0..RANKED {
        let point = sampler.draw(problem.space(), &mut rng)?.point;
        let operations = problem.plan(&point)?.operations(caches);
        let count = |name: &str| operations.get(name).copied().unwrap_or(0.0);
        let counts: Vec<f64> = model.weights.iter().map(|w| count(&w.property.name)).collect();
        scored.push((model.predict(&counts, 1.0).seconds, point));
    }
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    scored.dedup_by(|a, b| a.1 == b.1);
    Ok(scored.into_iter().take(TOP).map(|s| s.1).collect())
}

/// The best eight of a random search.
fn random(
    problem: &dyn Problem,
    measure: &mut HostMeasure<CpuDevice>,
    samples: usize,
    seed: u64,
) -> Result<Vec<Point>, Box<dyn Error>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut sampler = Exact::new();
    let mut best: Vec<(f64, Point)> = Vec::new();
    for _ in 0..samples {
        let point = sampler.draw(problem.space(), &mut rng)?.point;
        let least = best.first().map(|b| Duration::from_secs_f64(b.0));
        let settings = PlanSettings::default();
        let policy = Timing {
            cut_off: least.map(|t| t.mul_f64(settings.cut_off)),
            rough_beyond: least.map(|t| t.mul_f64(settings.rough)),
            ..settings.timing
        };
        if let Some(time) = timed(problem, measure, &point, &policy)? {
            best.push((time, point));
            best.sort_by(|a, b| a.0.total_cmp(&b.0));
            best.truncate(8);
        }
    }
    Ok(best.into_iter().map(|b| b.1).collect())
}

/// Least time of `found` over least time of `top`, all in turn.
fn meet(
    problem: &dyn Problem,
    measure: &mut HostMeasure<CpuDevice>,
    top: &[Point],
    found: &[Point],
) -> Result<f64, Box<dyn Error>> {
    let all: Vec<&Point> = top.iter().chain(found).collect();
    let mut least = vec![f64::INFINITY; all.len()];
    for _ in 0..ROUNDS {
        for (point, least) in all.iter().zip(&mut least) {
            if let Some(time) = timed(problem, measure, point, &PlanSettings::default().timing)? {
                *least = least.min(time);
            }
        }
    }
    let of = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let (ours, theirs) = least.split_at(top.len());
    Ok(of(theirs) / of(ours))
}

fn timed(
    problem: &dyn Problem,
    measure: &mut HostMeasure<CpuDevice>,
    point: &Point,
    policy: &Timing,
) -> Result<Option<f64>, Box<dyn Error>> {
    match measure.measure(problem, point, policy) {
        Ok(measurement) => Ok(Some(measurement.time_s)),
        Err(MeasureError::Failed(_)) => Ok(None),
        Err(MeasureError::Device(error)) => Err(error.into()),
    }
}
