//! `tilewright plan` and `explain`: the best configuration for an input, and why.

mod equals;

use crate::args::{ModelKind, PlanArgs};
use crate::device::{Opened, watched, with_peaks};
use crate::failure::{Failure, Kind};
use crate::fields;
use crate::output::{Output, aligned, note, seconds};
use crate::wiring::{Wiring, measure};
use equals::Equals;
use serde::Serialize;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tilewright::known::{LINEAR, TRANSFER};
use tilewright::planning::{Planning, Shooting, Shots};
use tilewright_core::decision::{Alternative, Selection, Variant};
use tilewright_core::device::DeviceSpec;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Measure, Problem};
use tilewright_core::space::Config;
use tilewright_core::text::counted;
use tilewright_runtime::plan::{Asked, PlanSettings, Planned};
use tilewright_search::Strategy;
use tilewright_search::drive::StoppedBy;
use tilewright_search::stop::Tolerance;

/// Looking around the model's best by measuring, unless `--budget` says how long.
const REFINE: Duration = Duration::from_secs(6);

/// The most that a strategy has that ends by its own rule, unless `--budget` says how long.
const STOPS: Duration = Duration::from_secs(600);

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
    /// Why the answer is not remembered, where it could not be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    unstored: Option<String>,
    /// What is wrong with stored files that would have had a say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<String>,
    /// The kernels that competed, the chosen one first.
    variants: Vec<Variant>,
    /// What ranked them before any was tried.
    selector: Option<Selection>,
    #[serde(flatten)]
    equals: Equals,
    seconds: f64,
    search_s: f64,
    /// Timings that gave a time; configurations that are compared with each other are timed again and again.
    timed: u64,
    /// Timings that failed or were cut off.
    failed: u64,
    /// Configurations that were timed, however often.
    timed_configs: u64,
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

/// An input bound to the kernel that was chosen for it, and why.
type Decided = (Box<dyn Problem>, Planned);

/// What a decision is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// An answer, which is remembered.
    Answer,
    /// The same where anything is known of the input.
    Known,
    /// An explanation, of which nothing is stored.
    Explanation,
}

/// Decides as `plan` does: the kernels of the computation compete, or the named one answers alone. Where only what is known counts and
/// nothing is, nothing is decided.
pub(super) fn decide(
    args: &PlanArgs,
    wiring: &Wiring,
    device: &mut Opened,
    seed: u64,
    purpose: Purpose,
) -> Result<Option<Decided>, Failure> {
    let (home, spec) = (wiring.home()?, device.spec().clone());
    let kernels = wiring.kernels.competing(&args.kernel, &spec, args.with_libraries)?;
    let mut planning = Planning {
        with_libraries: args.with_libraries,
        model: (args.model.map(ModelKind::name), args.profile.as_deref()),
        candidates: args.candidates.map(|count| count as usize),
        searching: Some(&mut |kernel, predictor, settings| tell(args, kernel, predictor, settings.budget)),
        ..Planning::new(&home, &kernels, &spec, Some(device), settings(args, seed)?)
    };
    if purpose == Purpose::Explanation {
        planning.settings.remember = false;
        // Nothing is run to explain what is predicted.
        planning.measure = planning.measure.filter(|_| args.top != Some(0));
    }
    let input = fields::parse(&args.input)?;
    if let (Some(count), Some(measure)) = (args.shots, planning.measure.as_deref_mut()) {
        let shooting = Shooting {
            home: &home,
            kernels: &kernels,
            with_libraries: args.with_libraries,
            device: &spec,
            fixed: &fields::deciding(&input),
            seed,
        };
        let mut told = |input: &Config, at: usize| note(format_args!("shot {} of {count}: {input}", at + 1));
        note(format_args!("{}", said(&shooting.time(measure, count as usize, &mut told)?)));
    }
    let prepared = planning.prepare(&input)?;
    if purpose == Purpose::Known && !prepared.is_anything_known()? {
        return Ok(None);
    }
    Ok(Some(prepared.decide()?))
}

