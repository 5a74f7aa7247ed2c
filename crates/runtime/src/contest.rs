//! Programs of one computation beside each other on one device: generated ones, a user's own, routines of libraries.
//!
//! All run on the same data. Each result is checked first, and one that is wrong is not timed. Then, in rounds whose order rotates,
//! each is timed once; its cost is the median over the rounds, so that a disturbance of one round, or a drift of the clock, touches
//! all or none. On a host a round's time is a block of calls long enough for the clock, led, if calls are shorter than the block, by
//! one that is not timed.

mod settle;

use crate::verify::{Verification, Verifier, VerifyError, VerifySettings};
pub(crate) use settle::settle;
use std::sync::Arc;
use std::time::Duration;
use tilewright_core::buffer::{Buffers, Filling};
use tilewright_core::device::{DeviceKind, DeviceSpec, classify};
use tilewright_core::measurement::{Failure, FailureKind, Measurement, Timing};
use tilewright_core::objective::Objective;
use tilewright_core::problem::{AnyKernel, Measure, MeasureError, Problem};
use tilewright_core::program::DeviceError;
use tilewright_core::space::{Config, Point};
use tilewright_core::timing::median_interval;

/// What the caches hold when a call starts.
pub const CACHE_POLICY: &str =
    "warm: every call on the same buffers, caches as the contender's own previous call left them; packing is timed";

/// One of those compared.
#[derive(Clone)]
pub struct Entrant {
    /// Its name in the results.
    pub name: String,
    /// The kernel, on the device and the input that all entrants share.
    pub problem: Arc<dyn Problem>,
    /// The configuration.
    pub point: Point,
}

/// How entrants are checked and timed.
#[derive(Clone, Debug)]
pub struct ContestSettings {
    /// What is compared: the time, unless the device has no clock.
    pub objective: Objective,
    /// What results are checked on.
    pub verify: VerifySettings,
    /// Most rounds; each entrant is timed once in each. At least 1.
    pub rounds: usize,
    /// Fewest rounds: after these, the rounds end once every entrant has been timed for `enough`.
    pub min_rounds: usize,
    /// See `min_rounds`: long calls need no more rounds than this fills.
    pub enough: Duration,
    /// A round's time is that of as many calls in one go as fit into this, and of at least one; where there is none, of a measurement
    /// by `timing`.
    pub block: Option<Duration>,
    /// How entrants are timed in a round; with blocks, how they are warmed up before the first.
    pub timing: Timing,
    /// Whether to wait before each block until the process is idle: needed when entrants have threads of their own.
    pub settle: bool,
    /// Entrants this far behind the best (relative) are timed no more after [`JUDGED_AFTER`] rounds.
    pub drop_beyond: f64,
}

/// Rounds after which an entrant may be known to be slow.
pub const JUDGED_AFTER: usize = 3;

impl ContestSettings {
    /// The usual ones on a device. On the host 15 rounds of 30 ms, fewer (at least 7) where calls take longer than that: with fewer,
    /// one slow second of a shared machine is the median of whoever it meets. Results are checked on integers, whose sums are
    /// exact in any order.
    pub fn on(device: &DeviceSpec, seed: u64) -> Self {
        let timing = Timing { max_time: Duration::from_millis(15), ..Timing::default() };
        let common = Self {
            objective: Objective::default(),
            verify: VerifySettings { fillings: vec![Filling::Exact], seed },
            rounds: 15,
            min_rounds: 15,
            enough: Duration::MAX,
            block: None,
            timing: Timing { max_repeats: 8, relative_error: 0.01, ..timing.clone() },
            settle: false,
            drop_beyond: f64::INFINITY,
        };
        if device.kind != DeviceKind::Cpu {
            return common;
        }
        Self {
            min_rounds: 7,
            enough: Duration::from_millis(400),
            block: Some(Duration::from_millis(30)),
            timing: Timing { min_repeats: 1, max_repeats: 1000, relative_error: 0.0, ..timing },
            settle: device.fact("threads").is_some_and(|threads| threads > 1),
            ..common
        }
    }

    fn wait(&self) {
        if self.settle {
            settle();
        }
    }
}

/// What became of an entrant.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Its median cost over the rounds; or why it has none, [`FailureKind::Wrong`] where its result was wrong.
    pub cost: Result<f64, Failure>,
    /// Its cost in each round.
    pub rounds: Vec<f64>,
    /// The largest relative error of its result.
    pub max_rel_error: f64,
}

/// Checks the entrants, and times those that are right beside each other. Standings are in the order of the entrants.
///
/// # Errors
/// A device that failed, or one that results cannot be checked on; an entrant that fails is no error.
pub fn contest(
    measure: &mut dyn Measure,
    entrants: &[Entrant],
    settings: &ContestSettings,
) -> Result<Vec<Standing>, DeviceError> {
    let checked = check(measure, entrants, settings)?;
    let timed: Vec<Timed<'_>> = entrants.iter().map(|e| (&*e.problem, &e.point)).collect();
    let runs = rounds(measure, &timed, settings, &|at| checked[at].as_ref().err().cloned())?;
    let errors = checked.iter().map(|c| c.as_ref().map_or(f64::NAN, Verification::max_rel_error));
    Ok(runs.into_iter().zip(errors).map(|(runs, max_rel_error)| runs.standing(max_rel_error)).collect())
}

