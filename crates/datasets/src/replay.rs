//! The replay device: recorded times instead of measured ones.

use crate::column::Column;
use crate::dataset::Dataset;
use crate::error::DatasetError;
use crate::features::FeatureTable;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use tilewright_core::buffer::{Buffers, Expected, Filling, Workload};
use tilewright_core::computation::{InputError, InputLimits, Work};
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::expr::Value;
use tilewright_core::feature::FeatureSchema;
use tilewright_core::id::{ComputationId, KernelId};
use tilewright_core::measurement::{Failure, FailureKind, Measurement, Outcome, Timing};
use tilewright_core::problem::{AnyKernel, Measure, MeasureError, Problem, ProblemError};
use tilewright_core::program::{DeviceError, HostArgs, HostCode, Program};
use tilewright_core::space::{BoundSpace, Config, Legal, Param, ParamSpace, Point};

/// Why points outside a recording are illegal.
const UNRECORDED: &str = "this configuration was not recorded";

/// A dataset seen as a kernel: its parameters take the recorded values, its legal points are the recorded ones.
///
/// Where the dataset has variants, the variant is the first parameter; a parameter without a value in a row (a variant
/// that has none) takes the empty word there.
#[derive(Clone)]
pub struct RecordedKernel {
    dataset: Arc<Dataset>,
    features: Arc<FeatureTable>,
    name: String,
    space: ParamSpace,
    /// Columns of the parameters.
    columns: Vec<usize>,
    /// For every row, the number of its device and input.
    problems: Vec<u32>,
}

/// One device and one input of a recording.
#[derive(Clone)]
pub struct RecordedProblem {
    name: String,
    device: Arc<DeviceSpec>,
    input: Config,
    space: BoundSpace,
    features: Arc<FeatureTable>,
    /// A row of this problem, for the input's features.
    first: usize,
    outcomes: Arc<Outcomes>,
}

/// What is recorded of a point.
struct Recorded {
    row: usize,
    outcome: Outcome,
    clock_s: f64,
}

/// A search looks up every point that it asks for, and nobody chooses the keys against the hash.
type Outcomes = FxHashMap<Box<[u16]>, Recorded>;

/// `replay:FILE`: measures by looking up.
#[derive(Clone)]
pub struct Replay {
    spec: Arc<DeviceSpec>,
    input: Config,
    params: Vec<Param>,
    outcomes: Arc<Outcomes>,
}

/// The distinct values of a column, numbers first in order of size, then words in order of text, then the empty word if
/// cells are missing.
fn values(column: &Column) -> Vec<Value> {
    let mut values = column.sorted_levels();
    if (0..column.len()).any(|row| column.code(row).is_none()) {
        values.push(Value::from(""));
    }
    values
}

impl RecordedKernel {
    /// The kernel of a dataset, named after its file.
    ///
    /// # Errors
    /// A derived feature without a value, a parameter with more values than an index counts.
    pub fn new(dataset: Arc<Dataset>) -> Result<Self, DatasetError> {
        let name = dataset.name();
        let columns: Vec<usize> = dataset.roles.variant.iter().chain(&dataset.roles.config).copied().collect();
        let param = |&c: &usize| {
            let column = &dataset.columns[c];
            Param { name: column.name().to_owned(), values: values(column) }
        };
        // An empty table has no values, and an empty list is no parameter.
        let params = columns.iter().map(param).filter(|p| !p.values.is_empty());
        let space = ParamSpace::builder().params(params).build()?;
        let features = Arc::new(dataset.features()?);
        let problems = dataset.problems().0;
        Ok(Self { dataset, features, name, space, columns, problems })
    }

