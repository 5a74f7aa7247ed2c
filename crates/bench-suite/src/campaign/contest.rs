//! Tasks planned with the profiles and compared with the vendor's library: the usual ones of the computation, and square sizes.

use super::rows::{BaselineRow, DEEPBENCH, KernelRow, SWEEP, Spent, TYPES, Tables};
use super::stages::{self, Progress};
use super::state::State;
use super::{Campaign, CampaignError, Deadline};
use crate::tasks::{Task, TaskSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilewright_baselines::{device_kernels, kernels};
use tilewright_core::computation::InputError;
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::expr::Value;
use tilewright_core::measurement::{CachePolicy, FailureKind, Timing};
use tilewright_core::objective::Objective;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Problem};
use tilewright_core::search::Search;
use tilewright_core::space::{Config, Point};
use tilewright_runtime::contest::{ContestSettings, Entrant, Standing, again, contest, libraries};
use tilewright_runtime::knowledge::{Knowledge, Ranking, Shared as Source};
use tilewright_runtime::store::Profile;
use tilewright_runtime::tune::TunePaths;
use tilewright_runtime::{Live, RuntimeError};
use tilewright_sampler::Chained;
use tilewright_search::drive::{Budget, DriveError, Limits};
use tilewright_search::strategy::{Local, Refine};
use tilewright_search::{Evaluator, Sampling, Setup, drive};

pub use super::rows::TaskRow;

/// A configuration this many times slower than the best so far is cut off.
const CUT_OFF: f64 = 2.5;

/// Configurations of a kernel that are timed, however little time there is.
const LEAST: u64 = 2;

/// Configurations of a kernel that are checked, and timed beside the others.
const FINALISTS: usize = 3;

/// The share of a task's time that the model may take, and the most of it.
const RANKING_SHARE: f64 = 0.25;
const LONGEST_RANKING: Duration = Duration::from_secs(2);

/// The share of a task's time that is kept for checking the finalists and timing them beside the libraries.
const CONTEST_SHARE: f64 = 0.35;

/// Tasks with the class of inputs that each is of.
type Classed = (Task, String);

/// The usual tasks.
pub(super) fn table(
    campaign: &Campaign<'_>,
    state: &mut State,
    deadline: Deadline<'_>,
) -> Result<Progress, CampaignError> {
    let usual = stages::table(&campaign.computation());
    let tasks = tasks(campaign.classes(), |class| of_set(campaign, usual, class))?;
    run(usual.stage(), tasks, campaign, state, deadline)
}

/// The tasks of a set, as large as the campaign has them.
fn of_set(campaign: &Campaign<'_>, set: TaskSet, class: &Config) -> Result<Vec<Task>, InputError> {
    let shrink = campaign.settings.scale.shrink;
    Ok(set.tasks(campaign.kernels[0], class)?.into_iter().map(|task| smaller(task, shrink)).collect())
}

/// The usual tasks in other types.
pub(super) fn types(
    campaign: &Campaign<'_>,
    state: &mut State,
    deadline: Deadline<'_>,
) -> Result<Progress, CampaignError> {
    let (usual, most) = (stages::table(&campaign.computation()), campaign.settings.scale.each_type);
    let of = |class: &Config| Ok(of_set(campaign, usual, class)?.into_iter().take(most).collect());
    run(TYPES, tasks(campaign.other_types(), of)?, campaign, state, deadline)
}

/// The products of DeepBench, in all types.
pub(super) fn deepbench(
    campaign: &Campaign<'_>,
    state: &mut State,
    deadline: Deadline<'_>,
) -> Result<Progress, CampaignError> {
    let is_gemm = campaign.computation().as_str() == "gemm";
    let classes = campaign.classes().into_iter().chain(campaign.other_types()).filter(|_| is_gemm).collect();
    let most = campaign.settings.scale.each_type;
    let of = |class: &Config| Ok(of_set(campaign, TaskSet::DeepBenchProducts, class)?.into_iter().take(most).collect());
    run(DEEPBENCH, tasks(classes, of)?, campaign, state, deadline)
}

