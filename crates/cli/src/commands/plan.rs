//! `tilewright plan` and `explain`: the best configuration for an input, and why.

use crate::args::PlanArgs;
use crate::device::Opened;
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, seconds};
use crate::wiring::{Adviser, Wiring, home};
use crate::words;
use serde::Serialize;
use std::fmt::Write as _;
use std::time::Duration;
use tilewright_core::decision::Alternative;
use tilewright_core::objective::Objective;
use tilewright_core::problem::{AnyKernel, Measure, Problem};
use tilewright_core::space::Config;
use tilewright_runtime::RuntimeError;
use tilewright_runtime::plan::{Asked, PlanSettings, Planned, Planner, Ranking};
use tilewright_runtime::plan_cache::{Lookup, PlanCache};
use tilewright_search::Strategy;
use tilewright_search::drive::StoppedBy;
use tilewright_search::stop::Tolerance;

/// Looking around the model's best by measuring, unless `--budget` says how long.
const REFINE: Duration = Duration::from_secs(6);

/// The most that a strategy has that ends by its own rule, unless `--budget` says how long.
const STOPS: Duration = Duration::from_secs(600);

/// Everything a decision needs, held together for one command.
pub(crate) struct Desk<'a> {
    pub(crate) adviser: Adviser<'a>,
    pub(crate) device: &'a mut Opened,
    pub(crate) cache: Option<PlanCache>,
}

impl Desk<'_> {
    /// Decides one problem.
    pub(crate) fn plan(&mut self, problem: &dyn Problem, settings: PlanSettings) -> Result<Planned, RuntimeError> {
        let device = self.device.spec().clone();
        let mut sampler = self.adviser.sampler();
        let settings = PlanSettings { ranking: self.adviser.ranking.clone(), ..settings };
        let mut planner = Planner {
            kernel: self.adviser.kernel,
            device: &device,
            measure: Some(&mut *self.device),
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
    /// What was known before anything was measured.
    knowledge: String,
    /// What searched by measuring, and how many configurations it had measured; null where nothing was searched.
    strategy: Option<String>,
    evaluations: Option<u64>,
    /// Why it ended: by its own bound, which follows, time, evaluations, or because nothing was left.
    stopped_by: Option<StoppedBy>,
    bound: Option<f64>,
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
pub(super) fn decide(
    args: &PlanArgs,
    wiring: &Wiring,
    device: &mut Opened,
    seed: u64,
) -> Result<(Box<dyn Problem>, Planned), Failure> {
    let spec = device.spec().clone();
    let kernel = wiring.kernel(&args.kernel, &args.device)?;
    let words = words::parse(&args.input)?;
    let problem = wiring.problem(kernel, &spec, &words)?;
    let mut adviser = wiring.adviser((args.model, args.profile.as_deref()), kernel, &spec, &problem.input())?;
    if let Ranking::Sample(how) = &mut adviser.ranking {
        how.points = args.candidates as usize;
    }
    let cache = PlanCache::new(home()?.plans());
    let cached = (!args.fresh).then(|| cache.get(&*problem, &Objective::default()));
    let settings = settings(args, seed, adviser.origin.clone())?;
    let known = match &cached {
        Some(Ok(Lookup::Hit(plan, _))) => settings.asked.exceeds(plan).is_none(),
        // A damaged entry is planning's to tell.
        Some(Err(_)) => true,
        _ => false,
    };
    if !known {
        tell(args, kernel, &adviser, settings.budget);
    }
    let mut desk = Desk { adviser, device, cache: Some(cache) };
    let planned = desk.plan(&*problem, settings)?;
    Ok((problem, planned))
}

/// The same on a device that is opened for it.
fn opened(args: &PlanArgs, wiring: &Wiring, seed: u64) -> Result<(Box<dyn Problem>, Planned), Failure> {
    wiring.kernel(&args.kernel, &args.device)?;
    decide(args, wiring, &mut wiring.measure(&args.device)?, seed)
}

/// What the command line says of a decision by a model that was read from the file with this checksum.
fn settings(args: &PlanArgs, seed: u64, profile: Option<String>) -> Result<PlanSettings, Failure> {
    let strategy = args.strategy.as_deref().unwrap_or(Strategy::Refine.name());
    let strategy = strategy.parse::<Strategy>().map_err(|e| Failure::new(Kind::Usage, "strategy", e))?;
    let asks = args.epsilon.is_some() || args.alpha.is_some();
    let Tolerance { epsilon, alpha } = Tolerance::default();
    let tolerance = Tolerance::new(args.epsilon.unwrap_or(epsilon), args.alpha.unwrap_or(alpha));
    let tolerance = tolerance.map_err(|e| Failure::new(Kind::Usage, e.what, e))?;
    let asked = Asked {
        budget: args.budget,
        top: args.top.map(|top| top as usize),
        model: args.model.map(|model| model.name().to_owned()),
        profile,
        strategy: args.strategy.as_ref().map(|_| strategy.name().to_owned()),
        tolerance: asks.then_some(tolerance),
    };
    let mut settings = PlanSettings { seed, ignore_cached: args.fresh, ..PlanSettings::default() };
    settings.top = asked.top.unwrap_or(settings.top);
    (settings.strategy, settings.tolerance, settings.asked) = (strategy.into(), asked.tolerance, asked);
    settings.refine = args.budget.unwrap_or(REFINE);
    settings.budget = args.budget.unwrap_or(settings.budget);
    if args.budget.is_none() && (strategy.stops() || asks) {
        (settings.refine, settings.budget) = (STOPS, STOPS);
    }
    Ok(settings)
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
        knowledge: p.decision.model.clone().unwrap_or_else(|| "default".into()),
        strategy: p.searched.as_ref().map(|s| s.strategy.clone()),
        evaluations: p.searched.as_ref().map(|s| s.evaluations),
        stopped_by: p.searched.as_ref().map(|s| s.stopped_by),
        bound: p.searched.as_ref().and_then(|s| s.bound),
        reason: p.reason.clone(),
        seconds: p.stats.seconds,
        search_s: p.stats.search_s,
        timed: p.stats.timed,
    }
}

pub(crate) fn run(args: &PlanArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let (problem, planned) = opened(args, wiring, seed)?;
    let answer = answer(&*problem, &planned);
    output.answer(&answer, || text(&answer))
}

pub(crate) fn explain(args: &PlanArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let (problem, planned) = opened(args, wiring, seed)?;
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
