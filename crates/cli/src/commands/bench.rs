//! `tilewright bench`: a table of tasks beside every baseline found.

use super::contest::{baselines, contest, threads};
use super::plan::Desk;
use crate::args::BenchArgs;
use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::progress::Bar;
use crate::wiring::Wiring;
use tilewright_bench_suite::compare::Policy;
use tilewright_bench_suite::gemm::Bench;
use tilewright_bench_suite::tasks::{Task, TaskSet};
use tilewright_core::computation::Computation;
use tilewright_core::dtype::{DType, UnknownDType};
use tilewright_core::space::Point;
use tilewright_ops::gemm::Gemm;
use tilewright_runtime::plan::PlanSettings;

pub(crate) fn run(args: &BenchArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let kernel = wiring.kernel(&args.kernel)?;
    let set: TaskSet = args.tasks.parse().map_err(|e| Failure::new(Kind::Usage, "tasks", e))?;
    let dtype: DType = args.dtype.parse().map_err(|e: UnknownDType| Failure::new(Kind::Usage, "dtype", e))?;
    if !matches!(dtype, DType::F32 | DType::F64) {
        return Err(Failure::new(Kind::Usage, "dtype", format!("gemm has no {dtype} yet: f32 or f64")));
    }
    let found = baselines(&args.baselines)?;
    let tasks = set.tasks(dtype);
    let measure = wiring.measure(&args.device)?;
    let spec = wiring.measured_spec(&args.device)?;
    let threads = threads(&spec);
    let fixed = tasks.first().map(|t| Gemm.words(&t.input)).unwrap_or_default();
    let predictor = wiring.profile(args.profile.as_deref(), kernel, &spec, &fixed)?;
    let mut desk = Desk { kernel, measure, executor: wiring.executor(&args.device)?, predictor, cache: None };

    let each = args.budget / u32::try_from(tasks.len().max(1)).unwrap_or(u32::MAX);
    let bar = Bar::counting("plan", tasks.len() as u64);
    let mut decided: Vec<(&Task, Point)> = Vec::new();
    for task in &tasks {
        bar.note(task.name.clone());
        bar.set(decided.len() as u64);
        let problem = wiring.problem(kernel, &spec, &Gemm.words(&task.input))?;
        let settings = PlanSettings { budget: each, refine: each, top: TOP, seed, ..PlanSettings::default() };
        let planned = desk.plan(&*problem, settings)?;
        tracing::info!(task = task.name, config = %planned.config, measured_s = planned.measured_s, "planned");
        decided.push((task, planned.point));
    }
    bar.finish();
    drop(desk);

    // Timed in one go after all planning, so that every task is compared under the same conditions.
    let bar = Bar::counting("compare", tasks.len() as u64);
    let bench = Bench { baselines: &found, threads, policy: Policy::for_threads(threads), seed };
    let mut reports = Vec::new();
    for (task, point) in &decided {
        bar.note(task.name.clone());
        bar.set(reports.len() as u64);
        let problem = wiring.problem(kernel, &spec, &Gemm.words(&task.input))?;
        reports.push(contest(&*problem, point, task, &bench)?);
    }
    bar.finish();
    let peak = spec.measured.get(&format!("peak_flops_{dtype}")).map(|p| p / 1e9);
    let report = bench.report(dtype, peak, reports);
    if let Some(path) = &args.out {
        let text = format!("```\n{}```\n", report.table());
        tilewright_runtime::store::write_atomically(path, text.as_bytes())
            .map_err(|e| Failure::new(Kind::Store, &path.display().to_string(), e))?;
    }
    output.answer(&report, || report.table())
}

/// How many of the model's best are timed for each task.
const TOP: usize = 50;