    /// Reads a recording of any format for replay.
    ///
    /// # Errors
    /// As [`Dataset::open`] and [`RecordedKernel::new`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, DatasetError> {
        Self::new(Arc::new(Dataset::open(path)?))
    }

    /// The recording.
    pub fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    /// The recorded devices, in order of appearance.
    pub fn devices(&self) -> Vec<Arc<DeviceSpec>> {
        let mut seen = Vec::new();
        let mut out = Vec::new();
        for row in 0..self.dataset.len() {
            let name = self.dataset.device(row);
            if !seen.contains(&name) {
                out.push(Arc::new(self.spec(&name)));
                seen.push(name);
            }
        }
        out
    }

    fn spec(&self, device: &str) -> DeviceSpec {
        DeviceSpec {
            id: format!("replay:{}", self.dataset.path().display()),
            name: device.to_owned(),
            kind: DeviceKind::Replay,
            driver: "recorded".into(),
            facts: BTreeMap::new(),
            measured: BTreeMap::new(),
        }
    }

    /// Every recorded (device, input), in order of appearance.
    ///
    /// # Errors
    /// None for a dataset that was read.
    pub fn problems(&self) -> Result<Vec<RecordedProblem>, DatasetError> {
        let count = self.problems.iter().max().map_or(0, |m| *m as usize + 1);
        let mut rows = vec![Vec::new(); count];
        self.problems.iter().enumerate().for_each(|(row, &p)| rows[p as usize].push(row));
        rows.iter().map(|rows| self.of_rows(rows)).collect()
    }

    /// The problem of a recorded device (by name) and input (words in any order).
    ///
    /// # Errors
    /// Nothing recorded for them.
    pub fn recorded(&self, device: &str, input: &Config) -> Result<RecordedProblem, DatasetError> {
        let mut found = Vec::new();
        let mut verdicts: HashMap<u32, bool> = HashMap::new();
        for (row, &problem) in self.problems.iter().enumerate() {
            let matches = || self.dataset.device(row) == device && same_words(&self.dataset.input(row), input);
            if *verdicts.entry(problem).or_insert_with(matches) {
                found.push(row);
            }
        }
        if found.is_empty() {
            return Err(DatasetError::NotRecorded { what: format!("device {device:?}, input {input}") });
        }
        self.of_rows(&found)
    }

    fn of_rows(&self, rows: &[usize]) -> Result<RecordedProblem, DatasetError> {
        let mut outcomes = Outcomes::with_capacity_and_hasher(rows.len(), Default::default());
        for &row in rows {
            let recorded = Recorded { row, outcome: self.dataset.outcome(row), clock_s: self.dataset.clock_s(row) };
            match outcomes.entry(self.point(row).0.into()) {
                Entry::Vacant(place) => drop(place.insert(recorded)),
                // Of several recordings of one point, the fastest counts.
                Entry::Occupied(mut kept) if time(&recorded.outcome) < time(&kept.get().outcome) => {
                    kept.insert(recorded);
                }
                Entry::Occupied(_) => {}
            }
        }
        let points: Vec<Point> = outcomes.keys().map(|p| Point::from(&**p)).collect();
        let first = rows.first().copied().unwrap_or_default();
        Ok(RecordedProblem {
            name: self.name.clone(),
            device: Arc::new(self.spec(&self.dataset.device(first))),
            input: self.dataset.input(first),
            space: BoundSpace::listed(self.space.params().to_vec(), &points, UNRECORDED)?,
            features: self.features.clone(),
            first,
            outcomes: Arc::new(outcomes),
        })
    }

    /// The point of a row.
    fn point(&self, row: usize) -> Point {
        let missing = Value::from("");
        let index = |(param, &c): (&Param, &usize)| {
            let value = self.dataset.columns[c].get(row).unwrap_or(&missing);
            param.index_of(value).unwrap_or_default()
        };
        Point(self.space.params().iter().zip(&self.columns).map(index).collect())
    }
}

fn time(outcome: &Outcome) -> f64 {
    outcome.as_ref().map_or(f64::INFINITY, |m| m.time_s)
}

fn same_words(a: &Config, b: &Config) -> bool {
    a.0.len() == b.0.len() && has_words(a, b)
}

/// Whether a configuration has every one of these words, numbers compared as numbers.
pub(crate) fn has_words(config: &Config, words: &Config) -> bool {
    let same = |v: &Value, w: &Value| v == w || (v.as_f64().is_some() && v.as_f64() == w.as_f64());
    words.0.iter().all(|(name, w)| config.get(name).is_some_and(|v| same(v, w)))
}

impl AnyKernel for RecordedKernel {
    fn id(&self) -> KernelId {
        KernelId::from(self.name.clone())
    }

    fn computation(&self) -> ComputationId {
        ComputationId::from(self.name.clone())
    }

    fn space(&self) -> &ParamSpace {
        &self.space
    }

    fn schema(&self) -> FeatureSchema {
        self.features.schema().clone()
    }

    fn problem(&self, device: &Arc<DeviceSpec>, input: &Config) -> Result<Box<dyn Problem>, ProblemError> {
        match self.recorded(&device.name, input) {
            Ok(problem) => Ok(Box::new(problem)),
            Err(e) => Err(InputError::new("input", e.to_string()).into()),
        }
    }

    fn draw(&self, fixed: &Config, _: &InputLimits, uniform: &mut dyn FnMut() -> f64) -> Result<Config, InputError> {
        let fits = |row: &usize| has_words(&self.dataset.input(*row), fixed);
        let rows: Vec<usize> = (0..self.dataset.len()).filter(fits).collect();
        let at = (uniform() * rows.len() as f64) as usize;
        let row = rows.get(at.min(rows.len().saturating_sub(1)));
        row.map(|&r| self.dataset.input(r)).ok_or_else(|| InputError::new("input", format!("{fixed} was not recorded")))
    }
}

