//! The measuring part of a campaign: inputs are drawn, and for each a search of every kernel is driven on the device that took it.

use super::recorder::Recorder;
use super::settings::TuneSettings;
use super::training::rows;
use crate::error::RuntimeError;
use crate::knowledge::{Shared, not_drawn};
use crate::log::Sample;
use crate::nothing_legal::nothing_legal;
use crate::trainer::Trainer;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tilewright_core::device::DeviceSpec;
use tilewright_core::measurement::Outcome;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Measure, Problem};
use tilewright_core::program::DeviceError;
use tilewright_core::search::Search;
use tilewright_core::space::{Config, Point};
use tilewright_sampler::DrawError;
use tilewright_search::drive::{Budget, DriveError, Evaluate, Limits, Refused};
use tilewright_search::strategy::{Mixture, Survey};
use tilewright_search::{Evaluator, Model, Setup, Source, drive, suggest};

/// Drawn inputs in a row without a legal configuration, or with all of theirs measured, before the campaign ends.
const IDLE_INPUTS: u32 = 50;

/// Drawn inputs in a row that no kernel takes, before the campaign says why.
const REFUSED_INPUTS: u32 = 1000;

/// Inputs whose code is compiled while another is measured: one that is cut short must not leave the device waiting for the next.
const ROUNDS_AHEAD: usize = 2;

/// Measurements of a kernel before a model is fitted to guide the rest.
const FEWEST_TO_GUIDE: u64 = 200;

/// Winners of earlier inputs that are remembered.
const CARRIED_KEPT: usize = 24;

/// Drawn points that a model's suggestions begin from, beside the winners.
const DRAWN_TO_GUIDE: usize = 32;

/// One kernel of a campaign, and what was learned of it on the way.
struct Subject<'c> {
    kernel: &'c dyn AnyKernel,
    source: Shared<'c>,
    learned: Mutex<Learned>,
}

#[derive(Clone, Default)]
struct Learned {
    /// Points that were the best for earlier inputs, newest last.
    carried: Vec<Point>,
    /// A model that was fitted while the campaign runs.
    guide: Option<Arc<dyn Predictor>>,
    /// How many of the settings' moments of fitting a guide have passed.
    fitted: usize,
}

/// What the devices of a campaign share.
pub(super) struct Campaign<'c> {
    subjects: Vec<Subject<'c>>,
    trainer: &'c dyn Trainer,
    settings: &'c TuneSettings,
    device: Arc<DeviceSpec>,
    devices: usize,
    recorder: Mutex<Recorder<'c>>,
    next_draw: AtomicU64,
    idle: AtomicU32,
    /// What ended the campaign early.
    broken: Mutex<Option<RuntimeError>>,
}

/// A drawn input with the problems of all kernels that take it.
struct Round {
    draw: u64,
    parts: Vec<Part>,
}

