//! `tilewright run`: every kernel of a computation once against the reference, then all beside each other and the libraries.

use super::contest::Contest;
use super::plan::Purpose;
use crate::args::{PlanArgs, RunArgs};
use crate::device::{Opened, watched};
use crate::failure::{Failure, Kind};
use crate::fields;
use crate::output::{Output, aligned, seconds};
use crate::progress::Bar;
use crate::wiring::{Wiring, measure};
use serde::Serialize;
use std::sync::Arc;
use tilewright::planning::problem;
use tilewright_baselines::{Identity, identities};
use tilewright_core::id::KernelId;
use tilewright_core::measurement::{CachePolicy, FailureKind};
use tilewright_core::objective::Objective;
use tilewright_core::problem::{Measure, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_core::text::counted;
use tilewright_runtime::RuntimeError;
use tilewright_runtime::contest::{Entrant, Standing, contest, libraries};
use tilewright_runtime::plan::Planned;
use tilewright_runtime::plan_cache::{Lookup, PlanCache};
use tilewright_runtime::verify::VerifySettings;

/// One kernel of the computation.
#[derive(Serialize)]
struct Row {
    name: String,
    config: Option<Config>,
    time_s: Option<f64>,
    /// Its time / the chosen one's.
    ratio: Option<f64>,
    /// Why it has no time: a rule, or no result on these data.
    reason: Option<String>,
    /// What of the configuration is not the default.
    #[serde(skip)]
    changed: Config,
}

#[derive(Serialize)]
struct BaselineRow {
    name: String,
    time_s: f64,
    /// Its time / our time: above 1, we are faster.
    ratio: f64,
}

#[derive(Serialize)]
struct Answer {
    kernel: String,
    /// The kernel that was planned; the fastest where nothing is known of the input.
    variant: String,
    input: Config,
    config: Config,
    time_s: f64,
    gflops: f64,
    bytes_per_s: f64,
    max_rel_error: f64,
    /// What the features of the input cost, in seconds.
    features_s: Option<f64>,
    cache_policy: &'static str,
    /// Why the plan is not remembered, where one was made and could not be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    unstored: Option<String>,
    variants: Vec<Row>,
    baselines: Vec<BaselineRow>,
    /// The libraries behind the baselines: version, file, and the core whose code they run.
    libraries: Vec<Identity>,
}

/// Where there are several kernels: those this far behind the best are soon timed no more.
const DROP_BEYOND: f64 = 0.5;

pub(crate) fn run(args: &RunArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let mut device = measure(&args.device)?;
    let kernels = wiring.kernels.competing(&args.kernel, device.spec(), false)?;
    let mut how = Contest::of(device.spec(), &kernels[0].computation(), &args.baselines, seed)?;
    how.settings.verify = VerifySettings { seed, ..VerifySettings::default() };
    let fields = fields::parse(&args.input)?;
    let chosen = chosen(args, wiring, &mut device, seed)?;
    let (mut rows, mut entrants, mut refused, mut wrong) = (Vec::new(), Vec::new(), None, None);
    for kernel in &kernels {
        let (mut config, mut reason, mut changed) = (None, None, Config::default());
        let name = kernel.id().to_string();
        let problem: Arc<dyn Problem> = match problem(&**kernel, device.spec(), &fields) {
            Ok(problem) => problem.into(),
            // Some kernels have code for some inputs only.
            Err(error) if kernels.len() > 1 => {
                let error = Failure::from(error);
                rows.push(Row {
                    name,
                    config,
                    time_s: None,
                    ratio: None,
                    reason: Some(error.message.clone()),
                    changed,
                });
                refused.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        match point(args, wiring, &*problem, chosen.as_ref()) {
            Ok(point) => {
                let space = problem.space();
                let default = problem.default_point().map(|point| space.config(&point)).unwrap_or_default();
                changed = space.config(&point).differing(&default);
                config = Some(space.config(&point));
                entrants.push(Entrant { name: name.clone(), problem, point });
            }
            Err(failure) if kernels.len() > 1 && matches!(failure.kind, Kind::Nothing | Kind::Input) => {
                reason = Some(failure.message.clone());
                wrong.get_or_insert(failure);
            }
            Err(failure) => return Err(failure),
        }
        rows.push(Row { name, config, time_s: None, ratio: None, reason, changed });
    }
    // What is wrong with a configuration comes before what other kernels have no code for.
    let failed = wrong.filter(|_| args.config.is_some()).or(refused);
    if let Some(failed) = failed.filter(|_| entrants.is_empty()) {
        return Err(failed);
    }
    if kernels.len() > 1 {
        how.settings.drop_beyond = DROP_BEYOND;
    }
    let ours = entrants.len();
    if let Some(entrant) = entrants.first() {
        let input = entrant.problem.input();
        let (found, missing) = libraries(&mut device, &how.libraries, &input, &how.settings)?;
        missing.iter().for_each(|reason| tracing::warn!(reason, "no baseline"));
        entrants.extend(found);
    }
    let doing = {
        let (ours, others) = (counted(ours, "kernel"), counted(entrants.len() - ours, "library routine"));
        format!("checking and timing {ours} and {others}")
    };
    let (bar, spec) = (Bar::working("run", doing), device.spec().clone());
    let standings = watched(&spec, || contest(&mut device, &entrants, &how.settings))?;
    bar.finish();
    warn(&entrants[ours..], &standings[ours..]);
    let best = fill(&mut rows, &entrants[..ours], &standings, chosen.as_ref().map(|planned| &planned.kernel))?;
    let unstored = chosen.and_then(|planned| planned.unstored);
    let answer = Answer { unstored, ..answer(&entrants, &standings, (ours, best), rows) };
    output.answer(&answer, || text(&answer))
}

/// Says which routines of libraries have no time.
fn warn(libraries: &[Entrant], standings: &[Standing]) {
    for (entrant, standing) in libraries.iter().zip(standings) {
        if let Err(failure) = &standing.cost {
            tracing::warn!(name = entrant.name, %failure, "not timed");
        }
    }
}

/// Writes the rows of our kernels, and gives the one that counts: what a plan chose; without one, or where that has no result, the
/// fastest.
fn fill(
    rows: &mut [Row],
    ours: &[Entrant],
    standings: &[Standing],
    chosen: Option<&KernelId>,
) -> Result<usize, Failure> {
    let mut timed: Vec<(usize, f64)> = Vec::new();
    for (at, (entrant, standing)) in ours.iter().zip(standings).enumerate() {
        let Some(row) = rows.iter_mut().find(|row| row.name == entrant.name) else { continue };
        match &standing.cost {
            Ok(time) => {
                row.time_s = Some(*time);
                timed.push((at, *time));
            }
            Err(failure) if failure.kind == FailureKind::Wrong => {
                return Err(Failure::new(Kind::Wrong, "result", format!("{}: {}", entrant.name, failure.message)));
            }
            Err(failure) => row.reason = Some(failure.message.clone()),
        }
    }
    let planned = timed.iter().find(|(at, _)| Some(&ours[*at].problem.kernel()) == chosen);
    let Some(&(at, time)) = planned.or(timed.iter().min_by(|a, b| a.1.total_cmp(&b.1))) else {
        let why = rows.iter().filter_map(|row| row.reason.as_deref()).next_back().unwrap_or_default();
        let kind = if rows.len() == 1 { Kind::Device } else { Kind::Nothing };
        return Err(Failure::new(kind, "variant", format!("no kernel has a result: {why}")));
    };
    rows.iter_mut().for_each(|row| row.ratio = row.time_s.map(|s| s / time));
    Ok(at)
}

fn answer(entrants: &[Entrant], standings: &[Standing], (ours, best): (usize, usize), variants: Vec<Row>) -> Answer {
    let Entrant { problem, point, .. } = &entrants[best];
    // Features are found in data when they are asked for, and then have a cost.
    problem.input_features(&mut Vec::new());
    let time = |at: usize| standings[at].cost.as_ref().ok().copied();
    let (work, time_s) = (problem.work(), time(best).unwrap_or(f64::NAN));
    let baselines = (ours..entrants.len()).filter_map(|at| {
        let (name, other_s) = (entrants[at].name.clone(), time(at)?);
        Some(BaselineRow { name, time_s: other_s, ratio: other_s / time_s })
    });
    Answer {
        kernel: problem.computation().to_string(),
        variant: problem.kernel().to_string(),
        input: problem.input(),
        config: problem.space().config(point),
        time_s,
        gflops: work.flops / time_s / 1e9,
        bytes_per_s: work.bytes / time_s,
        max_rel_error: standings[best].max_rel_error,
        features_s: problem.features_seconds(),
        cache_policy: CachePolicy::Warm.name(),
        unstored: None,
        variants,
        baselines: baselines.collect(),
        libraries: identities(&entrants[ours..].iter().map(|e| e.problem.kernel()).collect::<Vec<_>>()),
    }
}

/// The plan of the input where anything is known of its kernels: a cached plan, a profile, the device's weights, a selector. None where
/// nothing is, or where the configuration is given.
fn chosen(args: &RunArgs, wiring: &Wiring, device: &mut Opened, seed: u64) -> Result<Option<Planned>, Failure> {
    if args.config.is_some() {
        return Ok(None);
    }
    let (kernel, input) = (args.kernel.clone(), args.input.clone());
    let args = PlanArgs { kernel, input, device: args.device.clone(), ..PlanArgs::default() };
    Ok(super::plan::decide(&args, wiring, device, seed, Purpose::Known)?.map(|(_, planned)| planned))
}

/// A kernel's configuration: the chosen one, else from the plan cache, else the kernel's own default; and over it what is asked for.
fn point(args: &RunArgs, wiring: &Wiring, problem: &dyn Problem, chosen: Option<&Planned>) -> Result<Point, Failure> {
    if let Some(planned) = chosen.filter(|planned| planned.kernel == problem.kernel()) {
        return Ok(planned.point.clone());
    }
    let cache = PlanCache::new(wiring.home()?.plans());
    let best = match cache.get(problem, &Objective::default()).map_err(RuntimeError::from)? {
        Lookup::Hit(_, point) => point,
        _ => problem.default_point().ok_or_else(|| Failure::nothing_legal(problem.space()))?,
    };
    let Some(text) = &args.config else { return Ok(best) };
    let point = super::emit::given(text, problem, Some(&best))?;
    problem.space().check(&point).map_err(|e| Failure::new(Kind::Input, "config", e))?;
    Ok(point)
}

fn text(a: &Answer) -> String {
    let mut table = vec![["", "time", "ratio", "where not the default"].map(String::from).to_vec()];
    for row in &a.variants {
        let time = row.time_s.map_or("-".to_owned(), seconds);
        let ratio = row.ratio.map_or(String::new(), |r| format!("{r:.2}"));
        let what = row.reason.clone().unwrap_or_else(|| row.changed.to_string());
        table.push(vec![row.name.clone(), time, ratio, what]);
    }
    for row in &a.baselines {
        table.push(vec![row.name.clone(), seconds(row.time_s), format!("{:.2}", row.ratio), String::new()]);
    }
    let libraries: String = a.libraries.iter().map(|library| format!("\nwith {library}")).collect();
    format!(
        "{} for {}\n{}: {}, {}{:.2} GB/s; right, largest relative error {:.1e}; caches {}\n\n{}{libraries}",
        a.kernel,
        a.input,
        a.variant,
        seconds(a.time_s),
        if a.gflops > 0.0 { format!("{:.2} GFLOP/s, ", a.gflops) } else { String::new() },
        a.bytes_per_s / 1e9,
        a.max_rel_error,
        a.cache_policy,
        aligned(&table)
    )
}
