//! Tasks planned with the profile and compared with the vendor's library: ISAAC's Table 4, and square sizes.

use super::candidates::{draw, neighbour, promising};
use super::rows::{BaselineRow, Tables};
use super::stages::Progress;
use super::state::State;
use super::{Campaign, CampaignError, DTYPES, Deadline, FILES};
use crate::tasks::{Task, TaskSet};
use crate::vendor::{LIBRARIES, Vendors, median};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::time::{Duration, Instant};
use tilewright_core::computation::Computation;
use tilewright_core::objective::Objective;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::Problem;
use tilewright_core::program::{DeviceError, Program};
use tilewright_core::space::Point;
use tilewright_ops::gemm::{Gemm, GemmInput, Layout};
use tilewright_runtime::store::Profile;

pub use super::rows::TaskRow;

/// Configurations whose neighbourhood is timed.
const KEPT: usize = 4;

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
    let known = |tables: &Tables, t: &Task| tables.has(stage, &t.name, t.input.dtype.name());
    let total = tasks.len();
    let missing: Vec<&Task> = tasks.iter().filter(|t| !known(&tables, t)).collect();
    for (at, task) in missing.iter().enumerate() {
        let left = deadline.left_s();
        if left <= 0.0 {
            break;
        }
        // A first task that takes its time leaves some for the others.
        let end = Instant::now() + Duration::from_secs_f64(left / (missing.len() - at) as f64);
        (campaign.note)(&format!("{stage}: {} {}", task.name, task.input.dtype));
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
    Ok(Some(loaded.map_err(tilewright_runtime::RuntimeError::from)?))
}

fn smaller(task: Task, by: usize) -> Task {
    if by <= 1 {
        return task;
    }
    let GemmInput { m, n, k, dtype, layout, .. } = task.input;
    let [m, n, k] = [m, n, k].map(|x| (x / by).max(1));
    Task { name: format!("{}/{by}", task.name), input: GemmInput::new(m, n, k, dtype, layout) }
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
    cost: f64,
}

impl Contest<'_> {
    /// None if nothing is legal, or nothing ran.
    fn row(&self, stage: &str, state: &State) -> Result<Option<TaskRow>, CampaignError> {
        let problem = self.campaign.kernel.problem(&self.campaign.spec(), &Gemm.words(&self.task.input))?;
        let timed = self.plan(&*problem)?;
        let Some((winner, wrong)) = self.verified(&*problem, &timed)? else { return Ok(None) };
        let legal = problem.space().check(&winner.point).map_err(|e| DeviceError::Load(e.to_string()))?;
        let program = problem.program(&legal);
        let vendors = self.vendors();
        let (libraries, missing) = vendors.libraries(&LIBRARIES, &*problem, &self.task.input)?;
        let contenders: Vec<_> = std::iter::once(("ours".to_owned(), program)).chain(libraries).collect();
        let costs = vendors.compare(&*problem, &contenders)?.into_iter().map(|mut costs| {
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
        row.timed = timed.len();
        row.wrong = wrong;
        row.missing = missing;
        row.fitted = state.fitted;
        if self.campaign.objective == Objective::default() {
            row.rates();
        }
        Ok(Some(row))
    }

    fn vendors(&self) -> Vendors<'_> {
        let Campaign { station, objective, settings, .. } = self.campaign;
        Vendors { station, objective, rounds: settings.scale.rounds, seed: settings.seed }
    }

    /// Times what the model expects most of, then neighbours of the best; best first.
    fn plan(&self, problem: &dyn Problem) -> Result<Vec<Timed>, CampaignError> {
        let scale = &self.campaign.settings.scale;
        let mut rng = ChaCha8Rng::seed_from_u64(self.campaign.settings.seed);
        let default = problem.default_point();
        let scorer = self.predictor.map(|p| p.bind(problem)).transpose();
        let scorer = scorer.map_err(tilewright_runtime::RuntimeError::from)?;
        let mut next: Vec<(Point, Option<f64>)> = match &scorer {
            Some(scorer) => promising(problem, &**scorer, (scale.scored, scale.timed), default.as_slice(), &mut rng)
                .into_iter()
                .map(|(p, s)| (p, Some(s)))
                .collect(),
            None => (0..scale.timed).map_while(|_| draw(problem.space(), &mut rng)).map(|p| (p, None)).collect(),
        };
        // The default is timed early: large inputs leave no time for all.
        if let Some(default) = default {
            next.insert(next.len().min(1), (default, None));
        }
        let mut timed: Vec<Timed> = Vec::new();
        for round in 0..=scale.refinements {
            self.time(problem, &next, &mut timed)?;
            if round == scale.refinements || self.deadline.over() {
                break;
            }
            next.clear();
            for best in timed.iter().take(KEPT) {
                let near = (0..scale.timed).filter_map(|_| neighbour(problem.space(), &best.point, &mut rng));
                next.extend(near.take(scale.timed / KEPT + 1).map(|p| (p, None)));
            }
        }
        Ok(timed)
    }

    fn time(
        &self,
        problem: &dyn Problem,
        points: &[(Point, Option<f64>)],
        timed: &mut Vec<Timed>,
    ) -> Result<(), CampaignError> {
        let mut fresh: Vec<(Point, Option<f64>, Program)> = Vec::new();
        for (point, predicted) in points {
            let known = timed.iter().any(|t| t.point == *point) || fresh.iter().any(|f| f.0 == *point);
            if let (false, Ok(legal)) = (known, problem.space().check(point)) {
                let program = problem.program(&legal);
                fresh.push((point.clone(), *predicted, program));
            }
        }
        let programs: Vec<Program> = fresh.iter().map(|f| f.2.clone()).collect();
        let vendors = self.vendors();
        self.campaign.station.with(|station| {
            station.expect(&programs);
            vendors.hold_noise(problem, station)?;
            for (point, predicted, program) in fresh {
                // One at least, so that every task has a row.
                if self.deadline.over() && !timed.is_empty() {
                    break;
                }
                let best = timed.iter().map(|t| t.cost).min_by(f64::total_cmp);
                let cost = vendors.cost(station, &program, best)?;
                timed.extend(cost.map(|cost| Timed { point, predicted, cost }));
            }
            Ok::<(), CampaignError>(())
        })?;
        timed.sort_by(|a, b| a.cost.total_cmp(&b.cost).then_with(|| a.point.cmp(&b.point)));
        Ok(())
    }

    /// The first whose result is right, and what was wrong with those before it.
    fn verified(&self, problem: &dyn Problem, timed: &[Timed]) -> Result<Option<(Timed, Vec<String>)>, CampaignError> {
        let mut wrong = Vec::new();
        for candidate in timed {
            let legal = problem.space().check(&candidate.point).map_err(|e| DeviceError::Load(e.to_string()))?;
            let program = problem.program(&legal);
            match self.vendors().check(problem, &self.task.input, &program)? {
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
