//! How good the answer for an input never seen is, by the time that it may take:
//! `cargo run --release -p tilewright-bench-suite --example unseen -- [INPUTS] [SECONDS] [THREADS] [SEED] [WORDS...]`
//!
//! After `tilewright tune gemm --threads THREADS`. For each input that is drawn, the default, the first choice of the model, the answer
//! without timing (one or the other), the answer with the model's twenty best timed, and the answer with six seconds of looking around
//! are timed beside the best of a search of so many seconds, in interleaved rounds. The last four are what `tilewright plan`
//! answers, with the stored selector and the stored models; the model's first choice is what it would without the default to fall back on. A fraction is the time of the fastest of them all by that of an answer.

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
use tilewright::planning::Planning;
use tilewright_core::computation::InputLimits;
use tilewright_core::device::{Device, DeviceKind};
use tilewright_core::objective::Objective;
use tilewright_core::problem::{AnyKernel, Measure, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_runtime::Live;
use tilewright_runtime::paired::{PairedSettings, compare};
use tilewright_runtime::plan::PlanSettings;
use tilewright_runtime::store::{Home, ProfileStore};

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

    let (home, search) = (Home::from_environment()?, Duration::from_secs_f64(seconds));
    let stored = ProfileStore::new(home.profiles());
    let mut bench = Bench { measure: Live::new(DeviceName::Cpu.open(Some(threads))?), home, kernels, search, seed };
    // Far from the seeds that campaigns draw their inputs with.
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x72a4_d05e_a7c4);
    let limits = InputLimits { max_flops: 2e9, max_bytes: 128e6 };
    let mut all: [Vec<f64>; NAMES.len()] = Default::default();
    for _ in 0..inputs {
        let words = bench.kernels[0].draw(&fixed, &limits, &mut || rng.random())?;
        if stored.find(&*bench.kernels[0], bench.measure.spec(), &words)?.best.is_none() {
            return Err("no profile for this many threads: run `tilewright tune gemm` with them first".into());
        }
        let (fractions, best) = bench.fractions(&words)?;
        let line: Vec<String> = NAMES.iter().zip(fractions).map(|(name, f)| format!("{name} {f:.3}")).collect();
        println!("{}: {words}\n    {best}", line.join(", "));
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
    home: Home,
    kernels: Vec<Arc<dyn AnyKernel>>,
    search: Duration,
    seed: u64,
}

/// A kernel for the input, and a configuration of it.
type Answer = (Box<dyn Problem>, Point);

/// The kernel's name and the configuration.
fn described((problem, point): &Answer) -> String {
    format!("{} {}", problem.kernel(), problem.space().config(point))
}

impl Bench {
    fn fractions(&mut self, words: &Config) -> Result<([f64; 6], String), Box<dyn Error>> {
        let usual = PlanSettings::default().worth_leaving;
        let none = Duration::ZERO;
        let looks = [(0, none, f64::INFINITY), (0, none, usual), (20, none, usual)];
        let looks = looks.into_iter().chain([Duration::from_secs(6), self.search].map(|time| (20, time, usual)));
        // An answer that two ways agree on has one time: timed twice, the luckier of the two would stand for the best known.
        let mut distinct = vec![self.default(words)?];
        let mut places = vec![0];
        for (look, (top, refine, worth_leaving)) in looks.enumerate() {
            let seed = self.seed + look as u64;
            let settings = PlanSettings { top, refine, worth_leaving, seed, ..PlanSettings::default() };
            let answer = self.plan(words, settings)?;
            let known = distinct.iter().position(|other| described(other) == described(&answer));
            places.push(known.unwrap_or(distinct.len()));
            if known.is_none() {
                distinct.push(answer);
            }
        }
        let times = self.times(&distinct)?;
        let fastest = (0..times.len()).min_by(|a, b| times[*a].total_cmp(&times[*b])).unwrap_or(0);
        let shown = format!(
            "best {}, default {}, without timing {}",
            described(&distinct[fastest]),
            described(&distinct[0]),
            described(&distinct[places[2]])
        );
        Ok((std::array::from_fn(|at| times[fastest] / times[places[at]]), shown))
    }

    /// What runs before anything is tuned: the default of the kernel that it suits best.
    fn default(&self, words: &Config) -> Result<Answer, Box<dyn Error>> {
        let problems = self.kernels.iter().filter_map(|kernel| kernel.problem(self.measure.spec(), words).ok());
        let answers: Vec<Answer> = problems.filter_map(|p| p.default_point().map(|point| (p, point))).collect();
        let best = answers.into_iter().rev().max_by(|a, b| a.0.suits().total_cmp(&b.0.suits()));
        best.ok_or_else(|| "no kernel takes the input".into())
    }

    /// What `tilewright plan` answers.
    fn plan(&mut self, words: &Config, settings: PlanSettings) -> Result<Answer, Box<dyn Error>> {
        let device = self.measure.spec().clone();
        let settings = PlanSettings { remember: false, ignore_cached: true, ..settings };
        let measure = Some(&mut self.measure as &mut dyn Measure).filter(|_| settings.top > 0);
        let planning = Planning::new(&self.home, &self.kernels, &device, measure, settings);
        let (problem, planned) = planning.decide(words)?;
        Ok((problem, planned.point))
    }

    /// The time of each, in interleaved rounds.
    fn times(&mut self, all: &[Answer]) -> Result<Vec<f64>, Box<dyn Error>> {
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
            outcome(measure, &*all[i].0, &all[i].1, &policy)
        })?;
        let mut times = vec![f64::INFINITY; all.len()];
        found.contenders.iter().for_each(|c| times[c.index] = c.cost);
        Ok(times)
    }
}