/// A kernel for the input at hand.
struct Part {
    /// Which of the subjects.
    of: usize,
    problem: Box<dyn Problem>,
    input: Config,
    rng: ChaCha8Rng,
    /// What is measured first. It was announced where a device compiles ahead.
    starts: Option<Arc<Vec<Point>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'c> Campaign<'c> {
    /// A campaign of these kernels, each with what its configurations are drawn from.
    pub(super) fn new(
        kernels: impl Iterator<Item = (&'c dyn AnyKernel, Shared<'c>)>,
        trainer: &'c dyn Trainer,
        settings: &'c TuneSettings,
        (device, devices): (Arc<DeviceSpec>, usize),
        recorder: Recorder<'c>,
    ) -> Self {
        let subject = |(kernel, source)| Subject { kernel, source, learned: Mutex::default() };
        Self {
            subjects: kernels.map(subject).collect(),
            trainer,
            settings,
            device,
            devices,
            next_draw: AtomicU64::new(recorder.next_draw()),
            recorder: Mutex::new(recorder),
            idle: AtomicU32::new(0),
            broken: Mutex::new(None),
        }
    }

    /// Measures on all devices until the budget ends, and gives the logs back.
    pub(super) fn measure(self, devices: &mut [&mut dyn Measure]) -> Result<Recorder<'c>, RuntimeError> {
        let Some((first, others)) = devices.split_first_mut() else {
            return Err(RuntimeError::Setting { field: "devices", message: "at least one".into() });
        };
        std::thread::scope(|scope| {
            for device in others {
                let campaign = &self;
                scope.spawn(move || campaign.work(&mut **device));
            }
            self.work(&mut **first);
        });
        let mut recorder = self.recorder.into_inner().unwrap_or_else(PoisonError::into_inner);
        recorder.sync()?;
        match self.broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(recorder),
        }
    }

    fn is_over(&self) -> bool {
        locked(&self.broken).is_some() || locked(&self.recorder).is_over()
    }

    fn work(&self, device: &mut dyn Measure) {
        if let Err(error) = self.rounds(device) {
            locked(&self.broken).get_or_insert(error);
        }
        device.abandon();
    }

    /// Takes inputs until there is no need for more. A device that compiles ahead is given the code of the next ones before this one
    /// is measured.
    fn rounds(&self, device: &mut dyn Measure) -> Result<(), RuntimeError> {
        let mut mark = Instant::now();
        let (mut next, mut ahead) = (VecDeque::new(), 1);
        while !self.is_over() && self.idle.load(Ordering::Relaxed) < IDLE_INPUTS {
            (0..self.subjects.len()).try_for_each(|of| self.fit_guide(of))?;
            let round = match next.pop_front() {
                Some(round) => round,
                None => self.prepared(device)?,
            };
            while device.ahead() > 1 && next.len() < ahead {
                next.push_back(self.prepared(device)?);
            }
            // The first measurement does not wait for all of them.
            ahead = ROUNDS_AHEAD;
            self.measure_round(device, &round, &mut mark)?;
        }
        Ok(())
    }

    /// Draws inputs until some kernel takes one.
    fn round(&self) -> Result<Round, RuntimeError> {
        let mut refused = None;
        for _ in 0..REFUSED_INPUTS {
            let round = self.drawn(&mut refused)?;
            if !round.parts.is_empty() {
                return Ok(round);
            }
        }
        Err(refused.unwrap_or_else(|| RuntimeError::Setting { field: "kernels", message: "at least one".into() }))
    }

    /// Draws an input, from a stream of its own, so that a resumed campaign draws what an uninterrupted one does. The first refusal of
    /// all is kept.
    fn drawn(&self, refused: &mut Option<RuntimeError>) -> Result<Round, RuntimeError> {
        let settings = self.settings;
        let draw = self.next_draw.fetch_add(1, Ordering::Relaxed);
        let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
        rng.set_stream(draw.wrapping_add(1));
        let drawn = self.subjects[0].kernel.draw(&settings.fixed, &settings.limits, &mut || rng.random())?;
        let mut parts = Vec::new();
        for (of, subject) in self.subjects.iter().enumerate() {
            match subject.kernel.problem(&self.device, &drawn) {
                Ok(problem) => {
                    let (input, rng) = (problem.input(), rng.clone());
                    parts.push(Part { of, problem, input, rng, starts: None });
                }
                Err(error) => {
                    tracing::debug!(kernel = %subject.kernel.id(), input = %drawn, %error, "not for this kernel");
                    refused.get_or_insert(error.into());
                }
            }
        }
        Ok(Round { draw, parts })
    }

    /// A round whose first configurations are compiled from now on, where the device compiles ahead.
    fn prepared(&self, device: &mut dyn Measure) -> Result<Round, RuntimeError> {
        let mut round = self.round()?;
        let ahead = device.ahead();
        for part in round.parts.iter_mut().filter(|_| ahead > 1) {
            let (problem, mut rng) = (&*part.problem, part.rng.clone());
            let starts = Arc::new(self.starts(part, &mut rng)?);
            let count = self.settings.at_once.min(self.settings.configs_per_input as usize);
            let asked = self.survey(&self.setup(part, starts), part.of, rng).ask(count);
            device.expect(problem, &asked);
            part.starts = Some(Arc::new(asked));
            // What was asked is not drawn again.
            part.rng.set_stream(!part.rng.get_stream());
        }
        Ok(round)
    }

    fn measure_round(&self, device: &mut dyn Measure, round: &Round, mark: &mut Instant) -> Result<(), RuntimeError> {
        let (mut new, mut anything_legal) = (0, false);
        for part in &round.parts {
            if self.is_over() {
                return Ok(());
            }
            let found = self.measure_part(device, round.draw, part, mark)?;
            anything_legal |= found.is_some();
            new += found.unwrap_or(0);
        }
        if new > 0 {
            self.idle.store(0, Ordering::Relaxed);
        } else if self.idle.fetch_add(1, Ordering::Relaxed) + 1 == IDLE_INPUTS && !anything_legal {
            let measured = locked(&self.recorder).logs.iter().any(|kept| !kept.samples.is_empty());
            if let Some(part) = round.parts.first().filter(|_| !measured) {
                return Err(nothing_legal(&*part.problem));
            }
        }
        Ok(())
    }

    /// Fits a model on what was measured of a kernel, when it is time to.
    fn fit_guide(&self, of: usize) -> Result<(), RuntimeError> {
        let (settings, Subject { kernel, learned, .. }) = (self.settings, &self.subjects[of]);
        let samples = {
            let (recorder, mut learned) = (locked(&self.recorder), locked(learned));
            let due = settings.guide_at.iter().filter(|at| **at <= recorder.done()).count();
            let has_choice = kernel.space().params().iter().any(|p| p.values.len() > 1);
            let is_due = due > learned.fitted && settings.guided > 0.0 && has_choice;
            if !is_due || recorder.logs[of].ok() < FEWEST_TO_GUIDE {
                return Ok(());
            }
            learned.fitted = due;
            recorder.logs[of].samples.clone()
        };
        let rows = rows(*kernel, &self.device, &samples, &settings.objective, self.trainer.prior())?;
        match self.trainer.train(&rows.set, settings.seed) {
            Ok(trained) => locked(learned).guide = Some(trained.predictor.into()),
            Err(error) => tracing::warn!(%error, "going on without a guide"),
        }
        Ok(())
    }

    /// What a guide expects to be the best, behind the default.
    fn starts(&self, part: &Part, rng: &mut ChaCha8Rng) -> Result<Vec<Point>, RuntimeError> {
        let (problem, space) = (&*part.problem, part.problem.space());
        let mut starts: Vec<Point> = problem.default_point().into_iter().collect();
        let Learned { carried, guide, .. } = locked(&self.subjects[part.of].learned).clone();
        if let Some(guide) = guide {
            let count = (self.settings.guided * f64::from(self.settings.configs_per_input)).ceil() as usize;
            let mut from: Vec<Point> = carried.into_iter().filter(|p| space.is_legal(p)).collect();
            // A space without legal points is told from this by whoever measures.
            from.extend((0..DRAWN_TO_GUIDE).map_while(|_| self.subjects[part.of].source.draw(space, rng)));
            let scorer = guide.bind(problem)?;
            starts.extend(suggest(space, Model { scorer: &*scorer, is_costly: false }, from, count));
        }
        Ok(starts)
    }

    fn setup<'s>(&'s self, part: &'s Part, starts: Arc<Vec<Point>>) -> Setup<'s> {
        let (objective, source) = (self.settings.objective.clone(), &self.subjects[part.of].source);
        Setup { starts, objective, source: Some(source), ..Setup::new(part.problem.space()) }
    }

    fn survey<'s>(&self, setup: &Setup<'s>, of: usize, rng: ChaCha8Rng) -> Survey<'s> {
        let TuneSettings { neighbours, near_carried, carried, .. } = *self.settings;
        let winners = locked(&self.subjects[of].learned).carried.clone();
        Survey::new(setup, Mixture { neighbours, near_carried, carried }, &winners, rng)
    }

    /// How many configurations of a kernel were measured; none if none is legal.
    fn measure_part(
        &self,
        device: &mut dyn Measure,
        draw: u64,
        part: &Part,
        mark: &mut Instant,
    ) -> Result<Option<u64>, RuntimeError> {
        let (settings, problem) = (self.settings, &*part.problem);
        let (seen, left, until_s) = self.state_of(draw, part);
        if left == 0 {
            return Ok(Some(0));
        }
        let mut rng = part.rng.clone();
        let starts = match &part.starts {
            Some(announced) => announced.clone(),
            None => Arc::new(self.starts(part, &mut rng)?),
        };
        let setup = self.setup(part, starts);
        let mut search = self.survey(&setup, part.of, rng);
        search.tell(&seen);
        let best = search.best().points.first().map(|(_, cost)| *cost);
        let limits = Limits { cut_off: settings.cut_off, rough: settings.rough };
        let clock = Instant::now();
        let mut live = Evaluator::new(problem, device, &settings.objective, (&settings.timing, limits), &clock);
        live.set_best(best);
        let seen = search.best().considered;
        let (new, recent, failed) = (0, Vec::new(), None);
        let mut input = Input { live, campaign: self, draw, part, until_s, mark, best, seen, new, recent, failed };
        let driven = drive(&mut search, "survey", &settings.objective, &Budget::evaluations(left), &mut input);
        let (new, failed) = (input.new, input.failed);
        if let Some(error) = failed {
            return Err(error);
        }
        match driven {
            // Too large for this device: another input.
            Ok(_) | Err(DriveError::Device(DeviceError::OutOfMemory { .. })) => {}
            Err(DriveError::Device(error)) => return Err(error.into()),
            Err(error) => return Err(RuntimeError::Strategy { name: "survey".into(), message: error.to_string() }),
        }
        let best = search.best();
        match self.subjects[part.of].source.take_failure() {
            Some(DrawError::Exhausted { .. }) if best.considered == 0 => return Ok(None),
            None | Some(DrawError::Exhausted { .. }) => {}
            Some(error) => return Err(not_drawn(problem, error)),
        }
        if let Some((point, _)) = best.points.into_iter().next() {
            self.carry(part.of, point);
        }
        Ok(Some(new))
    }

    /// What was measured of a kernel's input before, how many configurations are left, and at which second of the budget the rest
    /// is left.
    fn state_of(&self, draw: u64, part: &Part) -> (Vec<(Point, Outcome)>, u64, f64) {
        let (settings, recorder) = (self.settings, locked(&self.recorder));
        let share = settings.input_share / self.subjects.len() as f64;
        let until_s = recorder.spent_s() + settings.budget.as_secs_f64() * share;
        let mut left = u64::from(settings.configs_per_input);
        let mut seen = Vec::new();
        for s in recorder.logs[part.of].samples.iter().filter(|s| s.input == part.input) {
            left -= u64::from(s.draw == draw && s.seed == settings.seed && left > 0);
            if let Ok(point) = s.config.to_point(part.problem.space().params(), None) {
                seen.push((point, s.outcome.clone()));
            }
        }
        (seen, left, until_s)
    }

    fn carry(&self, of: usize, point: Point) {
        let carried = &mut locked(&self.subjects[of].learned).carried;
        carried.retain(|p| *p != point);
        if carried.len() >= CARRIED_KEPT {
            carried.remove(0);
        }
        carried.push(point);
    }
}

