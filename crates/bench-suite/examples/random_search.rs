//! What `plan --top 20` finds beside a long random search, on inputs that the stored profile was not trained on:
//! `cargo run --release -p tilewright-bench-suite --example random_search -- [INPUTS] [SAMPLES] [THREADS] [SEED] [WORDS...]`
//!
//! After `tilewright tune gemm --threads THREADS`. Legal configurations are drawn uniformly and timed as a plan times its
//! candidates; the best of them and the plan's choice are then timed against each other in interleaved rounds.

mod random_best;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use random_best::{outcome, random_best};
use std::error::Error;
use std::time::{Duration, Instant};
use tilewright_core::computation::{Computation, InputLimits};
use tilewright_core::objective::Objective;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Erased, Measure, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_cpu::{CpuDevice, CpuGemm};
use tilewright_ops::gemm::Gemm;
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
    let (inputs, samples): (usize, usize) = (argument(0, "10").parse()?, argument(1, "5000").parse()?);
    let (threads, seed): (usize, u64) = (argument(2, "1").parse()?, argument(3, "1").parse()?);
    let fixed = Config::parse(&arguments.get(4..).unwrap_or(&[]).join(","))?;

    let kernel = Erased::new(CpuGemm::new());
    let mut bench = Bench { measure: Live::new(CpuDevice::new(threads)?), samples, seed };
    let store = ProfileStore::new(Home::from_environment()?.profiles());
    // Far from the seeds that campaigns draw their inputs with.
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x72a4_d05e_a7c4);
    let limits = InputLimits { max_flops: 2e9, max_bytes: 128e6 };
    let mut fractions = Vec::new();
    for _ in 0..inputs {
        let words = Gemm.fields(&Gemm.draw(&fixed, &limits, &mut || rng.random())?);
        let problem = kernel.problem(bench.measure.spec(), &words)?;
        let (path, profile) = store
            .find(&kernel.id(), bench.measure.spec(), &words)?
            .best
            .ok_or("no profile for this many threads: run `tilewright tune gemm --threads N` first")?;
        profile.expect(&path, &kernel.id(), bench.measure.spec(), &kernel.schema())?;
        let model = Mlp::from_value(profile.model)?;
        let planned = bench.plan(&kernel, &*problem, &model)?;
        let found = bench.random(&*problem)?;
        let fraction = bench.meet(&*problem, planned, found)?;
        println!("{fraction:.3} of the best of {samples} random configurations for {words}");
        fractions.push(fraction);
    }
    let mean = fractions.iter().sum::<f64>() / fractions.len() as f64;
    let worst = fractions.iter().copied().fold(f64::INFINITY, f64::min);
    println!("mean {mean:.3}, worst {worst:.3}");
    Ok(())
}

struct Bench {
    measure: Live<CpuDevice>,
    samples: usize,
    seed: u64,
}

impl Bench {
    /// What `plan --top 20` decides.
    fn plan(
        &mut self,
        kernel: &dyn AnyKernel,
        problem: &dyn Problem,
        model: &dyn Predictor,
    ) -> Result<Point, Box<dyn Error>> {
        let device = self.measure.spec().clone();
        let settings = PlanSettings { refine: REFINE, seed: self.seed, ..PlanSettings::default() };
        let mut planner = Planner {
            kernel,
            device: &device,
            measure: Some(&mut self.measure),
            predictor: Some(model),
            sampler: &mut Exact::new(),
            cache: None,
            settings,
        };
        let planned = planner.plan_problem(problem)?;
        eprintln!("{:.1} s, {} timed: {}", planned.stats.seconds, planned.stats.timed, planned.config);
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

    /// The least time of `found` by that of `planned`.
    fn meet(&mut self, problem: &dyn Problem, planned: Point, found: Vec<Point>) -> Result<f64, Box<dyn Error>> {
        let all: Vec<Point> = std::iter::once(planned).chain(found).collect();
        let settings =
            PairedSettings { rounds: 11, tie_band: 0.0, drop_beyond: 0.5, max_time: Duration::from_secs(20) };
        let policy = PlanSettings::default().timing;
        let measure = &mut self.measure;
        let clock = Instant::now();
        let contenders = compare(all.len(), &Objective::default(), &settings, &clock, &mut |i| {
            outcome(measure, problem, &all[i], &policy)
        })?;
        let ours = contenders.iter().find(|c| c.index == 0).map_or(f64::NAN, |c| c.cost);
        let best = contenders.iter().filter(|c| c.index > 0).map(|c| c.cost).fold(f64::INFINITY, f64::min);
        Ok(best / ours)
    }
}
