//! GEMM configurations ranked by the linear model alone, no training data: its best twenty timed again, beside a long random search.
//!
//! `cargo run --release -p tilewright-bench-suite --example cold_start -- MODEL [SAMPLES] [THREADS] [SEED] [INPUT...]`, after
//! `tilewright model fit --model linear --device cpu --threads THREADS --out MODEL`.

mod random_best;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use random_best::outcome::outcome;
use random_best::random_best;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;
use tilewright_core::computation::Computation;
use tilewright_core::predictor::{Predictor, Scorer};
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_cpu::{CpuDevice, CpuGemm};
use tilewright_ops::gemm::Gemm;
use tilewright_perfmodel_linear::LinearModel;
use tilewright_runtime::Live;
use tilewright_runtime::plan::PlanSettings;
use tilewright_sampler::{Exact, Sampler};
use tilewright_search::{Neighbourhood, Reach};

const INPUTS: [&str; 5] = [
    "m=768,n=768,k=768,layout=nn",
    "m=2000,n=24,k=2000,layout=nn",
    "m=48,n=48,k=40000,layout=nt",
    "m=1800,n=1800,k=40,layout=nt",
    "m=251,n=509,k=1021,layout=tt",
];

/// Points that the model ranks at first.
const RANKED: usize = 20_000;
/// Rounds of going from the best of them to the best of their neighbours, by the model's word.
const CLIMBS: usize = 8;
const TOP: usize = 20;
/// What makes the shape of a kernel: register tiles, and which operands are packed.
const SHAPE: [&str; 7] = ["axis", "vec", "m_s", "n_s", "k_l", "pack_a", "pack_b"];
/// Logarithms of seconds that are so near to each other say nothing.
const ALIKE: f32 = 0.005;
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
    let kernel = Arc::new(CpuGemm::new());
    let mut measure = Live::new(device);
    let mut fractions = Vec::new();
    for text in if given.is_empty() { &INPUTS[..] } else { &given[..] } {
        let input = Gemm.parse(&Config::parse(text)?)?;
        let problem = Bound::new(kernel.clone(), spec.clone(), input)?;
        let begun = Instant::now();
        let (top, looked_at) = ranked(&problem, &model, seed)?;
        println!("{looked_at} configurations ranked in {:.1} s", begun.elapsed().as_secs_f64());
        let found = random_best(&problem, &mut measure, samples, seed)?;
        let found: Vec<Point> = found.into_iter().map(|f| f.1).collect();
        let (fraction, times) = meet(&problem, &mut measure, &top, &found)?;
        println!("{fraction:.3} of the best of {samples} random configurations for {text}");
        if std::env::var_os("DETAILS").is_some() {
            details(&problem, &model, &top, &found, &times)?;
        }
        fractions.push(fraction);
    }
    let geomean = (fractions.iter().map(|f: &f64| f.ln()).sum::<f64>() / fractions.len() as f64).exp();
    println!("geometric mean {geomean:.3}");
    Ok(())
}

/// The model's best points, and how many it looked at.
fn ranked(problem: &dyn Problem, model: &LinearModel, seed: u64) -> Result<(Vec<Point>, usize), Box<dyn Error>> {
    let scorer = model.bind(problem)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
    let mut sampler = Exact::new();
    let mut known: BTreeMap<Point, f32> = BTreeMap::new();
    let mut new = Vec::new();
    for _ in 0..RANKED {
        new.push(sampler.draw(problem.space(), &mut rng)?.point);
    }
    for _ in 0..=CLIMBS {
        new.retain(|p| !known.contains_key(p));
        known.extend(scored(&*scorer, &new));
        let best = best(problem, &known, seed);
        let around = Neighbourhood::of(problem.space());
        new = best.iter().flat_map(|p| around.within(p, Reach::Single)).collect();
    }
    Ok((best(problem, &known, seed), known.len()))
}

fn scored(scorer: &dyn Scorer, points: &[Point]) -> Vec<(Point, f32)> {
    points.par_iter().flat_map_iter(|point| [point.clone()].into_iter().zip(scorer.score_each([point]))).collect()
}

/// The best point of each shape: counts do not tell orders and stores apart, and twenty points that are alike to the model are one
/// try. Which of those that are alike is drawn.
fn best(problem: &dyn Problem, known: &BTreeMap<Point, f32>, seed: u64) -> Vec<Point> {
    let params = problem.space().params();
    let places: Vec<usize> = SHAPE.iter().filter_map(|name| params.iter().position(|p| p.name == *name)).collect();
    let mut all: Vec<(&Point, &f32)> = known.iter().collect();
    all.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    all.sort_by_key(|(_, log_seconds)| (*log_seconds / ALIKE).round() as i64);
    let mut shapes: BTreeSet<Vec<u16>> = BTreeSet::new();
    let mut is_new = |point: &Point| shapes.insert(places.iter().map(|at| point[*at]).collect());
    all.into_iter().map(|(point, _)| point).filter(|point| is_new(point)).take(TOP).cloned().collect()
}

/// What was expected and what was measured.
fn details(
    problem: &dyn Problem,
    model: &LinearModel,
    top: &[Point],
    found: &[Point],
    times: &[f64],
) -> Result<(), Box<dyn Error>> {
    let scorer = model.bind(problem)?;
    let all: Vec<Point> = top.iter().chain(found).cloned().collect();
    for ((point, log), time) in scored(&*scorer, &all).into_iter().zip(times) {
        println!("  {:.3e} expected, {time:.3e} measured: {}", log.exp(), problem.space().config(&point));
    }
    Ok(())
}

/// Least time of `found` over least time of `top`, all in turn.
fn meet(
    problem: &dyn Problem,
    measure: &mut Live<CpuDevice>,
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
