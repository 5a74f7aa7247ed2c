//! `tilewright bench`: a table of tasks beside every library found.

use super::contest::{Contest, fixed};
use super::tune::campaign;
use crate::args::{BenchArgs, ModelKind, TuneArgs};
use crate::device::{Opened, watched, with_peaks};
use crate::failure::{Failure, Kind};
use crate::fields;
use crate::interrupt;
use crate::output::{Output, expect_writable, note, seconds, write};
use crate::progress::Bar;
use crate::wiring::{Wiring, measure};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tilewright::known::Known;
use tilewright::planning::{Planning, problem};
use tilewright_bench_suite::report::Report;
use tilewright_bench_suite::tasks::{Task, TaskSet};
use tilewright_core::device::DeviceSpec;
use tilewright_core::problem::{AnyKernel, Measure, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_runtime::RuntimeError;
use tilewright_runtime::paired::PairedSettings;
use tilewright_runtime::plan::PlanSettings;

/// What was decided for a task: the kernel's problem, and the configuration.
type Decided = (Box<dyn Problem>, Point);

pub(crate) fn run(args: &BenchArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let _table = expect_writable("out", &args.out)?;
    let mut device = measure(&args.device)?;
    let mut kernels = wiring.kernels.competing(&args.kernel, device.spec(), false)?;
    let computation = kernels[0].computation();
    let set = TaskSet::named(&computation, args.tasks.as_deref()).map_err(|e| Failure::new(Kind::Usage, "tasks", e))?;
    let shared = fixed(args.dtype.as_ref(), &args.fields)?;
    let tasks = set.tasks(&*kernels[0], &shared).map_err(RuntimeError::from)?;
    let spec = with_peaks(&args.device, device.spec())?;
    // Those with code for the tasks come first: which profile fits, and what is tuned where there is none, is the first one's.
    if let Some(task) = tasks.first() {
        kernels.sort_by_key(|kernel| problem(&**kernel, &spec, &task.input).is_err());
    }
    let how = Contest::of(&spec, &computation, &args.baselines, seed)?;
    let timed = || compare(args, wiring, (&mut device, &spec), (&kernels, &tasks), &how, seed);
    let report = watched(&spec, timed)?;
    // An answer that cannot be stored is an answer all the same.
    let stored = args.out.as_ref().map(|path| write(path, &format!("```\n{}```\n", report.table())));
    let unstored = stored.and_then(Result::err).map(|failure| failure.to_string());
    if let Some(why) = &unstored {
        note(format_args!("warning: the table is not stored: {why}"));
    }
    output.answer(&Answer { report: &report, unstored }, || report.table())
}

/// The report, and why it is not in the file that was asked for.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    unstored: Option<String>,
}

/// Plans all tasks, then compares their plans with the libraries.
fn compare(
    args: &BenchArgs,
    wiring: &Wiring,
    (device, spec): (&mut Opened, &Arc<DeviceSpec>),
    (kernels, tasks): (&[Arc<dyn AnyKernel>], &[Task]),
    how: &Contest,
    seed: u64,
) -> Result<Report, Failure> {
    let inputs = tasks.iter().map(|t| Ok(problem(&*kernels[0], spec, &t.input)?.input()));
    let inputs = inputs.collect::<Result<Vec<Config>, Failure>>()?;
    let mut bench = Bench { args, wiring, spec: spec.clone(), device, input: inputs.first().cloned(), seed };
    let budget = bench.prepare(kernels)?;

    let decided = bench.plan(kernels, tasks, budget)?;
    // Timed in one go after all planning, so that every task is compared under the same conditions.
    let bar = Bar::counting("compare", tasks.len() as u64);
    let mut reports = Vec::new();
    for (task, (problem, point)) in tasks.iter().zip(decided) {
        bar.note(task.name.clone());
        bar.set(reports.len() as u64);
        reports.push(how.task(bench.device, problem, &point, task)?);
    }
    bar.finish();
    Ok(how.report(spec, reports))
}

/// One command.
struct Bench<'a> {
    args: &'a BenchArgs,
    wiring: &'a Wiring,
    spec: Arc<DeviceSpec>,
    device: &'a mut Opened,
    /// The first task's input: what it has in common with the others decides which profile fits.
    input: Option<Config>,
    seed: u64,
}