/// Measures the configurations of one kernel for one input, and records them.
struct Input<'x, 'c> {
    live: Evaluator<'x>,
    campaign: &'x Campaign<'c>,
    draw: u64,
    part: &'x Part,
    /// When most of the configurations have been measured, the budget's time at which the rest is left.
    until_s: f64,
    /// When this device's last sample was complete.
    mark: &'x mut Instant,
    /// The least cost so far.
    best: Option<f64>,
    /// Configurations that were measured of it, and how many of them now.
    seen: u64,
    new: u64,
    /// What was measured since others on this machine were last looked at, with its cost.
    recent: Vec<(Point, f64)>,
    /// What ended the campaign, if not the device.
    failed: Option<RuntimeError>,
}

impl Evaluate for Input<'_, '_> {
    fn ahead(&self) -> usize {
        self.live.ahead().min(self.campaign.settings.at_once)
    }

    fn expect(&mut self, points: &[Point]) {
        let is_new = |p: &&Point| !self.part.starts.as_ref().is_some_and(|announced| announced.contains(p));
        self.live.expect(&points.iter().filter(is_new).cloned().collect::<Vec<_>>());
    }

    fn evaluate(&mut self, point: &Point) -> Result<Outcome, Refused> {
        self.live.check(point)?;
        let settings = self.campaign.settings;
        let cut_off_s = self.live.timing().cut_off.map(|limit| limit.as_secs_f64());
        let outcome = self.live.time(point).map_err(Refused::Device)?;
        let cost = outcome.as_ref().ok().and_then(|m| settings.objective.cost(m));
        self.seen += 1;
        self.new += 1;
        self.record(point, outcome.clone(), cut_off_s);
        self.recent.extend(cost.map(|cost| (point.clone(), cost)));
        let looked = locked(&self.campaign.recorder).bystanders.look();
        if looked.is_some() {
            let recent = std::mem::take(&mut self.recent);
            if looked == Some(true) {
                self.again(&recent).map_err(Refused::Device)?;
            }
        }
        Ok(outcome)
    }

