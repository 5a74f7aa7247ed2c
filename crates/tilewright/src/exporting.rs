//! Tuned answers as artefacts without Tilewright: inputs are drawn and planned, what won anywhere is timed everywhere, a tree is
//! grown on that, and inputs that it has not seen judge it.

mod covering;
mod guessed;
mod judged;
mod names;
mod timed;

use crate::error::Error;
use crate::planning::{Planning, problem};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilewright_core::computation::InputLimits;
use tilewright_core::device::DeviceSpec;
use tilewright_core::problem::{AnyKernel, Measure, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_export::{
    Artefact, ArtefactError, Cell, Choice, Domain, DomainError, FitError, FitSettings, Parts, Table, fit,
};
use tilewright_runtime::RuntimeError;
use tilewright_runtime::plan::{PlanSettings, Planned};
use tilewright_runtime::store::Home;
use tilewright_runtime::tune::TuneSettings;

use covering::Grown;
pub use judged::HeldOut;
use names::Drawn;

/// Parts of the budget: planning the inputs that a tree is grown on, timing what won anywhere on all of them; the rest judges.
const PLANNED: f64 = 0.45;
const TIMED: f64 = 0.33;

/// The part of the budget that drawing takes at most, each time.
const DRAWING: f64 = 0.1;

/// Alternatives of a plan that are timed on all inputs beside its choice.
const ALTERNATIVES: usize = 1;

/// How an artefact is made.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportSettings {
    /// Inputs that the tree is grown on.
    pub inputs: usize,
    /// Inputs that judge it.
    pub held_out: usize,
    /// The most leaves of the tree; see [`FitSettings`].
    pub leaves: usize,
    /// The time for measuring, about.
    pub budget: Duration,
    /// Limits on drawn inputs.
    pub limits: InputLimits,
    /// Seed of drawing and planning.
    pub seed: u64,
}

impl Default for ExportSettings {
    fn default() -> Self {
        let (limits, leaves) = (TuneSettings::default().limits, FitSettings::default().leaves);
        Self { inputs: 48, held_out: 16, leaves, budget: Duration::from_secs(60), limits, seed: 0 }
    }
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Inputs are planned.
    Planning,
    /// Configurations are timed on all inputs.
    Timing,
    /// Inputs that the tree has not seen are planned, and its choice is timed beside the plan's.
    Judging,
}

/// Who exports what.
pub struct Exporting<'a> {
    /// Where profiles are kept.
    pub home: &'a Home,
    /// The kernel.
    pub kernel: &'a Arc<dyn AnyKernel>,
    /// The device.
    pub device: &'a Arc<DeviceSpec>,
    /// Fields that all inputs share.
    pub fixed: &'a Config,
    /// See [`Planning::model`].
    pub model: (Option<&'a str>, Option<&'a Path>),
    /// How.
    pub settings: ExportSettings,
    /// Hears of each input: what is done, how many were done, of how many.
    pub told: &'a mut dyn FnMut(Phase, usize, usize),
}

/// An artefact, and what is to be said of it.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The artefact, with its regret.
    pub artefact: Artefact,
    /// The inputs that judged it.
    pub held_out: Vec<HeldOut>,
    /// Configurations that were timed on all inputs.
    pub candidates: usize,
    /// Drawn inputs that no configuration of the artefact is legal for, of those that have a legal one, and how many were drawn.
    pub uncovered: (usize, usize),
    /// What people should know.
    pub notes: Vec<String>,
}

/// Why there is no artefact.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// No input was drawn that the kernel takes.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// Nothing was timed.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// No artefact.
    #[error(transparent)]
    Artefact(#[from] ArtefactError),
    /// Rules that cannot be written as code.
    #[error(
        "the rules of {kernel} cannot be written as code over the fields of its inputs{}: fixing fields may help, \
         such as {example}",
        if unknown.is_empty() { String::new() } else { format!(", since no field says {}", unknown.join(", ")) }
    )]
    Rules {
        /// The kernel.
        kernel: String,
        /// Names in rules that do not follow from fields.
        unknown: Vec<String>,
        /// Fields that are words, with a value.
        example: String,
    },
    /// Nothing that was tried computes right.
    #[error("no configuration was left whose result was right: {0}")]
    NothingRight(String),
}