impl RecordedProblem {
    /// The device that replays this problem.
    pub fn replay(&self) -> Replay {
        Replay {
            spec: self.device.clone(),
            input: self.input.clone(),
            params: self.space.params().to_vec(),
            outcomes: self.outcomes.clone(),
        }
    }

    /// The recorded outcome of a point, and what evaluating it took in seconds, compilation and failure included: what a replayed
    /// search looks up, at more than a million points a second.
    pub fn look_up(&self, point: &[u16]) -> Option<(&Outcome, f64)> {
        self.outcomes.get(point).map(|r| (&r.outcome, r.clock_s))
    }

    /// The recorded points with their outcomes, in no order.
    pub fn recorded(&self) -> impl Iterator<Item = (&[u16], &Outcome)> {
        self.outcomes.iter().map(|(point, r)| (&**point, &r.outcome))
    }

    /// The fastest recorded point and its time in seconds; of equal times, the first point.
    pub fn optimum(&self) -> Option<(Point, f64)> {
        let timed = self.outcomes.iter().filter_map(|(p, r)| Some((p, r.outcome.as_ref().ok()?.time_s)));
        let best = timed.min_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(b.0)));
        best.map(|(point, seconds)| (Point::from(&**point), seconds))
    }
}

impl Problem for RecordedProblem {
    fn kernel(&self) -> KernelId {
        KernelId::from(self.name.clone())
    }

    fn computation(&self) -> ComputationId {
        ComputationId::from(self.name.clone())
    }

    fn device(&self) -> &DeviceSpec {
        &self.device
    }

    fn input(&self) -> Config {
        self.input.clone()
    }

    fn space(&self) -> &BoundSpace {
        &self.space
    }

    /// Unknown: nothing.
    fn work(&self) -> Work {
        Work::default()
    }

    fn schema(&self) -> &FeatureSchema {
        self.features.schema()
    }

    fn input_features(&self, out: &mut Vec<f32>) {
        self.features.input(self.first, out);
    }

    fn config_features(&self, point: &[u16], out: &mut Vec<f32>) {
        match self.outcomes.get(point) {
            Some(r) => self.features.config(r.row, out),
            None => out.resize(out.len() + self.features.schema().config.len(), f32::NAN),
        }
    }

    /// A recording has no code: what runs this is told so.
    fn program(&self, _: &Legal<'_>) -> Program {
        Program::host(Arc::new(NoCode), 0)
    }

    fn workload(&self, _: Filling, _: u64) -> Workload {
        Workload { specs: Vec::new(), buffers: Vec::new(), scalars: Vec::new() }
    }

    fn reference(&self, _: &Buffers, _: &[f64]) -> Result<Expected, DeviceError> {
        Ok(Expected { buffers: Vec::new() })
    }

    fn default_point(&self) -> Option<Point> {
        self.space.first_legal()
    }
}

/// The code of what has times only.
struct NoCode;

impl HostCode for NoCode {
    fn run(&self, _: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        Err(DeviceError::Load("a recording has times and no code".into()))
    }
}

impl Measure for Replay {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.spec
    }

    fn measure(&mut self, problem: &dyn Problem, at: &Point, policy: &Timing) -> Result<Measurement, MeasureError> {
        let failed = |kind, message| Err(MeasureError::Failed(Failure { kind, message }));
        if !problem.space().contains(at) || !same_words(&problem.input(), &self.input) {
            return failed(FailureKind::Illegal, format!("{at:?} of {} was not recorded", problem.input()));
        }
        let space = problem.space();
        // In another space over these parameters, the values decide and not the indices.
        let translated = match space.params() == self.params.as_slice() {
            true => Some(at.clone()),
            false => space.config(at).to_point(&self.params, None).ok(),
        };
        match translated.and_then(|point| self.outcomes.get(&*point)) {
            Some(Recorded { outcome: Ok(m), .. }) => match policy.cut_off {
                Some(limit) if m.time_s > limit.as_secs_f64() => {
                    failed(FailureKind::CutOff, format!("beyond {:e} s", limit.as_secs_f64()))
                }
                _ => Ok(m.clone()),
            },
            Some(Recorded { outcome: Err(failure), .. }) => Err(failure.clone().into()),
            None => failed(FailureKind::Illegal, format!("{}: {UNRECORDED}", space.config(at))),
        }
    }
}
