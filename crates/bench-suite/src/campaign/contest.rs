//! Tasks planned with the profile and compared with the vendor's library: ISAAC's Table 4, and square sizes.

use super::rows::{BaselineRow, Tables};
use super::stages::Progress;
use super::state::State;
use super::{Campaign, CampaignError, DTYPES, Deadline, FILES};
use crate::tasks::{Task, TaskSet};
use crate::vendor::{CUT_OFF, LIBRARIES, Vendors, median};
use std::time::{Duration, Instant};
use tilewright_core::computation::Computation;
use tilewright_core::objective::Objective;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::Problem;
use tilewright_core::program::DeviceError;
use tilewright_core::search::Search;
use tilewright_core::space::Point;
use tilewright_ops::gemm::{Gemm, GemmInput, Layout};
use tilewright_runtime::knowledge::{Knowledge, Ranking, Shared as Source};
use tilewright_runtime::store::Profile;
use tilewright_runtime::{Live, RuntimeError};
use tilewright_sampler::Chained;
use tilewright_search::drive::{Budget, DriveError, Limits};
use tilewright_search::strategy::Refine;
use tilewright_search::{Evaluator, Sampling, drive};

pub use super::rows::TaskRow;

/// The share of a task's time that the model may take.
const RANKING_SHARE: f64 = 0.25;

pub(super) fn table4(
    campaign: &Campaign<'_>,
    state: &mut State,
    deadline: Deadline,
) -> Result<Progress, CampaignError> {
    let tasks = DTYPES.iter().flat_map(|dtype| TaskSet::IsaacTable4.tasks(*dtype)).collect();
    run("table4", tasks, campaign, state, deadline)
}

pub(super) fn sweep(campaign: &Campaign<'_>, state: &mut State, deadline: Deadline) -> Result<Progress, CampaignError> {
    let mut tasks = Vec::new();
    for dtype in DTYPES {
        for &size in &campaign.settings.scale.sweep {
            let input = GemmInput::new(size, size, size, dtype, Layout::Nn);
            tasks.push(Task { name: format!("square-{size}"), input });
        }
    }
    run("sweep", tasks, campaign, state, deadline)
}

fn run(
    stage: &'static str,
    tasks: Vec<Task>,
    campaign: &Campaign<'_>,
    state: &State,
    deadline: Deadline,
) -> Result<Progress, CampaignError> {
    let out = &campaign.settings.out;
    let mut tables = Tables::read(out)?;
    let predictor = predictor(campaign)?;
    let shrink = if stage == "sweep" { 1 } else { campaign.settings.scale.shrink };
    let tasks: Vec<Task> = tasks.into_iter().map(|t| smaller(t, shrink)).collect();
    let known = |tables: &Tables, t: &Task| tables.has(stage, &t.name, t.input.dtype().name());
    let total = tasks.len();
    let missing: Vec<&Task> = tasks.iter().filter(|t| !known(&tables, t)).collect();
    for (at, task) in missing.iter().enumerate() {
        let left = deadline.left_s();
        if left <= 0.0 {
            break;
        }
        // A first task that takes its time leaves some for the others.
        let end = Instant::now() + Duration::from_secs_f64(left / (missing.len() - at) as f64);
        (campaign.note)(&format!("{stage}: {} {}", task.name, task.input.dtype()));
        let contest = Contest { campaign, task, predictor: predictor.as_deref(), deadline: Deadline { end } };
        if let Some(row) = contest.row(stage, state)? {
            tables.rows.push(row);
            tables.write(out, state)?;
        }
    }
    tables.write(out, state)?;
    let have = tasks.iter().filter(|t| known(&tables, t)).count();
    let means: Vec<String> = tables.geomeans().iter().map(|(t, g)| format!("{t} {g:.3}")).collect();
    let means = if means.is_empty() { String::new() } else { format!("; default over ours: {}", means.join(", ")) };
    Ok(Progress { done: have == total, note: format!("{have} of {total} tasks{means}") })
}

/// The profile of the folder, if there is one.
fn predictor(campaign: &Campaign<'_>) -> Result<Option<Box<dyn Predictor>>, CampaignError> {
    let path = campaign.settings.out.join(FILES[6]);
    if !path.exists() {
        return Ok(None);
    }
    let (profile, schema) = (Profile::read(&path)?, campaign.kernel.schema());
    profile.expect(&path, &campaign.kernel.id(), &campaign.spec(), &schema)?;
    let loaded = campaign.trainer.load(&profile.model, &schema);
    Ok(Some(loaded.map_err(RuntimeError::from)?))
}

fn smaller(task: Task, by: usize) -> Task {
    if by <= 1 {
        return task;
    }
    let GemmInput { m, n, k, types, layout, .. } = task.input;
    let [m, n, k] = [m, n, k].map(|x| (x / by).max(1));
    Task { name: format!("{}/{by}", task.name), input: GemmInput::new(m, n, k, types, layout) }
}

/// One task.
struct Contest<'a> {
    campaign: &'a Campaign<'a>,
    task: &'a Task,
    predictor: Option<&'a dyn Predictor>,
    deadline: Deadline,
}

/// A configuration that was timed.
#[derive(Clone)]
struct Timed {
    point: Point,
    predicted: Option<f64>,
}