/// Square sizes, of the computation that has them.
pub(super) fn sweep(
    campaign: &Campaign<'_>,
    state: &mut State,
    deadline: Deadline<'_>,
) -> Result<Progress, CampaignError> {
    let is_gemm = campaign.kernels[0].computation().as_str() == "gemm";
    let sizes = campaign.settings.scale.sweep.iter().filter(|_| is_gemm);
    let square = |size: usize, class: &Config| {
        let sizes = ["m", "n", "k"].map(|name| (name.to_owned(), Value::from(size))).into_iter();
        let layout = [("layout".to_owned(), "nn".into())];
        Task { name: format!("square-{size}"), input: Config(sizes.chain(layout).chain(class.0.clone()).collect()) }
    };
    let of = |class: &Config| Ok(sizes.clone().map(|&size| square(size, class)).collect());
    run(SWEEP, tasks(campaign.classes(), of)?, campaign, state, deadline)
}

/// The tasks of these classes.
fn tasks(
    classes: Vec<(String, Config)>,
    of: impl Fn(&Config) -> Result<Vec<Task>, InputError>,
) -> Result<Vec<Classed>, CampaignError> {
    let mut all = Vec::new();
    for (name, class) in classes {
        all.extend(of(&class).map_err(RuntimeError::from)?.into_iter().map(|task| (task, name.clone())));
    }
    Ok(all)
}

/// What stands for a filter of a convolution: it stays as it is.
const FILTER: [&str; 4] = ["r", "s", "pad", "stride"];

/// The task with its sizes divided. Images of convolutions keep what a filter spans.
fn smaller(mut task: Task, by: usize) -> Task {
    if by > 1 {
        task.name = format!("{}/{by}", task.name);
        let number = |name: &str| task.input.get(name).and_then(Value::as_int);
        let pad = number("pad").unwrap_or(0);
        let spans =
            [("h", number("r")), ("w", number("s"))].map(|(name, taps)| (name, taps.map_or(1, |t| t - 2 * pad)));
        for (name, value) in task.input.0.iter_mut().filter(|(name, _)| !FILTER.contains(&name.as_str())) {
            let least = spans.iter().find(|(of, _)| of == name).map_or(1, |(_, least)| *least);
            if let Some(size) = value.as_int() {
                *value = Value::Int((size / by as i64).max(least).max(1));
            }
        }
    }
    task
}

fn run(
    stage: &'static str,
    tasks: Vec<Classed>,
    campaign: &Campaign<'_>,
    state: &State,
    deadline: Deadline<'_>,
) -> Result<Progress, CampaignError> {
    if tasks.is_empty() {
        return Ok(Progress { done: true, note: format!("{}: no tasks", campaign.kernels[0].computation()) });
    }
    let out = &campaign.settings.out;
    let mut tables = Tables::read(out)?;
    let predictors = predictors(campaign)?;
    let trained: Vec<String> = campaign.classes().into_iter().map(|(name, _)| name).collect();
    let known = |tables: &Tables, (t, class): &Classed| tables.has(stage, &t.name, class);
    let total = tasks.len();
    let missing: Vec<&Classed> = tasks.iter().filter(|t| !known(&tables, t)).collect();
    for (at, (task, class)) in missing.iter().enumerate() {
        let left = deadline.left_s();
        if left <= 0.0 {
            break;
        }
        // A first task that takes its time leaves some for the others.
        let end = Instant::now() + Duration::from_secs_f64(left / (missing.len() - at) as f64);
        (campaign.note)(&format!("{stage}: {} {class}", task.name));
        // A model says nothing of types that it was not trained on.
        let predictors = trained.contains(class).then_some(&*predictors);
        let contest = Contest { campaign, task, class, predictors, deadline: deadline.until(end) };
        if let Some(row) = contest.row(stage, state)? {
            tables.rows.push(row);
            // It was judged without this one.
            tables.pool = None;
            tables.write(out, state)?;
        }
    }
    tables.write(out, state)?;
    let have = tasks.iter().filter(|t| known(&tables, t)).count();
    let means: Vec<String> = tables.geomeans().iter().map(|(t, g)| format!("{t} {g:.3}")).collect();
    let means = if means.is_empty() { String::new() } else { format!("; default over ours: {}", means.join(", ")) };
    Ok(Progress { done: have == total, note: format!("{have} of {total} tasks{means}") })
}