/// Times once more, under other settings, those that were right, without checking them again: `CachePolicy::Cold` beside warm caches.
/// The median cost of each; none of those that failed, before or now.
///
/// # Errors
/// A device that failed.
pub fn again(
    measure: &mut dyn Measure,
    entrants: &[&Entrant],
    settings: &ContestSettings,
) -> Result<Vec<Option<f64>>, DeviceError> {
    let timed: Vec<Timed<'_>> = entrants.iter().map(|e| (&*e.problem, &e.point)).collect();
    let runs = rounds(measure, &timed, settings, &|_| None)?;
    Ok(runs.iter().map(Runs::median).collect())
}

/// A problem, and the point of it that is timed.
pub(crate) type Timed<'e> = (&'e dyn Problem, &'e Point);

/// Times what did not fail before, in rounds.
pub(crate) fn rounds(
    measure: &mut dyn Measure,
    timed: &[Timed<'_>],
    settings: &ContestSettings,
    failed_before: &dyn Fn(usize) -> Option<Failure>,
) -> Result<Vec<Runs>, DeviceError> {
    let mut runs = Vec::with_capacity(timed.len());
    for (at, entrant) in timed.iter().enumerate() {
        runs.push(match failed_before(at) {
            None => {
                settings.wait();
                Runs::new(measure, *entrant, settings)?
            }
            Some(failure) => Runs::failed(failure),
        });
    }
    for round in 0..settings.rounds.max(1) {
        for turn in 0..runs.len() {
            let at = (round + turn) % runs.len();
            runs[at].round(measure, timed[at], settings)?;
        }
        if round + 1 >= JUDGED_AFTER {
            let best = runs.iter().filter_map(Runs::median).fold(f64::INFINITY, f64::min);
            let is_slow = |r: &Runs| r.median().is_some_and(|cost| cost > best * (1.0 + settings.drop_beyond));
            runs.iter_mut().for_each(|r| r.is_out |= is_slow(r));
        }
        if round + 1 >= settings.min_rounds
            && runs.iter().all(|r| r.is_out || r.timed_s >= settings.enough.as_secs_f64())
        {
            break;
        }
    }
    Ok(runs)
}

/// Runs every entrant on fresh data. The data and what must come out are made once: they are the input's.
fn check(
    measure: &mut dyn Measure,
    entrants: &[Entrant],
    settings: &ContestSettings,
) -> Result<Vec<Result<Verification, Failure>>, DeviceError> {
    let id = measure.spec().id.clone();
    let Some(device) = measure.device() else {
        return Err(DeviceError::Unsupported { device: id, feature: "results that could be checked".into() });
    };
    let mut verifier = Verifier::new(settings.verify.clone());
    let mut one = |entrant: &Entrant| {
        settings.wait();
        let verification = match verifier.check(device, &*entrant.problem, &entrant.point) {
            Ok(verification) => verification,
            Err(VerifyError::Illegal(e)) => return failed(MeasureError::from(e)),
            Err(VerifyError::Device(e)) => return failed(classify(e)),
        };
        Ok(match verification.complaint() {
            Some(message) => Err(Failure { kind: FailureKind::Wrong, message }),
            // The results of all entrants together would be many times the data.
            None => Ok(Verification { after: Buffers::new(), ..verification }),
        })
    };
    entrants.iter().map(&mut one).collect()
}

/// Tells the failure of one entrant from that of the device.
fn failed<T>(error: MeasureError) -> Result<Result<T, Failure>, DeviceError> {
    match error {
        MeasureError::Failed(failure) => Ok(Err(failure)),
        MeasureError::Device(error) => Err(error),
    }
}

/// What an entrant showed so far.
pub(crate) struct Runs {
    timing: Timing,
    costs: Vec<f64>,
    timed_s: f64,
    failure: Option<Failure>,
    is_out: bool,
}

impl Runs {
    fn failed(failure: Failure) -> Self {
        Self { timing: Timing::default(), costs: Vec::new(), timed_s: 0.0, failure: Some(failure), is_out: true }
    }

    /// With blocks, warms up and finds how many calls a block has.
    fn new(measure: &mut dyn Measure, entrant: Timed<'_>, settings: &ContestSettings) -> Result<Self, DeviceError> {
        let timing = settings.timing.clone();
        let mut new = Self { timing, costs: Vec::new(), timed_s: 0.0, failure: None, is_out: false };
        let Some(block) = settings.block else { return Ok(new) };
        if let Some(warm) = new.measure(measure, entrant)? {
            let calls = (block.as_secs_f64() / warm.time_s.max(1e-8)).round().max(1.0) as u32;
            // Bringing the caches and the workers back from whoever ran before is a small part of a call that takes longer than
            // a block.
            let warmup = u32::from(warm.time_s <= block.as_secs_f64());
            new.timing = Timing { warmup, min_repeats: 1, max_repeats: 1, batch: Some(calls), ..Timing::default() };
        }
        Ok(new)
    }

    fn measure(
        &mut self,
        measure: &mut dyn Measure,
        (problem, point): Timed<'_>,
    ) -> Result<Option<Measurement>, DeviceError> {
        match measure.measure(problem, point, &self.timing).map_or_else(failed, |m| Ok(Ok(m)))? {
            Ok(measurement) => Ok(Some(measurement)),
            Err(failure) => {
                *self = Self::failed(failure);
                Ok(None)
            }
        }
    }

    fn round(
        &mut self,
        measure: &mut dyn Measure,
        entrant: Timed<'_>,
        settings: &ContestSettings,
    ) -> Result<(), DeviceError> {
        if self.is_out {
            return Ok(());
        }
        settings.wait();
        let Some(measurement) = self.measure(measure, entrant)? else { return Ok(()) };
        let runs = self.timing.batch.unwrap_or(1).saturating_mul(measurement.repeats);
        self.timed_s += measurement.time_s * f64::from(runs);
        match settings.objective.cost(&measurement) {
            Some(cost) => self.costs.push(cost),
            None => {
                let message = format!("the device does not tell {}", settings.objective.metric);
                *self = Self::failed(Failure { kind: FailureKind::Launch, message });
            }
        }
        Ok(())
    }

    pub(crate) fn median(&self) -> Option<f64> {
        (!self.costs.is_empty()).then(|| median_interval(&mut self.costs.clone()).median)
    }

    /// The cost in each round, from the first on.
    pub(crate) fn costs(&self) -> &[f64] {
        &self.costs
    }

    fn standing(self, max_rel_error: f64) -> Standing {
        let untimed = || Failure { kind: FailureKind::Launch, message: "it could not be timed".into() };
        let cost = self.median().ok_or_else(|| self.failure.unwrap_or_else(untimed));
        Standing { cost, rounds: self.costs, max_rel_error }
    }
}

/// Entrants for kernels of libraries on an input: the default configuration by the library's name and, of one that has several,
/// the fastest of all as `NAME-best`. Beside them those that do not take the input, and why.
///
/// # Errors
/// A device that failed.
pub fn libraries(
    measure: &mut dyn Measure,
    kernels: &[Arc<dyn AnyKernel>],
    input: &Config,
    settings: &ContestSettings,
) -> Result<(Vec<Entrant>, Vec<String>), DeviceError> {
    let (mut entrants, mut missing) = (Vec::new(), Vec::new());
    let device = measure.spec().clone();
    for kernel in kernels {
        let id = kernel.id();
        let problem = kernel.problem(&device, input).map_err(|e| e.to_string());
        let started = problem.and_then(|problem| {
            let point = problem.default_point().ok_or("no configuration is legal")?;
            Ok((Arc::<dyn Problem>::from(problem), point))
        });
        let (problem, point) = match started {
            Ok(started) => started,
            Err(why) => {
                missing.push(format!("{}: {why}", id.name()));
                continue;
            }
        };
        let entrant = |name: String, point: Point| Entrant { name, problem: problem.clone(), point };
        entrants.push(entrant(id.name().to_owned(), point));
        if let Some(best) = fastest(measure, &*problem, settings)? {
            entrants.push(entrant(format!("{}-best", id.name()), best));
        }
    }
    Ok((entrants, missing))
}

/// The fastest configuration of a space that has several and whose default runs.
fn fastest(
    measure: &mut dyn Measure,
    problem: &dyn Problem,
    settings: &ContestSettings,
) -> Result<Option<Point>, DeviceError> {
    if problem.space().params().is_empty() {
        return Ok(None);
    }
    let mut cost = |point: &Point| match measure.measure(problem, point, &settings.timing) {
        Ok(measurement) => Ok(settings.objective.cost(&measurement)),
        Err(error) => failed(error).map(|never: Result<f64, Failure>| never.ok()),
    };
    let mut walk = problem.space().walk();
    let (mut best, mut seen): (Option<(f64, Point)>, u32) = (None, 0);
    while let Some(point) = walk.next_point() {
        let point = Point(point.to_vec());
        seen += 1;
        match cost(&point)? {
            Some(cost) if best.as_ref().is_none_or(|(least, _)| cost < *least) => best = Some((cost, point)),
            None if best.is_none() => return Ok(None),
            _ => {}
        }
    }
    Ok(best.filter(|_| seen > 1).map(|(_, point)| point))
}

#[cfg(test)]
mod tests;
