//! How good the answer for an input never seen is, by the time that it may take:
//! `cargo run --release -p tilewright-bench-suite --example unseen -- [INPUTS] [SECONDS] [THREADS] [SEED] [WORDS...]`
//!
//! After `tilewright tune gemm --threads THREADS`. For each input that is drawn, the default, the model's first choice, the answer
//! without timing (one or the other), the answer with the model's twenty best timed, and the answer with six seconds of looking around
//! are timed beside the best of a search of so many seconds, in interleaved rounds. A fraction is the time of the fastest of them all
//! by that of an answer.

#[path = "random_best/outcome.rs"]
mod outcome;

use outcome::outcome;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilewright::DeviceName;
use tilewright::kernels::Kernels;
use tilewright_core::computation::InputLimits;
use tilewright_core::device::{Device, DeviceKind};
use tilewright_core::objective::Objective;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Measure, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_perfmodel_mlp::Mlp;
use tilewright_runtime::Live;
use tilewright_runtime::paired::{PairedSettings, compare};
use tilewright_runtime::plan::{PlanSettings, Planner};
use tilewright_runtime::store::{Home, ProfileStore};
use tilewright_sampler::Exact;

/// What is compared, and the time that each may take beside the ranking; the last is the search that stands for the best known.
const NAMES: [&str; 6] = ["default", "model", "no timing", "top 20", "6 s", "search"];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default| arguments.get(index).map_or(default, String::as_str);
    let (inputs, seconds): (usize, f64) = (argument(0, "20").parse()?, argument(1, "20").parse()?);
    let (threads, seed): (u16, u64) = (argument(2, "1").parse()?, argument(3, "1").parse()?);
    let fixed = Config::parse(&arguments.get(4..).unwrap_or(&[]).join(","))?;
    let kernels = Kernels::default();
    let kernels: Vec<Arc<dyn AnyKernel>> = kernels.variants("gemm", DeviceKind::Cpu)?.into_iter().cloned().collect();

    let store = ProfileStore::new(Home::from_environment()?.profiles());
    let search = Duration::from_secs_f64(seconds);
    let mut bench = Bench { measure: Live::new(DeviceName::Cpu.open(Some(threads))?), store, search, seed };
    // Far from the seeds that campaigns draw their inputs with.
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x72a4_d05e_a7c4);
    let limits = InputLimits { max_flops: 2e9, max_bytes: 128e6 };
    let mut all: [Vec<f64>; NAMES.len()] = Default::default();
    for _ in 0..inputs {
        let words = kernels[0].draw(&fixed, &limits, &mut || rng.random())?;
        let (fractions, best) = bench.fractions(&kernels, &words)?;
        let told: Vec<String> = NAMES.iter().zip(fractions).map(|(name, f)| format!("{name} {f:.3}")).collect();
        println!("{}: {words}\n    {best}", told.join(", "));
        all.iter_mut().zip(fractions).for_each(|(all, fraction)| all.push(fraction));
    }
    for (name, mut fractions) in NAMES.into_iter().zip(all) {
        fractions.sort_by(f64::total_cmp);
        let mean = fractions.iter().sum::<f64>() / fractions.len() as f64;
        let (worst, decile) = (fractions[0], fractions[fractions.len() / 10]);
        println!("{name}: mean {mean:.3}, worst decile {decile:.3}, worst {worst:.3}");
    }
    Ok(())
}

struct Bench {
    measure: Live<Box<dyn Device>>,
    store: ProfileStore,
    search: Duration,
    seed: u64,
}

/// A kernel that takes the input, and its problem.
type Candidate = (Arc<dyn AnyKernel>, Box<dyn Problem>);

/// A problem's place among those of an input, and a configuration of it.
type Answer = (usize, Point);