/// What shots came to, for people.
fn said(shots: &Shots) -> String {
    let percent = |log: f64| 100.0 * (1.0 - (-log).exp());
    match shots.expected_loss {
        None => "no shots: this device has a selector of its own".to_owned(),
        Some(loss) => format!(
            "{} timed: choices are expected to lose {:.1}%, and one more shot to save {:.2}%",
            counted(shots.inputs.len(), "input"),
            percent(loss),
            percent(shots.next_saves)
        ),
    }
}

/// The same on a device that is opened for it.
fn opened(args: &PlanArgs, wiring: &Wiring, seed: u64, purpose: Purpose) -> Result<Decided, Failure> {
    let mut device = measure(&args.device)?;
    let spec = device.spec().clone();
    let decided = watched(&spec, || decide(args, wiring, &mut device, seed, purpose))?;
    decided.ok_or_else(|| Failure::new(Kind::Nothing, "input", "nothing is known of it"))
}

/// What the command line says of a decision.
fn settings(args: &PlanArgs, seed: u64) -> Result<PlanSettings, Failure> {
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
        profile: None,
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
fn tell(args: &PlanArgs, kernel: &dyn AnyKernel, predictor: Option<&dyn Predictor>, budget: Duration) {
    let instead = match predictor {
        Some(linear) if args.model.is_none() && linear.kind() == LINEAR => {
            "its linear model ranks configurations instead".into()
        }
        Some(other) if other.kind() == TRANSFER => "what other devices recorded ranks configurations instead".into(),
        None if args.budget.is_none() && args.top != Some(0) && !kernel.space().params().is_empty() => {
            format!("tuning this very input for {}", seconds(budget.as_secs_f64()))
        }
        _ => return,
    };
    let (id, name) = (kernel.id(), &args.kernel);
    note(format_args!("no profile of {id} for this device: {instead} (`tilewright tune {name}` makes one)"));
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
        knowledge: p.decision.knowledge.clone(),
        strategy: p.searched.as_ref().map(|s| s.strategy.clone()),
        evaluations: p.searched.as_ref().map(|s| s.evaluations),
        stopped_by: p.searched.as_ref().map(|s| s.stopped_by),
        bound: p.searched.as_ref().and_then(|s| s.bound),
        reason: p.reason.clone(),
        unstored: p.unstored.clone(),
        damaged: p.damaged.clone(),
        variants: p.decision.variants.clone(),
        selector: p.decision.selection.clone(),
        equals: Equals::of(&p.decision),
        seconds: p.stats.seconds,
        search_s: p.stats.search_s,
        timed: p.stats.timed,
        failed: p.stats.failed,
        timed_configs: p.stats.configs,
    }
}

pub(crate) fn run(args: &PlanArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let (problem, planned) = opened(args, wiring, seed, Purpose::Answer)?;
    let answer = answer(&*problem, &planned);
    output.answer(&answer, || text(&answer))
}

pub(crate) fn explain(args: &PlanArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let (problem, planned) = opened(args, wiring, seed, Purpose::Explanation)?;
    let explained = Explained {
        answer: answer(&*problem, &planned),
        floor_s: floor(&*problem, &*with_peaks(&args.device, &Arc::new(problem.device().clone()))?),
        alternatives: planned.decision.considered.clone(),
        default_config: problem.default_point().map(|p| problem.space().config(&p)),
    };
    output.answer(&explained, || explain_text(&explained))
}

