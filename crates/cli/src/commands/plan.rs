//! `tilewright plan` and `explain`: the best configuration for an input, and why.

use crate::args::PlanArgs;
use crate::failure::Failure;
use crate::output::{Output, aligned, seconds};
use crate::wiring::{Adviser, Wiring, home};
use crate::words;
use serde::Serialize;
use std::fmt::Write as _;
use std::time::Duration;
use tilewright_core::decision::Alternative;
use tilewright_core::objective::Objective;
use tilewright_core::problem::{AnyKernel, Executor, Measure, Problem};
use tilewright_core::space::Config;
use tilewright_runtime::RuntimeError;
use tilewright_runtime::plan::{Asked, PlanSettings, Planned, Planner, Ranking};
use tilewright_runtime::plan_cache::{Lookup, PlanCache};

/// Looking around the model's best by measuring, unless `--budget` says how long.
const REFINE: Duration = Duration::from_secs(6);

/// Everything a decision needs, held together for one command.
pub(crate) struct Desk<'a> {
    pub(crate) adviser: Adviser<'a>,
    pub(crate) measure: Box<dyn Measure>,
    pub(crate) executor: Box<dyn Executor>,
    pub(crate) cache: Option<PlanCache>,
}

impl Desk<'_> {
    /// Decides one problem.
    pub(crate) fn plan(&mut self, problem: &dyn Problem, settings: PlanSettings) -> Result<Planned, RuntimeError> {
        let device = self.measure.spec().clone();
        let mut sampler = self.adviser.sampler();
        let settings = PlanSettings { ranking: self.adviser.ranking.clone(), ..settings };
        let mut planner = Planner {
            kernel: self.adviser.kernel,
            device: &device,
            measure: Some(&mut *self.measure),
            executor: Some(&mut *self.executor),
            predictor: self.adviser.predictor.as_deref(),
            sampler: &mut *sampler,
            cache: self.cache.as_ref(),
            settings,
        };
        planner.plan_problem(problem)
    }
}

#[derive(Serialize)]
struct Answer {
    kernel: String,
    input: Config,
    device: String,
    config: Config,
    predicted_s: Option<f64>,
    measured_s: Option<f64>,
    gflops: Option<f64>,
    verified: bool,
    max_rel_error: Option<f64>,
    considered: u64,
    cached: bool,
    /// Why an answer of the plan cache was not enough, where there was one.
    looked_again: Option<String>,
    /// The model that ranked what was timed.
    model: Option<String>,
    reason: String,
    seconds: f64,
    search_s: f64,
    timed: u64,
}

#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    answer: Answer,
    /// Least time by operations and by bytes at this device's measured rates, where they are known.
    floor_s: Option<f64>,
    alternatives: Vec<Alternative>,
    default_config: Option<Config>,
}

/// Decides as `plan` does.
pub(super) fn decide(args: &PlanArgs, wiring: &Wiring, seed: u64) -> Result<(Box<dyn Problem>, Planned), Failure> {
    let kernel = wiring.kernel(&args.kernel, &args.device)?;
    let measure = wiring.measure(&args.device)?;
    let words = words::parse(&args.input)?;
    let problem = wiring.problem(kernel, measure.spec(), &words)?;
    let mut adviser =
        wiring.adviser((args.model, args.profile.as_deref()), kernel, measure.spec(), &problem.input())?;
    if let Ranking::Sample(how) = &mut adviser.ranking {
        how.points = args.candidates as usize;
    }
    let cache = PlanCache::new(home()?.plans());
    let cached = (!args.fresh).then(|| cache.get(&*problem, &Objective::default()));
    let mut settings = settings(args, seed, adviser.origin.clone());
    let known = match &cached {
        Some(Ok(Lookup::Hit(plan, _))) => settings.asked.exceeds(plan).is_none(),
        // A damaged entry is planning's to tell.
        Some(Err(_)) => true,
        _ => false,
    };
    match (args.budget, &adviser.predictor) {
        (Some(budget), Some(_)) => settings.refine = budget,
        (Some(budget), None) => settings.budget = budget,
        (None, Some(_)) => settings.refine = REFINE,
        (None, None) => {}
    }
    if !known {
        tell(args, kernel, &adviser, settings.budget);
    }
    let mut desk = Desk { adviser, measure, executor: wiring.executor(&args.device)?, cache: Some(cache) };
    let planned = desk.plan(&*problem, settings)?;
    Ok((problem, planned))
}

/// What the command line says of a decision by a model that was read from the file with this checksum.
fn settings(args: &PlanArgs, seed: u64, profile: Option<String>) -> PlanSettings {
    let asked = Asked {
        budget: args.budget,
        top: args.top.map(|top| top as usize),
        model: args.model.map(|model| model.name().to_owned()),
        profile,
    };
    let defaults = PlanSettings::default();
    PlanSettings { top: asked.top.unwrap_or(defaults.top), asked, seed, ignore_cached: args.fresh, ..defaults }
}