/// A configuration that won somewhere, or nearly.
pub(crate) struct Candidate {
    choice: Choice,
    point: Point,
}

/// Inputs that were planned, what won there, and what people should know.
type Trained = (Vec<Config>, Vec<Candidate>, Vec<String>);

impl Exporting<'_> {
    /// Makes the artefact.
    ///
    /// # Errors
    /// Fields that describe no input, rules that are no code over fields, nothing that is legal, runs or computes right, a device that
    /// fails, or a file.
    pub fn run(mut self, measure: &mut dyn Measure) -> Result<Exported, Error> {
        let (clock, budget) = (Instant::now(), self.settings.budget);
        let drawn = self.drawn()?;
        let (training, held_out) = self.parted(&drawn);
        let began = clock.elapsed();
        let left = budget.saturating_sub(began);
        let (training, candidates, mut notes) =
            self.planned(measure, &training, &drawn, began + left.mul_f64(PLANNED), &clock)?;
        let until = began + left.mul_f64(PLANNED + TIMED);
        let cells = timed::cells(&mut self, measure, (&training, &candidates), (until, &clock))?;
        let (artefact, uncovered) = self.right(measure, &drawn, (&training, &candidates), cells, &mut notes)?;
        let judged = judged::judge(&mut self, measure, &artefact, &held_out, (budget, &clock))?;
        if judged.len() < held_out.len() {
            notes.push(format!("the time sufficed for {} of {} held-out inputs", judged.len(), held_out.len()));
        }
        let artefact = judged::with_regret(artefact, &judged);
        Ok(Exported { artefact, held_out: judged, candidates: candidates.len(), uncovered, notes })
    }

    /// Training inputs and held-out ones: of few different inputs, the training ones come first.
    fn parted(&self, drawn: &Drawn) -> (Vec<Config>, Vec<Config>) {
        let inputs = drawn.inputs();
        let training: Vec<Config> = inputs.iter().take(self.settings.inputs.max(1)).cloned().collect();
        let held_out = inputs[training.len()..].iter().take(self.settings.held_out).cloned().collect();
        (training, held_out)
    }

    /// Drawing may take so long: inputs that name data are made as they are bound.
    pub(super) fn time_to_draw(&self) -> Duration {
        self.settings.budget.mul_f64(DRAWING).max(Duration::from_secs(1))
    }

    /// Plans one input without remembering it, in about so much time.
    pub(crate) fn plan(
        &self,
        measure: &mut dyn Measure,
        input: &Config,
        time: Duration,
    ) -> Result<Option<Planned>, Error> {
        let mut settings =
            PlanSettings { seed: self.settings.seed, ignore_cached: true, remember: false, ..PlanSettings::default() };
        (settings.refine, settings.budget) = (time.mul_f64(0.4), time.mul_f64(0.5));
        settings.paired.max_time = time.mul_f64(0.25);
        let kernels = std::slice::from_ref(self.kernel);
        let planning =
            Planning { model: self.model, ..Planning::new(self.home, kernels, self.device, Some(measure), settings) };
        match planning.decide(input) {
            Ok((_, planned)) => Ok(Some(planned)),
            Err(Error::Runtime(error @ (RuntimeError::Device(_) | RuntimeError::Store(_) | RuntimeError::Bind(_)))) => {
                Err(Error::Runtime(error))
            }
            // An input that has no plan teaches nothing.
            Err(Error::Runtime(error)) => {
                tracing::warn!(%input, %error, "an input is left out");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The inputs that were planned, and the configurations that came out of it.
    fn planned(
        &mut self,
        measure: &mut dyn Measure,
        inputs: &[Config],
        drawn: &Drawn,
        until: Duration,
        clock: &Instant,
    ) -> Result<Trained, Error> {
        let (mut points, mut taken): (Vec<Point>, Vec<Config>) = (Vec::new(), Vec::new());
        let add = |points: &mut Vec<Point>, config: &Config| {
            let point = config.to_point(self.kernel.space().params(), None).ok();
            points.extend(point.filter(|point| !points.contains(point)));
        };
        let mut late = Vec::new();
        for (at, input) in inputs.iter().enumerate() {
            let left = until.saturating_sub(clock.elapsed());
            if left == Duration::ZERO && !taken.is_empty() {
                break;
            }
            (self.told)(Phase::Planning, at, inputs.len());
            let time = (left / (inputs.len() - at) as u32).max(Duration::from_millis(1));
            let Some(planned) = self.plan(measure, input, time)? else { continue };
            add(&mut points, &planned.config);
            late.extend(
                planned.decision.considered.iter().skip(1).take(ALTERNATIVES).map(|other| other.config.clone()),
            );
            let default = problem(&**self.kernel, self.device, input)?;
            late.extend(default.default_point().map(|point| default.space().config(&point)));
            taken.push(input.clone());
        }
        // What won somewhere comes first: what comes late may stay untimed.
        late.iter().for_each(|config| add(&mut points, config));
        let all = points.len();
        let candidates: Vec<Candidate> = points.into_iter().filter_map(|point| drawn.candidate(self, point)).collect();
        let mut notes = Vec::new();
        if taken.len() < inputs.len() {
            notes.push(format!("{} of {} drawn inputs were planned", taken.len(), inputs.len()));
        }
        if candidates.is_empty() && all > 0 {
            return Err(drawn.inexpressible(self).into());
        }
        if candidates.len() < all {
            let left_out = all - candidates.len();
            notes.push(format!("{left_out} of {all} configurations have rules that cannot be written as code"));
        }
        Ok((taken, candidates, notes))
    }

    /// The artefact of the candidates whose results are right.
    fn right(
        &self,
        measure: &mut dyn Measure,
        drawn: &Drawn,
        (training, candidates): (&[Config], &[Candidate]),
        mut cells: Vec<Vec<Cell>>,
        notes: &mut Vec<String>,
    ) -> Result<(Artefact, (usize, usize)), Error> {
        let problems = self.problems(training)?;
        let (mut checked, mut wrong) = (judged::Checked::default(), Vec::new());
        let inputs: Vec<Vec<i64>> = training.iter().filter_map(|input| drawn.domain().numbers(input).ok()).collect();
        let timed: Vec<(Config, Vec<Cell>)> = training.iter().cloned().zip(cells.iter().cloned()).collect();
        let others = drawn.inputs().get(self.settings.inputs + self.settings.held_out..).unwrap_or_default();
        let mut guessed = guessed::guessed(self, (others, drawn.domain()), &timed, candidates)?;
        loop {
            let table = Table {
                domain: drawn.domain(),
                inputs: inputs.clone(),
                cells: cells.clone(),
                guessed: guessed.clone(),
            };
            let settings = FitSettings { leaves: self.settings.leaves, ..FitSettings::default() };
            let fitted = fit(&table, &settings).map_err(ExportError::from)?;
            let first = checked.first_wrong(measure, &problems, candidates, &fitted.chosen)?;
            let Some((at, complaint)) = first else {
                let grown = Grown { training, candidates, wrong: &wrong, fitted: &fitted };
                return self.assembled(measure, drawn, &grown);
            };
            notes.push(format!("a configuration is left out, since its result was wrong: {complaint}"));
            wrong.push(candidates[at].point.clone());
            // It is as if it were not there: no leaf may name it, not even as the last of its list.
            let rows = cells.iter_mut().chain(guessed.iter_mut().map(|(_, row)| row));
            rows.for_each(|row| row[at] = Cell::Illegal);
            if cells.iter().flatten().all(|cell| !matches!(cell, Cell::Seconds(_))) {
                return Err(ExportError::NothingRight(complaint).into());
            }
        }
    }

    fn parts(&self, domain: Domain, inputs: Vec<Config>, candidates: &[Candidate], fallback: Vec<Choice>) -> Parts<'_> {
        Parts {
            kernel: self.kernel.id(),
            computation: self.kernel.computation(),
            device: self.device,
            domain,
            inputs,
            candidates: candidates.iter().map(|candidate| candidate.choice.clone()).collect(),
            fallback,
        }
    }

    fn problems(&self, inputs: &[Config]) -> Result<Vec<Box<dyn Problem>>, Error> {
        inputs.iter().map(|input| problem(&**self.kernel, self.device, input)).collect()
    }
}
