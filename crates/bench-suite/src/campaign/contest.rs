//! Tasks planned with the profile and compared with the vendor's library: ISAAC's Table 4, and square sizes.

use super::candidates::{draw, neighbour, promising};
use super::rows::{BaselineRow, Tables};
use super::stages::Progress;
use super::state::State;
use super::{Campaign, CampaignError, DTYPES, Deadline, FILES};
use crate::exact::ExactProduct;
use crate::tasks::{Task, TaskSet};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilewright_core::buffer::Filling;
use tilewright_core::computation::Computation;
use tilewright_core::measurement::Timing;
use tilewright_core::objective::Objective;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{MeasureError, Problem};
use tilewright_core::program::{DeviceError, LibraryCall, Program};
use tilewright_core::space::Point;
use tilewright_ops::gemm::{Gemm, GemmInput, Layout};
use tilewright_runtime::station::{Data, Station};
use tilewright_runtime::store::Profile;

pub use super::rows::TaskRow;

/// The vendor's libraries that are looked for: the plain interface, and the one that tells its candidates.
const LIBRARIES: [&str; 2] = ["cublas", "cublaslt"];

/// Configurations whose neighbourhood is timed.
const KEPT: usize = 4;

/// A configuration this many times slower than the best so far is cut off.
const CUT_OFF: f64 = 2.5;

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
        let program = problem.program(&winner.point).map_err(|e| DeviceError::Load(e.to_string()))?;
        let mut contenders = vec![("ours".to_owned(), program)];
        let missing = self.baselines(&mut contenders)?;
        let costs = self.compare(&contenders)?;
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

    fn policy(&self, best: Option<f64>) -> Timing {
        let timed = best.filter(|_| self.campaign.objective == Objective::default());
        Timing {
            warmup: 1,
            min_repeats: 3,
            max_repeats: 8,
            relative_error: 0.01,
            max_time: Duration::from_millis(15),
            cut_off: timed.and_then(|s| Duration::try_from_secs_f64(s * CUT_OFF).ok()),
            ..Timing::default()
        }
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
            if let (false, Ok(program)) = (known, problem.program(point)) {
                fresh.push((point.clone(), *predicted, program));
            }
        }
        let programs: Vec<Program> = fresh.iter().map(|f| f.2.clone()).collect();
        self.campaign.station.with(|station| {
            station.expect(&programs);
            self.hold_noise(problem, station)?;
            for (point, predicted, program) in fresh {
                // One at least, so that every task has a row.
                if self.deadline.over() && !timed.is_empty() {
                    break;
                }
                let best = timed.iter().map(|t| t.cost).min_by(f64::total_cmp);
                let cost = self.cost(station, &program, best)?;
                timed.extend(cost.map(|cost| Timed { point, predicted, cost }));
            }
            Ok::<(), CampaignError>(())
        })?;
        timed.sort_by(|a, b| a.cost.total_cmp(&b.cost).then_with(|| a.point.cmp(&b.point)));
        Ok(())
    }

    fn hold_noise(&self, problem: &dyn Problem, station: &mut dyn Station) -> Result<(), DeviceError> {
        let (specs, scalars) = problem.shape();
        station.hold(&Data::Noise { specs, scalars, seed: self.campaign.settings.seed })
    }

    /// The cost of a program; None where it fails.
    fn cost(
        &self,
        station: &mut dyn Station,
        program: &Program,
        best: Option<f64>,
    ) -> Result<Option<f64>, DeviceError> {
        match station.time(program, &self.policy(best)) {
            Ok(measurement) => Ok(self.campaign.objective.cost(&measurement)),
            Err(MeasureError::Failed(failure)) => {
                tracing::debug!(%failure, task = self.task.name);
                Ok(None)
            }
            Err(MeasureError::Device(error)) => Err(error),
        }
    }

    /// The first whose result is right, and what was wrong with those before it.
    fn verified(&self, problem: &dyn Problem, timed: &[Timed]) -> Result<Option<(Timed, Vec<String>)>, CampaignError> {
        let mut wrong = Vec::new();
        for candidate in timed {
            let program = problem.program(&candidate.point).map_err(|e| DeviceError::Load(e.to_string()))?;
            match self.check(problem, &program)? {
                Ok(()) => return Ok(Some((candidate.clone(), wrong))),
                Err(message) => wrong.push(format!("{}: {message}", problem.space().config(&candidate.point))),
            }
        }
        match wrong.pop() {
            Some(last) => Err(CampaignError::NothingRight { task: self.task.name.clone(), tried: timed.len(), last }),
            None => Ok(None),
        }
    }

    /// Runs on small integers, whose result is exact whatever the order of summation.
    fn check(&self, problem: &dyn Problem, program: &Program) -> Result<Result<(), String>, DeviceError> {
        let work = Arc::new(problem.workload(Filling::Exact, self.campaign.settings.seed));
        let exact = ExactProduct::new(&self.task.input, &work);
        let ran = self.campaign.station.with(|station| {
            station.hold(&Data::Given(work.clone()))?;
            station.run(program)?;
            station.read()
        });
        match ran {
            Ok(after) => Ok(exact.check(&after).map_err(|e| e.to_string())),
            Err(error @ (DeviceError::Missing { .. } | DeviceError::Run(_))) => Err(error),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Adds the vendor's default and the best of all its candidates, as far as they are right; says what is missing.
    fn baselines(&self, contenders: &mut Vec<(String, Program)>) -> Result<Vec<String>, CampaignError> {
        let problem = self.campaign.kernel.problem(&self.campaign.spec(), &Gemm.words(&self.task.input))?;
        let mut missing = Vec::new();
        for library in LIBRARIES {
            let call = |option| LibraryCall { library: library.into(), option, input: Gemm.words(&self.task.input) };
            let options = match self.campaign.station.with(|s| s.options(&call(0))) {
                Ok(options) => options,
                Err(error) => {
                    missing.push(format!("{library}: {error}"));
                    continue;
                }
            };
            let mut best = (0, f64::INFINITY);
            self.campaign.station.with(|station| {
                self.hold_noise(&*problem, station)?;
                for option in 0..options {
                    let cost = self.cost(station, &Program::library(call(option)), None)?;
                    if let Some(cost) = cost.filter(|c| *c < best.1) {
                        best = (option, cost);
                    }
                }
                Ok::<(), DeviceError>(())
            })?;
            let named = [(library.to_owned(), 0), (format!("{library}-best"), best.0)];
            for (name, option) in named.into_iter().take(if options > 1 { 2 } else { 1 }) {
                let program = Program::library(call(option));
                match self.check(&*problem, &program)? {
                    Ok(()) => contenders.push((name, program)),
                    Err(message) => missing.push(format!("{name}: {message}")),
                }
            }
        }
        Ok(missing)
    }

    /// The median cost of each contender over rounds in rotating order, on the same buffers.
    fn compare(&self, contenders: &[(String, Program)]) -> Result<Vec<Option<f64>>, CampaignError> {
        let problem = self.campaign.kernel.problem(&self.campaign.spec(), &Gemm.words(&self.task.input))?;
        let mut costs: Vec<Vec<f64>> = vec![Vec::new(); contenders.len()];
        self.campaign.station.with(|station| {
            self.hold_noise(&*problem, station)?;
            for round in 0..self.campaign.settings.scale.rounds.max(1) {
                for turn in 0..contenders.len() {
                    let at = (round + turn) % contenders.len();
                    costs[at].extend(self.cost(station, &contenders[at].1, None)?);
                }
            }
            Ok::<(), DeviceError>(())
        })?;
        Ok(costs.into_iter().map(median).collect())
    }
}

fn median(mut costs: Vec<f64>) -> Option<f64> {
    costs.sort_by(f64::total_cmp);
    let count = costs.len();
    (count > 0).then(|| f64::midpoint(costs[(count - 1) / 2], costs[count / 2]))
}