/// Says on standard error what stands in for a profile.
fn tell(args: &PlanArgs, kernel: &dyn AnyKernel, adviser: &Adviser<'_>, budget: Duration) {
    let instead = match &adviser.predictor {
        Some(_) if args.model.is_none() && !adviser.is_profile() => {
            "its linear model ranks configurations instead".into()
        }
        None if args.budget.is_none() => {
            format!("tuning this very input for {}", seconds(budget.as_secs_f64()))
        }
        _ => return,
    };
    let (id, name) = (kernel.id(), &args.kernel);
    eprintln!("no profile of {id} for this device: {instead} (`tilewright tune {name}` makes one)");
}

fn answer(problem: &dyn Problem, p: &Planned) -> Answer {
    Answer {
        kernel: p.kernel.to_string(),
        input: p.input.clone(),
        device: problem.device().id.clone(),
        config: p.config.clone(),
        predicted_s: p.predicted_s,
        measured_s: p.measured_s,
        gflops: p.measured_s.map(|s| problem.work().flops / s / 1e9),
        verified: p.verified,
        max_rel_error: p.max_rel_error,
        considered: p.considered,
        cached: p.cached,
        looked_again: p.looked_again.clone(),
        model: p.decision.model.clone(),
        reason: p.reason.clone(),
        seconds: p.stats.seconds,
        search_s: p.stats.search_s,
        timed: p.stats.timed,
    }
}

pub(crate) fn run(args: &PlanArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let (problem, planned) = decide(args, wiring, seed)?;
    let answer = answer(&*problem, &planned);
    output.answer(&answer, || text(&answer))
}

pub(crate) fn explain(args: &PlanArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let (problem, planned) = decide(args, wiring, seed)?;
    let explained = Explained {
        answer: answer(&*problem, &planned),
        floor_s: floor(&*problem),
        alternatives: planned.decision.considered.clone(),
        default_config: problem.default_point().map(|p| problem.space().config(&p)),
    };
    output.answer(&explained, || explain_text(&explained))
}

fn floor(problem: &dyn Problem) -> Option<f64> {
    let (work, device) = (problem.work(), problem.device());
    let dtype = problem.input().get("dtype").map(ToString::to_string)?;
    let flops = device.measured.get(&format!("peak_flops_{dtype}"))?;
    let bytes = device.measured.get("memory_bytes_per_s")?;
    Some((work.flops / flops).max(work.bytes / bytes))
}

fn text(a: &Answer) -> String {
    let time = |s: Option<f64>| s.map_or("-".to_owned(), seconds);
    let rows = [
        ("config", a.config.to_string()),
        (
            "predicted",
            format!(
                "{}{}",
                time(a.predicted_s),
                a.model.as_ref().map_or(String::new(), |m| format!(" by the {m} model"))
            ),
        ),
        (
            "measured",
            format!("{}{}", time(a.measured_s), a.gflops.map_or(String::new(), |g| format!(", {g:.1} GFLOP/s"))),
        ),
        (
            "verified",
            match a.max_rel_error {
                Some(e) if a.verified => format!("yes, largest relative error {e:.1e}"),
                _ => "no".to_owned(),
            },
        ),
        ("chosen from", format!("{} configurations, {} timed, in {}", a.considered, a.timed, seconds(a.seconds))),
        ("why", a.reason.clone()),
    ];
    let mut out = format!("{} for {} on {}\n", a.kernel, a.input, a.device);
    for (name, value) in rows {
        let _ = writeln!(out, "  {name:<12} {value}");
    }
    out
}

fn explain_text(e: &Explained) -> String {
    let mut out = text(&e.answer);
    if let (Some(floor), Some(measured)) = (e.floor_s, e.answer.measured_s) {
        let share = 100.0 * floor / measured;
        let _ = writeln!(
            out,
            "  {:<12} {} by operations and memory traffic: this is {share:.0}% of it",
            "floor",
            seconds(floor)
        );
    }
    if let Some(config) = &e.default_config {
        let _ = writeln!(out, "  {:<12} {config}", "untuned");
    }
    let mut table = vec![["", "predicted", "measured", "config"].map(String::from).to_vec()];
    for (i, a) in e.alternatives.iter().enumerate() {
        let time = |s: Option<f64>| s.map_or("-".to_owned(), seconds);
        table.push(vec![(i + 1).to_string(), time(a.predicted_s), time(a.measured_s), a.config.to_string()]);
    }
    let _ = write!(out, "\nthe best alternatives:\n{}", aligned(&table));
    out
}
