//! The closing table of `tune`: inputs that the model never saw.

use super::contest::Arena;
use super::plan::Desk;
use crate::args::{ModelKind, TuneArgs};
use crate::device::Opened;
use crate::failure::{Failure, Kind};
use crate::progress::Bar;
use crate::wiring::Wiring;
use serde::Serialize;
use std::time::Duration;
use tilewright_bench_suite::tasks::Task;
use tilewright_core::computation::Computation;
use tilewright_core::expr::Value;
use tilewright_core::problem::{AnyKernel, Measure};
use tilewright_core::space::Config;
use tilewright_ops::gemm::Gemm;
use tilewright_runtime::plan::PlanSettings;
use tilewright_runtime::tune::TuneReport;

/// Square, tall, skinny, deep, flat and awkward: one of each kind that people have.
const INPUTS: [&str; 7] = [
    "m=768,n=768,k=768,layout=nn",
    "m=1200,n=1200,k=1200,layout=nt",
    "m=2000,n=24,k=2000,layout=nn",
    "m=2000,n=24,k=2000,layout=tn",
    "m=48,n=48,k=40000,layout=nt",
    "m=1800,n=1800,k=40,layout=nt",
    "m=251,n=509,k=1021,layout=tt",
];

#[derive(Serialize)]
pub(super) struct HeldOut {
    pub(super) input: Config,
    #[serde(skip)]
    pub(super) input_text: String,
    pub(super) config: Config,
    pub(super) predicted_s: Option<f64>,
    pub(super) measured_s: f64,
    pub(super) gflops: f64,
    /// The configuration that would run if nothing were tuned.
    pub(super) untuned_gflops: Option<f64>,
    pub(super) best_baseline: Option<String>,
    pub(super) best_baseline_gflops: Option<f64>,
    /// Best baseline's time / our time.
    pub(super) ratio: Option<f64>,
}

/// Plans a few inputs with the fresh model and times the choices beside the baselines found.
pub(super) fn held_out(
    wiring: &Wiring,
    device: &mut Opened,
    kernel: &dyn AnyKernel,
    args: &TuneArgs,
    report: &TuneReport,
    seed: u64,
) -> Result<Vec<HeldOut>, Failure> {
    let spec = device.spec().clone();
    // Read back from the file: what is shown is what later commands will use.
    let mut desk = Desk {
        adviser: wiring.adviser((Some(ModelKind::Mlp), Some(&report.profile)), kernel, &spec, &Config::default())?,
        device,
        cache: None,
    };
    let arena = Arena::of(desk.device, "all", seed)?.quick(3);
    let bar = Bar::counting("held out", INPUTS.len() as u64);
    let mut out = Vec::new();
    for text in INPUTS {
        let mut words = Config::parse(text).map_err(|e| Failure::new(Kind::Other, "input", e))?;
        if let Some(dtype) = &args.dtype {
            words.0.push(("dtype".into(), Value::parse(dtype)));
        }
        let problem = wiring.problem(kernel, &spec, &words)?;
        let settings = PlanSettings { refine: Duration::ZERO, seed, ..PlanSettings::default() };
        let planned = desk.plan(&*problem, settings)?;
        let input = Gemm.parse(&words).map_err(|e| Failure::new(Kind::Input, &e.field, &e.message))?;
        let task = Task { name: text.to_owned(), input };
        let row = arena.contest(desk.device, &*problem, &planned.point, &task)?;
        let untuned = match problem.default_point() {
            Some(p) => arena.alone(desk.device, &*problem, &p, &task)?.ours_gflops,
            None => None,
        };
        let best =
            row.baselines.iter().map(|b| b.gflops).fold(None, |m: Option<f64>, g| Some(m.map_or(g, |m| m.max(g))));
        out.push(HeldOut {
            input: planned.input,
            input_text: task.shape(),
            config: planned.config,
            predicted_s: planned.predicted_s,
            measured_s: row.ours_s.unwrap_or(f64::NAN),
            gflops: row.ours_gflops.unwrap_or(0.0),
            untuned_gflops: untuned,
            best_baseline: row.best_baseline,
            best_baseline_gflops: best,
            ratio: row.ratio,
        });
        bar.set(out.len() as u64);
    }
    bar.finish();
    Ok(out)
}