impl Bench {
    fn fractions(
        &mut self,
        kernels: &[Arc<dyn AnyKernel>],
        words: &Config,
    ) -> Result<([f64; 6], String), Box<dyn Error>> {
        let problem = |kernel: &Arc<dyn AnyKernel>| kernel.problem(self.measure.spec(), words).ok();
        let problems: Vec<_> = kernels.iter().filter_map(|k| Some((k.clone(), problem(k)?))).collect();
        let legal = |(_, problem): &(_, Box<dyn Problem>)| problem.default_point().is_some();
        let problems: Vec<_> = problems.into_iter().filter(legal).collect();
        let first = (0..problems.len()).rev().max_by(|a, b| problems[*a].1.suits().total_cmp(&problems[*b].1.suits()));
        let first = first.ok_or("no kernel takes the input")?;
        let default = problems[first].1.default_point().ok_or("no default")?;
        let mut answers = vec![(first, default)];
        let usual = PlanSettings::default().worth_leaving;
        let none = Duration::ZERO;
        let looks = [(0, none, f64::INFINITY), (0, none, usual), (20, none, usual)];
        let looks = looks.into_iter().chain([Duration::from_secs(6), self.search].map(|time| (20, time, usual)));
        for (look, (top, refine, worth_leaving)) in looks.enumerate() {
            let mut found = Vec::new();
            for (at, (kernel, problem)) in problems.iter().enumerate() {
                let share = refine / problems.len() as u32;
                let seed = self.seed + look as u64;
                if top > 0 || at == first {
                    let settings = PlanSettings { top, refine: share, worth_leaving, seed, ..PlanSettings::default() };
                    found.push((at, self.plan(&**kernel, &**problem, words, settings)?));
                }
            }
            let (fastest, _) = self.fastest(&problems, &found)?;
            answers.push(found.swap_remove(fastest));
        }
        // An answer that two ways agree on has one time: timed twice, the luckier of the two would stand for the best known.
        let mut distinct: Vec<Answer> = Vec::new();
        let mut place = |answer: &Answer| {
            let known = distinct.iter().position(|other| other == answer);
            known.unwrap_or_else(|| {
                distinct.push(answer.clone());
                distinct.len() - 1
            })
        };
        let places: Vec<usize> = answers.iter().map(&mut place).collect();
        let (fastest, times) = self.fastest(&problems, &distinct)?;
        let told =
            |(at, point): &Answer| format!("{} {}", problems[*at].1.kernel(), problems[*at].1.space().config(point));
        let promised = self.promised(&problems[first], words, [&answers[1].1, &answers[0].1])?;
        let (best, default) = (told(&distinct[fastest]), told(&answers[0]));
        let best = format!("promised {promised:.2} of the default's time; best {best}, default {default}");
        Ok((std::array::from_fn(|at| times[fastest] / times[places[at]]), best))
    }

    fn plan(
        &mut self,
        kernel: &dyn AnyKernel,
        problem: &dyn Problem,
        words: &Config,
        settings: PlanSettings,
    ) -> Result<Point, Box<dyn Error>> {
        let device = self.measure.spec().clone();
        let model = self.model(kernel, words)?;
        let mut planner = Planner {
            kernel,
            device: &device,
            measure: Some(&mut self.measure),
            predictor: Some(&model),
            sampler: &mut Exact::new(),
            cache: None,
            settings,
        };
        Ok(planner.plan_problem(problem)?.point)
    }

    /// The model of the profile that is found for a kernel and an input.
    fn model(&self, kernel: &dyn AnyKernel, words: &Config) -> Result<Mlp, Box<dyn Error>> {
        let device = self.measure.spec();
        let best = self.store.find(&kernel.id(), device, words)?.best;
        let (path, profile) = best.ok_or("no profile for this many threads: run `tilewright tune` with them first")?;
        profile.expect(&path, &kernel.id(), device, &kernel.schema())?;
        Ok(Mlp::from_value(profile.model)?)
    }

    /// What the model expects of its first choice, as a share of what it expects of the default.
    fn promised(
        &self,
        (kernel, problem): &Candidate,
        words: &Config,
        points: [&Point; 2],
    ) -> Result<f32, Box<dyn Error>> {
        let model = self.model(&**kernel, words)?;
        let scores = model.bind(&**problem)?.score_each(points);
        Ok((scores[0] - scores[1]).exp())
    }

    /// The fastest of some, and the time of each.
    fn fastest(&mut self, problems: &[Candidate], all: &[Answer]) -> Result<(usize, Vec<f64>), Box<dyn Error>> {
        let settings = PairedSettings {
            rounds: 11,
            tie_band: 0.0,
            tie_most: 0.0,
            most_rounds: 11,
            drop_beyond: f64::INFINITY,
            max_time: Duration::from_secs(20),
        };
        let policy = PlanSettings::default().timing;
        let (measure, clock) = (&mut self.measure, Instant::now());
        let found = compare(all.len(), &Objective::default(), &settings, &clock, &mut |i| {
            outcome(measure, &*problems[all[i].0].1, &all[i].1, &policy)
        })?;
        let mut times = vec![f64::INFINITY; all.len()];
        found.contenders.iter().for_each(|c| times[c.index] = c.cost);
        let fastest = (0..all.len()).min_by(|a, b| times[*a].total_cmp(&times[*b])).unwrap_or(0);
        Ok((fastest, times))
    }
}
