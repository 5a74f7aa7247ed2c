//! The closing table of `tune`: inputs that the model never saw.

use super::contest::{Contest, fixed, has_none};
use crate::args::{ModelKind, TuneArgs};
use crate::device::Opened;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::wiring::Wiring;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tilewright::planning::{Planning, problem};
use tilewright_bench_suite::report::TaskReport;
use tilewright_bench_suite::tasks::{Task, TaskSet};
use tilewright_core::problem::{AnyKernel, Measure, Problem};
use tilewright_core::space::Config;
use tilewright_runtime::RuntimeError;
use tilewright_runtime::contest::{Entrant, contest, libraries};
use tilewright_runtime::plan::{PlanSettings, Planned};
use tilewright_runtime::tune::Fitted;

#[derive(Serialize)]
pub(super) struct HeldOut {
    pub(super) input: Config,
    #[serde(skip)]
    pub(super) input_text: String,
    /// What of the configuration is not the untuned one's.
    #[serde(skip)]
    pub(super) changed: Config,
    pub(super) config: Config,
    pub(super) predicted_s: Option<f64>,
    pub(super) measured_s: f64,
    pub(super) gflops: f64,
    /// The configuration that would run if nothing were tuned.
    pub(super) untuned_gflops: Option<f64>,
    pub(super) untuned_s: Option<f64>,
    pub(super) best_baseline: Option<String>,
    pub(super) best_baseline_gflops: Option<f64>,
    /// Best baseline's time / our time.
    pub(super) ratio: Option<f64>,
}

/// Rounds of a comparison: the table is a look, not a record.
const ROUNDS: usize = 3;

/// Plans a few inputs with the fresh model and times the choices beside the untuned ones and the libraries found.
pub(super) fn held_out(
    wiring: &Wiring,
    device: &mut Opened,
    kernel: &Arc<dyn AnyKernel>,
    args: &TuneArgs,
    model: &Fitted,
    seed: u64,
) -> Result<Vec<HeldOut>, Failure> {
    let spec = device.spec().clone();
    let (home, kernels) = (wiring.home()?, std::slice::from_ref(kernel));
    let mut how = Contest::of(&spec, &kernel.computation(), "all", seed)?;
    (how.settings.rounds, how.settings.min_rounds) = (ROUNDS, ROUNDS);
    let shared = fixed(args.dtype.as_ref(), &args.fields)?;
    let tasks = TaskSet::Representative.tasks(&**kernel, &shared).map_err(RuntimeError::from)?;
    // A pipe or a device is not read back.
    let is_file = model.profile.is_file();
    let bar = Bar::counting("held out", tasks.len() as u64);
    let mut out = Vec::new();
    for task in &tasks {
        // Other kernels compute what this one has no code for.
        let Ok(problem) = problem(&**kernel, &spec, &task.input) else { continue };
        let problem: Arc<dyn Problem> = problem.into();
        let settings = PlanSettings { refine: Duration::ZERO, seed, ignore_cached: true, ..PlanSettings::default() };
        let planning = Planning::new(&home, kernels, &spec, Some(&mut *device), settings);
        let planning = match model.is_stored && is_file {
            // Read back from the file: what is shown is what later commands will use.
            true => Planning { model: (Some(ModelKind::Mlp.name()), Some(&model.profile)), ..planning },
            false => Planning { predictor: Some(&*model.predictor), ..planning },
        };
        let planned = match planning.decide(&task.input) {
            Ok((_, planned)) => planned,
            // Other kernels compute this input.
            Err(tilewright::Error::Runtime(error)) if has_none(&error) => continue,
            Err(error) => return Err(error.into()),
        };
        out.push(timed(device, task, &problem, planned, &how)?);
        bar.set(out.len() as u64);
    }
    bar.finish();
    Ok(out)
}

/// The choice for a task beside what would run if nothing were tuned, and the libraries.
fn timed(
    device: &mut Opened,
    task: &Task,
    problem: &Arc<dyn Problem>,
    planned: Planned,
    how: &Contest,
) -> Result<HeldOut, Failure> {
    let entrant = |name: &str, point| Entrant { name: name.to_owned(), problem: problem.clone(), point };
    let default = problem.default_point();
    // Where nothing was changed, two times of the same would only tell the noise.
    let apart = default.clone().filter(|point| *point != planned.point);
    let mut entrants = vec![entrant("tuned", planned.point)];
    entrants.extend(libraries(device, &how.libraries, &problem.input(), &how.settings)?.0);
    entrants.extend(apart.clone().map(|point| entrant("untuned", point)));
    let mut standings = contest(device, &entrants, &how.settings)?;
    let beside = apart.and_then(|_| standings.pop());
    let of_default = beside.as_ref().or(standings.first()).filter(|_| default.is_some());
    let untuned = of_default.and_then(|standing| standing.cost.as_ref().ok().copied());
    let row = TaskReport::new(task, &entrants[..standings.len()], &standings);
    let default = default.map(|point| problem.space().config(&point)).unwrap_or_default();
    let changed = planned.config.differing(&default);
    Ok(HeldOut { changed, ..held(task, row, planned.predicted_s, untuned) })
}

fn held(task: &Task, row: TaskReport, predicted_s: Option<f64>, untuned: Option<f64>) -> HeldOut {
    let best = row.baselines.iter().find(|b| Some(&b.name) == row.best_baseline.as_ref()).map(|b| b.gflops);
    HeldOut {
        input_text: task.shape(),
        changed: Config::default(),
        predicted_s,
        measured_s: row.ours_s.unwrap_or(f64::NAN),
        gflops: row.ours_gflops.unwrap_or(0.0),
        untuned_gflops: untuned.map(|s| row.flops / s / 1e9),
        untuned_s: untuned,
        best_baseline_gflops: best,
        input: row.input,
        config: row.config,
        best_baseline: row.best_baseline,
        ratio: row.ratio,
    }
}
