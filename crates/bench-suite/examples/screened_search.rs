//! Screened search against dense search on the host's own GEMM space: how often both find the same best configuration,
//! and what each costs with all that it needs (binding the model; drawing points and distilling the screen).
//!
//! The model is fitted on a campaign's log:
//!
//! ```text
//! tilewright tune gemm --dtype f32 --no-table --out build/screen.profile
//! cargo run --release -p tilewright-bench-suite --example screened_search -- build/screen.log [INPUTS [FIRST [LAYOUT]]]
//! ```

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_core::computation::InputLimits;
use tilewright_core::device::DeviceSpec;
use tilewright_core::objective::Objective;
use tilewright_core::predictor::{Fit, Predictor};
use tilewright_core::problem::{AnyKernel, Erased, Problem};
use tilewright_core::space::Config;
use tilewright_cpu::{CpuDevice, CpuGemm};
use tilewright_perfmodel_mlp::{Layout, Mlp, MlpFit, ScreenSettings, Settings};
use tilewright_runtime::log::CampaignLog;
use tilewright_runtime::tune::rows;
use tilewright_search::{Found, Options, exhaustive};

/// Up to 4096 cubed, or a gigabyte.
const LIMITS: InputLimits = InputLimits { max_flops: 1.4e11, max_bytes: 1e9 };

/// One input, searched both ways.
struct Trial {
    dense: Found,
    dense_s: f64,
    screened: Found,
    screened_s: f64,
}

impl Trial {
    /// The full model scores both choices alike; they may differ where configurations have the same features.
    fn same(&self) -> bool {
        let best = |found: &Found| found.ranked.points.first().map(|(_, cost)| *cost);
        best(&self.dense) == best(&self.screened)
    }

    /// Points that the full model scored in the screened search, of all.
    fn kept(&self) -> f64 {
        self.screened.statistics.dense as f64 / self.screened.statistics.legal.max(1) as f64
    }

    fn million_points(&self) -> f64 {
        self.dense.statistics.legal as f64 / 1e6
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize, default: &str| arguments.get(at).cloned().unwrap_or_else(|| default.to_owned());
    let log = arguments.first().ok_or("name the log of a campaign: that of `tune --out X.profile` is X.log")?;
    let (inputs, first): (u64, u64) = (argument(1, "100").parse()?, argument(2, "0").parse()?);
    let layout: Layout = argument(3, "64-128-192-256-192-128-64").parse()?;
    let kernel = Erased::new(CpuGemm::new());
    let device = Arc::clone(CpuDevice::new(std::thread::available_parallelism()?.get())?.spec());
    let dense = fit(&kernel, &device, Path::new(log), layout)?;
    let mut screened = dense.clone();
    screened.set_screen(Some(ScreenSettings::default()))?;
    let mut trials = Vec::new();
    for seed in first..first + inputs {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let words = kernel.draw(&Config::parse("dtype=f32")?, &LIMITS, &mut || rng.random())?;
        let problem = kernel.problem(&device, &words)?;
        let (dense, dense_s) = search(&*problem, &dense)?;
        let (screened, screened_s) = search(&*problem, &screened)?;
        trials.push(Trial { dense, dense_s, screened, screened_s });
        report(seed, &words, &trials[trials.len() - 1]);
    }
    summary(&trials);
    Ok(())
}

/// A model without a screen, fitted on what a campaign measured.
fn fit(kernel: &dyn AnyKernel, device: &Arc<DeviceSpec>, log: &Path, layout: Layout) -> Result<Mlp, Box<dyn Error>> {
    let (_, samples) = CampaignLog::read(log)?;
    let rows = rows(kernel, device, &samples, &Objective::default(), None)?;
    let settings = Settings { layout, ..Settings::default() };
    let start = Instant::now();
    let model = MlpFit { settings, screen: None }.fit(&rows.set, 1)?;
    println!(
        "{} on {} rows of {} inputs: error {:.4} of variance {:.2}, fitted in {:.0} s",
        model.layout(),
        rows.set.len(),
        rows.inputs,
        model.report().best_mse(),
        model.report().variance,
        start.elapsed().as_secs_f64()
    );
    Ok(model)
}

/// The best of the whole space, and the seconds from model and problem to it.
fn search(problem: &dyn Problem, model: &Mlp) -> Result<(Found, f64), Box<dyn Error>> {
    let start = Instant::now();
    let scorer = model.bind(problem)?;
    let found = exhaustive(problem, &*scorer, &Options::top(1));
    Ok((found, start.elapsed().as_secs_f64()))
}

fn report(seed: u64, words: &Config, trial: &Trial) {
    let shape: Vec<String> = words.0.iter().take(5).map(|(name, value)| format!("{name}={value}")).collect();
    println!(
        "{seed:>4} {:<44} {:>9} points  dense {:>6.2} s  screened {:>5.2} s  kept {:>6.2} %  {}",
        shape.join(" "),
        trial.dense.statistics.legal,
        trial.dense_s,
        trial.screened_s,
        100.0 * trial.kept(),
        if trial.same() { "same" } else { "OTHER" }
    );
}

fn summary(trials: &[Trial]) {
    // A space too small to be worth a screen is searched by the full model either way, and says nothing.
    let of: Vec<&Trial> = trials.iter().filter(|t| t.screened.statistics.screened > 0).collect();
    let sum = |value: fn(&Trial) -> f64| of.iter().map(|t| value(t)).sum::<f64>();
    let points = sum(Trial::million_points).max(f64::MIN_POSITIVE);
    println!(
        "the same best in {} of {} ({} of {} screened); screened spaces of {:.2} million points on average: \
         dense {:.2} s, screened {:.2} s a million points, {:.2} % kept",
        trials.iter().filter(|t| t.same()).count(),
        trials.len(),
        of.iter().filter(|t| t.same()).count(),
        of.len(),
        points / of.len().max(1) as f64,
        sum(|t| t.dense_s) / points,
        sum(|t| t.screened_s) / points,
        100.0 * sum(|t| t.kept() * t.million_points()) / points
    );
}
