//! `tilewright bench`: a table of tasks beside every baseline found.

use super::contest::Arena;
use super::plan::Desk;
use super::tune::campaign;
use crate::args::{BenchArgs, TuneArgs};
use crate::device::{DeviceName, Named as _, Opened};
use crate::failure::{Failure, Kind};
use crate::output::{Output, seconds};
use crate::progress::Bar;
use crate::wiring::Wiring;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tilewright_bench_suite::tasks::{Task, TaskSet};
use tilewright_core::computation::Computation;
use tilewright_core::dtype::{DType, UnknownDType};
use tilewright_core::problem::Measure;
use tilewright_core::space::Point;
use tilewright_ops::gemm::Gemm;
use tilewright_runtime::paired::PairedSettings;
use tilewright_runtime::plan::PlanSettings;

pub(crate) fn run(args: &BenchArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let kernel = wiring.kernel(&args.kernel, &args.device)?;
    let set: TaskSet = args.tasks.parse().map_err(|e| Failure::new(Kind::Usage, "tasks", e))?;
    let dtype: DType = args.dtype.parse().map_err(|e: UnknownDType| Failure::new(Kind::Usage, "dtype", e))?;
    if !matches!(dtype, DType::F32 | DType::F64) {
        return Err(Failure::new(Kind::Usage, "dtype", format!("gemm has no {dtype} yet: f32 or f64")));
    }
    let mut device = wiring.measure(&args.device)?;
    let arena = Arena::of(&device, &args.baselines, seed)?;
    let tasks = set.tasks(dtype);
    let spec = DeviceName::of(&args.device)?.with_peaks(args.device.threads, device.spec())?;
    let fixed = tasks.first().map(|t| Gemm.words(&t.input)).unwrap_or_default();
    let of = |profile: Option<&Path>| wiring.adviser((args.model, profile), kernel, &spec, &fixed);
    let mut adviser = of(args.profile.as_deref())?;
    let mut budget = args.budget;
    // A profile that is made now knows this kernel, which the device's weights do not.
    let is_tuned = adviser.is_profile();
    if !is_tuned && args.model.is_none() {
        let share = budget.mul_f64(TUNING_SHARE);
        if let Some(profile) = tuned(args, share, wiring, &mut device, seed)? {
            adviser = of(Some(&profile))?;
        }
        budget -= share;
    }
    let mut desk = Desk { adviser, device: &mut device, cache: None };

    let each = budget / u32::try_from(tasks.len().max(1)).unwrap_or(u32::MAX);
    let bar = Bar::counting("plan", tasks.len() as u64);
    let mut decided: Vec<(&Task, Point)> = Vec::new();
    for task in &tasks {
        bar.note(task.name.clone());
        bar.set(decided.len() as u64);
        let problem = wiring.problem(desk.adviser.kernel, &spec, &Gemm.words(&task.input))?;
        let paired = PairedSettings { max_time: each.mul_f64(COMPARING_SHARE), ..PairedSettings::default() };
        let refine = each.mul_f64(1.0 - 2.0 * COMPARING_SHARE);
        let settings = PlanSettings { budget: refine, refine, top: TOP, paired, seed, ..PlanSettings::default() };
        let planned = desk.plan(&*problem, settings)?;
        tracing::info!(task = task.name, config = %planned.config, measured_s = planned.measured_s, "planned");
        decided.push((task, planned.point));
    }
    bar.finish();
    drop(desk);

    // Timed in one go after all planning, so that every task is compared under the same conditions.
    let bar = Bar::counting("compare", tasks.len() as u64);
    let mut reports = Vec::new();
    for (task, point) in &decided {
        bar.note(task.name.clone());
        bar.set(reports.len() as u64);
        let problem = wiring.problem(kernel, &spec, &Gemm.words(&task.input))?;
        reports.push(arena.contest(&mut device, &*problem, point, task)?);
    }
    bar.finish();
    let peak = spec.measured.get(&format!("peak_flops_{dtype}")).map(|p| p / 1e9);
    let report = arena.report(dtype, peak, reports);
    if let Some(path) = &args.out {
        let text = format!("```\n{}```\n", report.table());
        tilewright_runtime::store::write_atomically(path, text.as_bytes())
            .map_err(|e| Failure::new(Kind::Store, &path.display().to_string(), e))?;
    }
    output.answer(&report, || report.table())
}

/// Without a profile: the share of the budget that makes one first. A model finds better starts for all tasks than searching
/// each of them from nothing would in the same time.
const TUNING_SHARE: f64 = 0.3;

/// A profile made on the spot, stored for later commands; none if the budget is too short for one.
fn tuned(
    args: &BenchArgs,
    budget: Duration,
    wiring: &Wiring,
    device: &mut Opened,
    seed: u64,
) -> Result<Option<PathBuf>, Failure> {
    if budget < LEAST_TUNING {
        return Ok(None);
    }
    eprintln!("no profile for this device and these threads: tuning for {} first", seconds(budget.as_secs_f64()));
    let tune = TuneArgs {
        kernel: args.kernel.clone(),
        device: args.device.clone(),
        budget,
        samples: None,
        dtype: Some(args.dtype.clone()),
        model: "mlp".to_owned(),
        out: None,
        fresh: false,
        no_table: true,
    };
    let (report, _) = campaign(&tune, wiring, device, seed)?;
    Ok(Some(report.profile))
}

/// Of a task's time, the share that goes to comparing the model's best, and again to comparing the best of all.
const COMPARING_SHARE: f64 = 0.25;

/// Shorter campaigns teach a model too little.
const LEAST_TUNING: Duration = Duration::from_secs(10);

/// How many of the model's best are timed for each task.
const TOP: usize = 50;
