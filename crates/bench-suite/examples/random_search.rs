//! What `plan --top 20` finds beside a long random search, on inputs that the stored profiles were not trained on:
//! `cargo run --release -p tilewright-bench-suite --example random_search -- COMPUTATION [INPUTS] [SAMPLES] [THREADS] [SEED] [WORDS...]`
//!
//! After `tilewright tune COMPUTATION --threads THREADS`, for gemm, conv and described kernels (`FILE.json`) on the cpu device. Every kernel that takes the input is planned
//! for, and the winners are timed against each other: the fastest is the choice. Then SAMPLES legal configurations of every kernel are
//! drawn uniformly and timed as a plan times its candidates; the best of them and the choice are timed in interleaved rounds.

mod random_best;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use random_best::outcome::outcome;
use random_best::random_best;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilewright::{DeviceName, Tuner};
use tilewright_core::computation::InputLimits;
use tilewright_core::device::Device;
use tilewright_core::objective::Objective;
use tilewright_core::problem::{AnyKernel, Erased, Measure, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_cpu::{CpuConv, CpuDepthwise, CpuGemm, CpuWinograd};
use tilewright_perfmodel_mlp::Mlp;
use tilewright_runtime::Live;
use tilewright_runtime::paired::{PairedSettings, compare};
use tilewright_runtime::plan::{PlanSettings, Planner};
use tilewright_runtime::store::{Home, ProfileStore};
use tilewright_sampler::Exact;

/// What `plan` looks around for by measuring.
const REFINE: Duration = Duration::from_secs(6);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default| arguments.get(index).map_or(default, String::as_str);
    let kernels = kernels(argument(0, "gemm"))?;
    let (inputs, samples): (usize, usize) = (argument(1, "10").parse()?, argument(2, "5000").parse()?);
    let (threads, seed): (u16, u64) = (argument(3, "1").parse()?, argument(4, "1").parse()?);
    let fixed = Config::parse(&arguments.get(5..).unwrap_or(&[]).join(","))?;

    let store = ProfileStore::new(Home::from_environment()?.profiles());
    let mut bench = Bench { measure: Live::new(DeviceName::Cpu.open(Some(threads))?), store, samples, seed };
    // Far from the seeds that campaigns draw their inputs with.
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x72a4_d05e_a7c4);
    let limits = InputLimits { max_flops: 2e9, max_bytes: 128e6 };
    let mut fractions = Vec::new();
    for _ in 0..inputs {
        let words = kernels[0].draw(&fixed, &limits, &mut || rng.random())?;
        let fraction = bench.fraction(&kernels, &words)?;
        println!("{fraction:.3} of the best of {samples} random configurations for {words}");
        fractions.push(fraction);
    }
    let mean = fractions.iter().sum::<f64>() / fractions.len() as f64;
    let worst = fractions.iter().copied().fold(f64::INFINITY, f64::min);
    println!("mean {mean:.3}, worst {worst:.3}");
    Ok(())
}

fn kernels(computation: &str) -> Result<Vec<Arc<dyn AnyKernel>>, Box<dyn Error>> {
    match computation {
        "gemm" => Ok(vec![Arc::new(Erased::new(CpuGemm::new()))]),
        "conv" => Ok(vec![
            Arc::new(Erased::new(CpuConv::new())),
            Arc::new(Erased::new(CpuWinograd::new())),
            Arc::new(Erased::new(CpuDepthwise::new())),
        ]),
        file if file.ends_with(".json") => Ok(vec![Tuner::on("cpu")?.described(file)?.erased()]),
        other => Err(format!("{other}: gemm, conv or FILE.json is expected").into()),
    }
}

/// A configuration of a kernel.
type Candidate<'a> = (&'a dyn Problem, Point);

struct Bench {
    measure: Live<Box<dyn Device>>,
    store: ProfileStore,
    samples: usize,
    seed: u64,
}

impl Bench {
    /// The speed of the choice for an input by that of the best that random search finds.
    fn fraction(&mut self, kernels: &[Arc<dyn AnyKernel>], words: &Config) -> Result<f64, Box<dyn Error>> {
        let problem = |kernel: &dyn AnyKernel| kernel.problem(self.measure.spec(), words).ok();
        let problems: Vec<_> = kernels.iter().filter_map(|kernel| Some((&**kernel, problem(&**kernel)?))).collect();
        let (mut planned, mut found) = (Vec::new(), Vec::new());
        for (kernel, problem) in &problems {
            planned.push((&**problem, self.plan(*kernel, &**problem, words)?));
        }
        for (_, problem) in &problems {
            found.extend(self.random(&**problem)?.into_iter().map(|point| (&**problem, point)));
        }
        let (choice, _) = self.fastest(&planned)?;
        found.insert(0, planned.swap_remove(choice));
        let (_, times) = self.fastest(&found)?;
        Ok(times[1..].iter().copied().fold(f64::INFINITY, f64::min) / times[0])
    }

    /// What `plan --top 20` decides.
    fn plan(&mut self, kernel: &dyn AnyKernel, problem: &dyn Problem, words: &Config) -> Result<Point, Box<dyn Error>> {
        let device = self.measure.spec().clone();
        let best = self.store.find(kernel, &device, words)?.best;
        let (path, profile) = best.ok_or("no profile for this many threads: run `tilewright tune` with them first")?;
        profile.expect(&path, &kernel.id(), &device, &kernel.schema())?;
        let model = Mlp::from_value(profile.model)?;
        let settings = PlanSettings { refine: REFINE, seed: self.seed, ..PlanSettings::default() };
        let mut planner = Planner {
            kernel,
            device: &device,
            measure: Some(&mut self.measure),
            predictor: Some(&model),
            sampler: &mut Exact::new(),
            cache: None,
            settings,
        };
        let planned = planner.plan_problem(problem)?;
        eprintln!("{}: {:.1} s, {} timed: {}", kernel.id(), planned.stats.seconds, planned.stats.timed, planned.config);
        Ok(planned.point)
    }

    /// The best few of a random search, best first.
    fn random(&mut self, problem: &dyn Problem) -> Result<Vec<Point>, Box<dyn Error>> {
        let best = random_best(problem, &mut self.measure, self.samples, self.seed)?;
        if let Some((time, point)) = best.first() {
            eprintln!("random search: {:.3} ms, {}", time * 1e3, problem.space().config(point));
        }
        Ok(best.into_iter().map(|b| b.1).collect())
    }

    /// The fastest of some, and the time of each: infinite for those that were dropped as slow.
    fn fastest(&mut self, all: &[Candidate<'_>]) -> Result<(usize, Vec<f64>), Box<dyn Error>> {
        let settings = PairedSettings {
            rounds: 11,
            tie_band: 0.0,
            tie_most: 0.0,
            most_rounds: 11,
            drop_beyond: 0.5,
            max_time: Duration::from_secs(20),
        };
        let policy = PlanSettings::default().timing;
        let (measure, clock) = (&mut self.measure, Instant::now());
        let found = compare(all.len(), &Objective::default(), &settings, &clock, &mut |i| {
            outcome(measure, all[i].0, &all[i].1, &policy)
        })?;
        let mut times = vec![f64::INFINITY; all.len()];
        found.contenders.iter().for_each(|c| times[c.index] = c.cost);
        let fastest = (0..all.len()).min_by(|a, b| times[*a].total_cmp(&times[*b])).unwrap_or(0);
        Ok((fastest, times))
    }
}