/// The time that the operations take at the measured peak, or the bytes at the rate of the nearest memory that holds them all: data of
/// an earlier call may still lie there.
fn floor(problem: &dyn Problem, device: &DeviceSpec) -> Option<f64> {
    let work = problem.work();
    let rate = |name: &str| device.measured.get(name).copied();
    let dtype = problem.input().get("dtype").map_or_else(|| "f64".to_owned(), ToString::to_string);
    let holds = |bytes: &str| device.fact(bytes).is_some_and(|most| work.bytes <= most as f64);
    let nearest = ["l1d", "l2", "l3"].into_iter().find(|level| holds(&format!("{level}_bytes")));
    let name = nearest.map_or("memory", |level| level.trim_end_matches('d'));
    let bytes = rate(&format!("{name}_bytes_per_s")).or_else(|| rate("memory_bytes_per_s"))?;
    Some((work.flops / rate(&format!("peak_flops_{dtype}"))?).max(work.bytes / bytes))
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
            format!(
                "{}{}",
                time(a.measured_s),
                a.gflops.filter(|g| *g > 0.0).map_or(String::new(), |g| format!(", {g:.1} GFLOP/s"))
            ),
        ),
        (
            "verified",
            match a.max_rel_error {
                Some(e) if a.verified => format!("yes, largest relative error {e:.1e}"),
                _ => "no".to_owned(),
            },
        ),
        ("chosen from", format!("{}{}", counted(a.considered, "configuration"), timings(a))),
        ("why", a.reason.clone()),
    ];
    let mut out = format!("{} for {} on {}\n", a.kernel, a.input, a.device);
    for (name, value) in rows {
        let _ = writeln!(out, "  {name:<12} {value}");
    }
    out
}

/// How many of the configurations were timed, and how often: the best of them are timed several times.
fn timings(a: &Answer) -> String {
    let took = seconds(a.seconds);
    match a.timed_configs {
        _ if a.cached => format!(" when it was decided; nothing was timed for this answer, which took {took}"),
        0 => format!(", none of them timed, in {took}"),
        some => {
            let some = if some == a.considered { "all".to_owned() } else { some.to_string() };
            let failed = if a.failed == 0 { String::new() } else { format!(" ({} failed or cut off)", a.failed) };
            format!(", {some} of them timed: {}{failed}, in {took}", counted(a.timed + a.failed, "timing"))
        }
    }
}

fn explain_text(e: &Explained) -> String {
    let mut out = text(&e.answer);
    if let (Some(floor), Some(measured)) = (e.floor_s, e.answer.measured_s) {
        let share = 100.0 * floor / measured;
        let _ = writeln!(
            out,
            "  {:<12} {} by operations and memory traffic: {share:.0}% of the measured time",
            "floor",
            seconds(floor)
        );
    }
    if let Some(config) = &e.default_config {
        let _ = writeln!(out, "  {:<12} {config}", "untuned");
    }
    let time = |s: Option<f64>| s.map_or("-".to_owned(), seconds);
    let default = e.default_config.clone().unwrap_or_default();
    let mut table = vec![["", "predicted", "measured", "kernel", "where not untuned"].map(String::from).to_vec()];
    for (i, a) in e.alternatives.iter().enumerate() {
        let row =
            [time(a.predicted_s), time(a.measured_s), a.kernel.to_string(), a.config.differing(&default).to_string()];
        table.push([vec![(i + 1).to_string()], row.to_vec()].concat());
    }
    let _ = write!(out, "\nthe best alternatives:\n{}", aligned(&table));
    e.answer.equals.tell(&mut out, &default);
    if let Some(Selection { method, inputs, fraction_of_oracle, ranked, .. }) = &e.answer.selector {
        let share =
            fraction_of_oracle.map_or(String::new(), |f| format!(", {:.1}% of the best on unseen ones", 100.0 * f));
        let _ = write!(out, "\n\nranked by the selector ({method}, learned on {}{share}):", counted(inputs, "input"));
        ranked.iter().enumerate().for_each(|(i, kernel)| out.push_str(&format!("\n{:>3} {kernel}", i + 1)));
    }
    if e.answer.variants.len() > 1 {
        let mut table = vec![["", "predicted", "measured", "left out because"].map(String::from).to_vec()];
        for v in &e.answer.variants {
            let why = v.reason.clone().unwrap_or_default();
            table.push(vec![v.name.to_string(), time(v.predicted_s), time(v.measured_s), why]);
        }
        let _ = write!(out, "\n\nthe kernels:\n{}", aligned(&table));
    }
    out
}