/// What the profiles of the folder predict with, kernel by kernel.
fn predictors(campaign: &Campaign<'_>) -> Result<Vec<Option<Box<dyn Predictor>>>, CampaignError> {
    let one = |(kernel, paths): (&&dyn AnyKernel, TunePaths)| {
        if !paths.profile.exists() {
            return Ok(None);
        }
        let (profile, schema) = (Profile::read(&paths.profile)?, kernel.schema());
        profile.expect(&paths.profile, &kernel.id(), &campaign.spec(), &schema)?;
        let loaded = campaign.trainer.load(&profile.model, &schema);
        Ok(Some(loaded.map_err(RuntimeError::from)?))
    };
    campaign.kernels.iter().zip(campaign.paths()).map(one).collect()
}

/// The best configurations of each kernel.
#[derive(Default)]
struct Finalists {
    entrants: Vec<Entrant>,
    /// What the model expected of each.
    predicted: Vec<Option<f64>>,
    /// How many configurations were timed in all.
    timed: usize,
    /// Seconds of the host for what the model was asked.
    ranking_s: f64,
}

/// The best configurations of one kernel, best first.
#[derive(Default)]
struct Planned {
    best: Vec<Timed>,
    timed: u64,
    ranking_s: f64,
}

/// One task.
struct Contest<'a> {
    campaign: &'a Campaign<'a>,
    task: &'a Task,
    class: &'a str,
    /// Of each kernel, where models know the class.
    predictors: Option<&'a [Option<Box<dyn Predictor>>]>,
    deadline: Deadline<'a>,
}

/// A configuration that was timed, and what the model expected of it.
type Timed = (Point, Option<f64>);