impl Bench<'_> {
    /// Makes a profile where there is none and none is named, as far as the budget goes; what is left of it. A profile that is made
    /// now knows the kernel, which the device's weights do not.
    fn prepare(&mut self, kernels: &[Arc<dyn AnyKernel>]) -> Result<Duration, Failure> {
        let (share, budget) = (self.args.budget.mul_f64(TUNING_SHARE), self.args.budget);
        let model = (self.args.model.map(ModelKind::name), self.args.profile.as_deref());
        let input = self.input.clone().unwrap_or_default();
        let is_tuned = Known::find(&self.wiring.home()?, model, &*kernels[0], &self.spec, &input)?.is_profile();
        if is_tuned || self.args.model.is_some() || kernels[0].space().params().is_empty() {
            return Ok(budget);
        }
        if share >= LEAST_TUNING {
            self.tune(kernels, share)?;
        }
        Ok(budget - share)
    }

    /// A profile made on the spot, stored for later commands.
    fn tune(&mut self, kernels: &[Arc<dyn AnyKernel>], budget: Duration) -> Result<(), Failure> {
        note(format_args!(
            "no profile for this device and these threads: tuning for {} first",
            seconds(budget.as_secs_f64())
        ));
        // Not all that tasks share: leading dimensions, say, are too small for other inputs.
        let shared = self.input.as_ref().map(fields::deciding).unwrap_or_default();
        let tune = TuneArgs {
            kernel: self.args.kernel.clone(),
            device: self.args.device.clone(),
            budget,
            fields: shared.0.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            model: "mlp".to_owned(),
            ..TuneArgs::default()
        };
        let report = campaign(&tune, self.wiring, kernels, self.device, self.seed)?;
        if report.interrupted {
            Err(interrupt::ended("its profiles go on where they stopped; the table begins anew"))
        } else {
            Ok(())
        }
    }

    /// Plans each task: the kernels compete.
    fn plan(
        &mut self,
        kernels: &[Arc<dyn AnyKernel>],
        tasks: &[Task],
        budget: Duration,
    ) -> Result<Vec<Decided>, Failure> {
        let each = budget / u32::try_from(tasks.len().max(1)).unwrap_or(u32::MAX);
        let paired = PairedSettings { max_time: each.mul_f64(COMPARING_SHARE), ..PairedSettings::default() };
        let (refine, seed) = (each.mul_f64(1.0 - 2.0 * COMPARING_SHARE), self.seed);
        // Without any time nothing is timed: the table then tells what is answered at once.
        let top = if self.args.budget.is_zero() { 0 } else { TOP };
        let asked = PlanSettings { budget: refine, refine, top, paired, seed, ..PlanSettings::default() };
        let settings = PlanSettings { ignore_cached: true, ..asked };
        let (home, model) = (self.wiring.home()?, self.args.model.map(ModelKind::name));
        let bar = Bar::counting("plan", tasks.len() as u64);
        let mut decided = Vec::new();
        for task in tasks {
            bar.note(task.name.clone());
            bar.set(decided.len() as u64);
            let planning = Planning {
                model: (model, self.args.profile.as_deref()),
                ..Planning::new(&home, kernels, &self.spec, Some(&mut *self.device), settings.clone())
            };
            let (problem, planned) = planning.decide(&task.input)?;
            tracing::info!(task = task.name, kernel = %planned.kernel, config = %planned.config, "planned");
            decided.push((problem, planned.point));
        }
        bar.finish();
        Ok(decided)
    }
}

/// Without a profile: the share of the budget that makes one first. A model finds better starts for all tasks than searching
/// each of them from nothing would in the same time.
const TUNING_SHARE: f64 = 0.3;

/// Of a task's time, the share that goes to comparing the model's best, and again to comparing the best of all.
const COMPARING_SHARE: f64 = 0.25;

/// Shorter campaigns teach a model too little.
const LEAST_TUNING: Duration = Duration::from_secs(10);

/// How many of the model's best are timed for each task.
const TOP: usize = 50;