    fn seconds(&self) -> f64 {
        self.live.seconds()
    }

    fn is_over(&self) -> bool {
        let fewest = u64::from(self.campaign.settings.configs_per_input.div_ceil(3));
        let is_late = || self.seen >= fewest && locked(&self.campaign.recorder).spent_s() >= self.until_s;
        self.failed.is_some() || is_late() || self.campaign.is_over()
    }
}

impl Input<'_, '_> {
    /// Measures once more what was measured while others disturbed, and records what is clearly better now: models are fitted on the
    /// least time of a configuration.
    fn again(&mut self, disturbed: &[(Point, f64)]) -> Result<(), DeviceError> {
        /// Of the first cost; closer ones are the same.
        const BETTER: f64 = 0.95;
        for (point, before) in disturbed {
            if self.is_over() {
                break;
            }
            let outcome = self.live.time(point)?;
            let cost = outcome.as_ref().ok().and_then(|m| self.campaign.settings.objective.cost(m));
            if cost.is_some_and(|now| now < BETTER * before) {
                self.record(point, outcome, None);
            }
        }
        Ok(())
    }

    fn record(&mut self, point: &Point, outcome: Outcome, cut_off_s: Option<f64>) {
        let settings = self.campaign.settings;
        let cost = outcome.as_ref().ok().and_then(|m| settings.objective.cost(m));
        self.best = cost.into_iter().chain(self.best).min_by(f64::total_cmp);
        let sample = Sample {
            draw: self.draw,
            seed: settings.seed,
            input: self.part.input.clone(),
            config: self.part.problem.space().config(point),
            outcome,
            cut_off_s,
            // Devices that measure at once share the time.
            spent_s: self.mark.elapsed().as_secs_f64() / self.campaign.devices as f64,
        };
        *self.mark = Instant::now();
        let recorded = locked(&self.campaign.recorder).record(self.part.of, sample, self.best);
        self.failed = self.failed.take().or(recorded.err());
    }
}