impl Contest<'_> {
    /// The best configurations of each kernel beside the libraries; None if nothing is legal, or nothing ran.
    fn row(&self, stage: &str, state: &State) -> Result<Option<TaskRow>, CampaignError> {
        let (campaign, spec) = (self.campaign, self.campaign.spec());
        let began = Instant::now();
        let Finalists { mut entrants, predicted, timed, ranking_s } = self.finalists(&spec)?;
        let search_s = began.elapsed().as_secs_f64();
        if entrants.is_empty() {
            return Ok(None);
        }
        let settings = self.settings(&spec);
        let mut device = campaign.device();
        let mut measure = Live::new(&mut *device).seed(campaign.settings.seed);
        let (libraries, mut missing) = libraries(&mut measure, &self.libraries(&spec), &self.task.input, &settings)?;
        let ours = entrants.len();
        entrants.extend(libraries);
        let standings = contest(&mut measure, &entrants, &settings)?;
        let costs: Vec<Option<f64>> = standings.iter().map(|s| s.cost.as_ref().ok().copied()).collect();
        let is_wrong = |s: &&Standing| s.cost.as_ref().is_err_and(|f| f.kind == FailureKind::Wrong);
        let complaint = |(e, s): (&Entrant, &Standing)| {
            let config = e.problem.space().config(&e.point);
            Some(format!("{} {config}: {}", e.name, s.cost.as_ref().err().filter(|_| is_wrong(&s))?))
        };
        let mut wrong: Vec<String> = entrants.iter().zip(&standings).take(ours).filter_map(complaint).collect();
        let best = (0..ours).filter_map(|at| Some((costs[at]?, at))).min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((cost, at)) = best else {
            let Some(last) = wrong.pop() else { return Ok(None) };
            return Err(CampaignError::NothingRight { task: self.task.name.clone(), tried: ours, last });
        };
        let (baselines, failed) = baselines(&entrants[ours..], &standings[ours..]);
        missing.extend(failed);
        let mut row =
            TaskRow::new(stage, (self.task, self.class), &*entrants[at].problem, &entrants[at].point, cost, baselines);
        if stage == stages::table(&campaign.computation()).stage() && spec.kind != DeviceKind::Cpu {
            let baselines = (ours..entrants.len()).filter(|at| costs[*at].is_some());
            let right: Vec<&Entrant> = std::iter::once(at).chain(baselines).map(|at| &entrants[at]).collect();
            let timing = Timing { cache: CachePolicy::Cold, ..settings.timing.clone() };
            let mut cold = again(&mut measure, &right, &ContestSettings { timing, ..settings })?.into_iter();
            row.cold(cold.next().flatten(), cold);
        }
        row.metric.clone_from(&campaign.objective.metric);
        (row.predicted, row.timed, row.wrong, row.missing) = (predicted[at], timed, wrong, missing);
        row.fitted = state.fitted;
        row.kernels = best_of_each(&entrants[..ours], &costs);
        row.spent = Some(Spent { ranking_s, search_s, contest_s: began.elapsed().as_secs_f64() - search_s });
        if campaign.objective == Objective::default() {
            row.rates();
        }
        Ok(Some(row))
    }

    /// Planned in the time that the contest leaves.
    fn finalists(&self, spec: &Arc<DeviceSpec>) -> Result<Finalists, CampaignError> {
        let kernels = &self.campaign.kernels;
        let mut out = Finalists::default();
        let end = Instant::now() + Duration::from_secs_f64(self.deadline.left_s() * (1.0 - CONTEST_SHARE));
        for (at, kernel) in kernels.iter().enumerate() {
            // What is left is shared by the kernels that are left.
            let share = self.deadline.until(end).left_s() / (kernels.len() - at) as f64;
            let Ok(problem) = kernel.problem(spec, &self.task.input) else { continue };
            let problem: Arc<dyn Problem> = problem.into();
            let planned = self.plan(&*problem, at, share)?;
            out.timed += planned.timed as usize;
            out.ranking_s += planned.ranking_s;
            for (point, cost) in planned.best.into_iter().take(FINALISTS) {
                out.entrants.push(Entrant { name: kernel.id().to_string(), problem: problem.clone(), point });
                out.predicted.push(cost);
            }
        }
        Ok(out)
    }

    fn settings(&self, device: &DeviceSpec) -> ContestSettings {
        let Campaign { objective, settings, .. } = self.campaign;
        let usual = ContestSettings::on(device, settings.seed);
        let rounds = settings.scale.rounds;
        let (objective, min_rounds) = (objective.clone(), rounds.min(usual.min_rounds));
        ContestSettings { objective, rounds, min_rounds, timing: settings.scale.timing(usual.timing.clone()), ..usual }
    }

    /// The routines of a GPU are asked for wherever they are, so that a table says why they are absent.
    fn libraries(&self, spec: &DeviceSpec) -> Vec<Arc<dyn AnyKernel>> {
        let computation = self.campaign.computation();
        match spec.kind {
            DeviceKind::Cpu => kernels(computation.as_str(), spec),
            _ => device_kernels(computation.as_str()),
        }
    }

    /// Refines what the model expects most of by measuring.
    fn plan(&self, problem: &dyn Problem, at: usize, seconds: f64) -> Result<Planned, CampaignError> {
        let Campaign { kernels, objective, settings, .. } = self.campaign;
        let (scale, began) = (&settings.scale, Instant::now());
        let mut sampler = Chained::new(kernels[at].space(), tilewright_sampler::Settings::default());
        let limit = Duration::from_secs_f64(seconds * RANKING_SHARE).min(LONGEST_RANKING);
        let ranking = Ranking::Sample(Sampling { points: scale.scored, climbs: scale.climbs, limit });
        let predictor = self.predictors.and_then(|all| all[at].as_deref());
        let knowledge = Knowledge::ask(problem, predictor, (&ranking, scale.timed), &mut sampler, settings.seed);
        let knowledge = match knowledge {
            Ok(knowledge) => knowledge,
            Err(RuntimeError::NothingLegal { .. }) => return Ok(Planned::default()),
            Err(error) => return Err(error.into()),
        };
        let ranking_s = began.elapsed().as_secs_f64();
        let source = Source::new(&mut sampler);
        let setup = knowledge.setup(objective, &source);
        let left = (seconds - ranking_s).max(f64::MIN_POSITIVE);
        let (best, timed) = self.searched(problem, &setup, left)?;
        let predicted = |point: &Point| knowledge.model().map(|model| model.cost(point));
        let with_cost = |point: Point| {
            let predicted = predicted(&point);
            (point, predicted)
        };
        Ok(Planned { best: best.into_iter().map(with_cost).collect(), timed, ranking_s })
    }

    /// The best of a search of so many seconds, best first, and how many were timed. With a model it begins with what that expects most of.
    fn searched(
        &self,
        problem: &dyn Problem,
        setup: &Setup<'_>,
        seconds: f64,
    ) -> Result<(Vec<Point>, u64), CampaignError> {
        let Campaign { objective, settings, .. } = self.campaign;
        let scale = &settings.scale;
        let (name, mut search): (_, Box<dyn Search>) = if setup.model.is_some() {
            ("refine", Box::new(Refine::new(setup, settings.seed)))
        } else {
            // From the default on: little time is better spent near it than on draws.
            let starts = setup.starts.to_vec();
            ("local", Box::new(Local::new(problem.space(), objective.clone(), starts, settings.seed)))
        };
        let (timing, clock) = (self.settings(problem.device()).timing, Instant::now());
        let mut device = self.campaign.device();
        let mut measure = Live::new(&mut *device).seed(settings.seed);
        let limits = Limits { cut_off: CUT_OFF, rough: f64::INFINITY };
        let mut live = Evaluator::new(problem, &mut measure, objective, (&timing, limits), &clock);
        let budget = Budget {
            evaluations: Some((scale.timed * (1 + scale.refinements)) as u64),
            seconds: Some(seconds),
            // The ranking may have taken all the time: the model's first and the default are timed in any case.
            least: LEAST,
            bound: None,
        };
        let trace = match drive(&mut *search, name, objective, &budget, &mut live) {
            Ok(trace) => trace,
            Err(DriveError::Device(error)) => return Err(error.into()),
            Err(error) => {
                return Err(RuntimeError::Strategy { name: name.into(), message: error.to_string() }.into());
            }
        };
        Ok((search.best().points.into_iter().map(|(point, _)| point).collect(), trace.evaluations))
    }
}