impl Contest<'_> {
    /// None if nothing is legal, or nothing ran.
    fn row(&self, stage: &str, state: &State) -> Result<Option<TaskRow>, CampaignError> {
        let problem = self.campaign.kernel.problem(&self.campaign.spec(), &Gemm.words(&self.task.input))?;
        let (timed, count) = self.plan(&*problem)?;
        let Some((winner, wrong)) = self.verified(&*problem, &timed)? else { return Ok(None) };
        let legal = problem.space().check(&winner.point).map_err(|e| DeviceError::Load(e.to_string()))?;
        let program = problem.program(&legal);
        let (vendors, device) = (self.vendors(), &mut *self.campaign.device());
        let (libraries, missing) = vendors.libraries(device, &LIBRARIES, &*problem, &self.task.input)?;
        let contenders: Vec<_> = std::iter::once(("ours".to_owned(), program)).chain(libraries).collect();
        let costs = vendors.compare(device, &*problem, &contenders)?.into_iter().map(|mut costs| {
            costs.sort_by(f64::total_cmp);
            median(&costs)
        });
        let costs: Vec<Option<f64>> = costs.collect();
        let Some(ours) = costs[0] else { return Ok(None) };
        let baselines = contenders.iter().zip(&costs).skip(1);
        let baselines = baselines.filter_map(|((name, _), cost)| Some(BaselineRow::new(name, (*cost)?))).collect();
        let mut row = TaskRow::new(stage, self.task, &*problem, &winner.point, ours, baselines);
        row.metric.clone_from(&self.campaign.objective.metric);
        row.predicted = winner.predicted;
        row.timed = count as usize;
        row.wrong = wrong;
        row.missing = missing;
        row.fitted = state.fitted;
        if self.campaign.objective == Objective::default() {
            row.rates();
        }
        Ok(Some(row))
    }

    fn vendors(&self) -> Vendors<'_> {
        let Campaign { objective, settings, .. } = self.campaign;
        Vendors { objective, rounds: settings.scale.rounds, seed: settings.seed }
    }

    /// Refines what the model expects most of by measuring; best first, and how many were timed.
    fn plan(&self, problem: &dyn Problem) -> Result<(Vec<Timed>, u64), CampaignError> {
        let Campaign { kernel, objective, settings, .. } = self.campaign;
        let scale = &settings.scale;
        let mut sampler = Chained::new(kernel.space(), tilewright_sampler::Settings::default());
        let limit = Duration::from_secs_f64(self.deadline.left_s() * RANKING_SHARE);
        let ranking = Ranking::Sample(Sampling { points: scale.scored, climbs: scale.climbs, limit });
        let knowledge = Knowledge::ask(problem, self.predictor, (&ranking, scale.timed), &mut sampler, settings.seed);
        let knowledge = match knowledge {
            Ok(knowledge) => knowledge,
            Err(RuntimeError::NothingLegal { .. }) => return Ok((Vec::new(), 0)),
            Err(error) => return Err(error.into()),
        };
        let source = Source::new(&mut sampler);
        let setup = knowledge.setup(objective, &source);
        let mut search = Refine::new(&setup, settings.seed);
        let (timing, clock) = (self.vendors().policy(None), Instant::now());
        let mut device = self.campaign.device();
        let mut measure = Live::new(&mut *device).seed(settings.seed);
        let limits = Limits { cut_off: CUT_OFF, rough: f64::INFINITY };
        let mut live = Evaluator::new(problem, &mut measure, objective, (&timing, limits), &clock);
        let budget = Budget {
            evaluations: Some((scale.timed * (1 + scale.refinements)) as u64),
            seconds: Some(self.deadline.left_s().max(f64::MIN_POSITIVE)),
            bound: None,
        };
        let mut ended = drive(&mut search, "refine", objective, &budget, &mut live);
        if ended.as_ref().is_ok_and(|trace| trace.evaluations == 0) {
            // The ranking took all the time: one is timed at least, so that every task has a row.
            ended = drive(&mut search, "refine", objective, &Budget::evaluations(1), &mut live);
        }
        let trace = match ended {
            Ok(trace) => trace,
            Err(DriveError::Device(error)) => return Err(error.into()),
            Err(error) => {
                return Err(RuntimeError::Strategy { name: "refine".into(), message: error.to_string() }.into());
            }
        };
        let predicted = |point: &Point| knowledge.model().map(|model| model.cost(point));
        let timed = |(point, _): (Point, f64)| Timed { predicted: predicted(&point), point };
        Ok((search.best().points.into_iter().map(timed).collect(), trace.evaluations))
    }

    /// The first whose result is right, and what was wrong with those before it.
    fn verified(&self, problem: &dyn Problem, timed: &[Timed]) -> Result<Option<(Timed, Vec<String>)>, CampaignError> {
        let mut wrong = Vec::new();
        for candidate in timed {
            let legal = problem.space().check(&candidate.point).map_err(|e| DeviceError::Load(e.to_string()))?;
            let program = problem.program(&legal);
            match self.vendors().check(&mut *self.campaign.device(), problem, &self.task.input, &program)? {
                Ok(()) => return Ok(Some((candidate.clone(), wrong))),
                Err(message) => wrong.push(format!("{}: {message}", problem.space().config(&candidate.point))),
            }
        }
        match wrong.pop() {
            Some(last) => Err(CampaignError::NothingRight { task: self.task.name.clone(), tried: timed.len(), last }),
            None => Ok(None),
        }
    }
}