/// The libraries that computed the task, and what was wrong with the others.
fn baselines(entrants: &[Entrant], standings: &[Standing]) -> (Vec<BaselineRow>, Vec<String>) {
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    for (entrant, standing) in entrants.iter().zip(standings) {
        match &standing.cost {
            Ok(cost) => rows.push(BaselineRow::new(&entrant.name, *cost, &entrant.problem.kernel())),
            Err(failure) => missing.push(format!("{}: {}", entrant.name, failure.message)),
        }
    }
    (rows, missing)
}

/// What the best configuration of each kernel cost.
fn best_of_each(entrants: &[Entrant], costs: &[Option<f64>]) -> Vec<KernelRow> {
    let mut rows: Vec<KernelRow> = Vec::new();
    for (entrant, cost) in entrants.iter().zip(costs).filter_map(|(entrant, cost)| Some((entrant, (*cost)?))) {
        match rows.iter_mut().find(|row| row.kernel == entrant.name) {
            Some(row) => row.cost = row.cost.min(cost),
            None => rows.push(KernelRow { kernel: entrant.name.clone(), cost }),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::TaskSet;
    use tilewright_core::computation::Computation;
    use tilewright_cpu::CpuDevice;
    use tilewright_ops::conv::Conv;

    #[test]
    fn smaller_convolutions_are_convolutions() {
        let spec = CpuDevice::new(1).unwrap().spec().clone();
        let kernel = kernels("conv", &spec).remove(0);
        let tasks = TaskSet::IsaacTable5.tasks(&*kernel, &Config::default()).unwrap();
        for task in tasks {
            let whole = Conv.parse(&task.input).unwrap();
            let part = smaller(task, 32);
            let found = Conv.parse(&part.input).unwrap_or_else(|e| panic!("{}: {e}", part.name));
            assert_eq!((found.r, found.s, found.pad, found.stride), (whole.r, whole.s, whole.pad, whole.stride));
            assert!(Conv.work(&found).flops < Conv.work(&whole).flops / 1e4, "{}", part.name);
        }
    }
}
