//! The measuring part of a campaign: inputs are drawn, and a search of each is driven on the device.

use super::Tuner;
use super::recorder::Recorder;
use super::training::rows;
use crate::error::RuntimeError;
use crate::knowledge::{Shared, not_drawn};
use crate::log::{CampaignLog, Sample};
use crate::nothing_legal::nothing_legal;
use crate::trainer::Trainer;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use tilewright_core::measurement::Outcome;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Measure, Problem};
use tilewright_core::search::Search;
use tilewright_core::space::Point;
use tilewright_core::timing::Clock;
use tilewright_sampler::DrawError;
use tilewright_search::drive::{Budget, DriveError, Evaluate, Limits, Refused};
use tilewright_search::strategy::{Mixture, Survey};
use tilewright_search::{Evaluator, Model, Setup, Source, drive, suggest};

/// Drawn inputs in a row without a legal configuration, or with all of theirs measured, before the campaign ends.
const IDLE_INPUTS: u32 = 50;

/// Measurements before a model is fitted to guide the rest.
const FEWEST_TO_GUIDE: u64 = 200;

/// Winners of earlier inputs that are remembered.
const CARRIED_KEPT: usize = 24;

/// Drawn points that a model's suggestions begin from, beside the winners.
const DRAWN_TO_GUIDE: usize = 32;

/// Configurations that are proposed at once, at most: each knows less of the input than if it had waited for the others.
const MOST_AT_ONCE: usize = 4;

pub(super) struct Campaign<'c> {
    kernel: &'c dyn AnyKernel,
    measure: &'c mut (dyn Measure + 'c),
    source: Shared<'c>,
    trainer: &'c dyn Trainer,
    recorder: Recorder<'c>,
    /// Points that were the best for earlier inputs, newest last.
    carried: Vec<Point>,
    /// A model that was fitted while the campaign runs.
    guide: Option<Box<dyn Predictor>>,
    /// How many of the settings' moments of fitting a guide have passed.
    fitted: usize,
}

/// The input at hand.
struct Round {
    draw: u64,
    problem: Box<dyn Problem>,
    rng: ChaCha8Rng,
    /// What was measured of it before.
    seen: Vec<(Point, Outcome)>,
    /// Configurations still to be measured.
    left: usize,
    /// When most of them have been measured, the budget's time at which the rest is left.
    until_s: f64,
}

impl<'c> Campaign<'c> {
    /// Takes up a log; the samples after the first `finished` belong to an interrupted campaign.
    pub(super) fn new(
        tuner: &'c mut Tuner<'_>,
        log: CampaignLog,
        samples: Vec<Sample>,
        finished: usize,
        clock: &'c dyn Clock,
    ) -> Self {
        let Tuner { kernel, measure, sampler, trainer, observer, settings } = tuner;
        let recorder = Recorder::new(log, samples, finished, (settings, &mut **observer), clock);
        let (carried, guide, fitted) = (Vec::new(), None, 0);
        Self {
            kernel: *kernel,
            measure: &mut **measure,
            source: Shared::new(&mut **sampler),
            trainer: *trainer,
            recorder,
            carried,
            guide,
            fitted,
        }
    }

    /// The log and everything in it.
    pub(super) fn finish(self) -> (CampaignLog, Vec<Sample>) {
        self.recorder.finish()
    }

    /// Measures until the budget ends.
    pub(super) fn measure(&mut self) -> Result<(), RuntimeError> {
        let mut draw = self.recorder.next_draw();
        let mut idle = 0;
        while !self.recorder.is_over() {
            self.fit_guide()?;
            let round = self.round(draw)?;
            let before = self.recorder.samples.len();
            let found = self.measure_input(&round)?;
            idle = if self.recorder.samples.len() > before { 0 } else { idle + 1 };
            if idle == IDLE_INPUTS {
                match found {
                    Found::NothingLegal => return Err(nothing_legal(&*round.problem)),
                    Found::Something => break,
                }
            }
            draw = draw.wrapping_add(1);
        }
        self.recorder.sync()
    }

    /// Fits a model on what was measured, when it is time to.
    fn fit_guide(&mut self) -> Result<(), RuntimeError> {
        let settings = self.recorder.settings;
        let due = settings.guide_at.iter().filter(|at| **at <= self.recorder.done()).count();
        if due <= self.fitted || settings.guided == 0.0 || self.recorder.ok < FEWEST_TO_GUIDE {
            return Ok(());
        }
        self.fitted = due;
        let device = self.measure.spec();
        let rows = rows(self.kernel, device, &self.recorder.samples, &settings.objective, self.trainer.prior())?;
        match self.trainer.train(&rows.set, settings.seed) {
            Ok(trained) => self.guide = Some(trained.predictor),
            Err(error) => tracing::warn!(%error, "going on without a guide"),
        }
        Ok(())
    }

    /// Draws an input, from a stream of its own, so that a resumed campaign draws what an uninterrupted one does.
    fn round(&self, draw: u64) -> Result<Round, RuntimeError> {
        let settings = self.recorder.settings;
        let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
        rng.set_stream(draw.wrapping_add(1));
        let input = self.kernel.draw(&settings.fixed, &settings.limits, &mut || rng.random())?;
        let problem = self.kernel.problem(self.measure.spec(), &input)?;
        let left = settings.configs_per_input as usize;
        let until_s = self.recorder.spent_s() + settings.budget.as_secs_f64() * settings.input_share;
        let mut round = Round { draw, problem, rng, seen: Vec::new(), left, until_s };
        for s in self.recorder.samples.iter().filter(|s| s.input == round.problem.input()) {
            round.left -= usize::from(s.draw == draw && s.seed == settings.seed && round.left > 0);
            if let Ok(point) = s.config.to_point(round.problem.space().params(), None) {
                round.seen.push((point, s.outcome.clone()));
            }
        }
        Ok(round)
    }

    /// What a guide expects to be the best, behind the default.
    fn starts(&self, problem: &dyn Problem, rng: &mut ChaCha8Rng) -> Result<Vec<Point>, RuntimeError> {
        let space = problem.space();
        let mut starts: Vec<Point> = problem.default_point().into_iter().collect();
        if let Some(guide) = &self.guide {
            let settings = self.recorder.settings;
            let count = (settings.guided * f64::from(settings.configs_per_input)).ceil() as usize;
            let mut from: Vec<Point> = self.carried.iter().filter(|p| space.is_legal(p)).cloned().collect();
            // A space without legal points is told from this by whoever measures.
            from.extend((0..DRAWN_TO_GUIDE).map_while(|_| self.source.draw(space, rng)));
            let scorer = guide.bind(problem)?;
            starts.extend(suggest(space, Model { scorer: &*scorer, is_costly: false }, from, count));
        }
        Ok(starts)
    }

    fn measure_input(&mut self, round: &Round) -> Result<Found, RuntimeError> {
        let (settings, clock, problem) = (self.recorder.settings, self.recorder.clock, &*round.problem);
        let mut rng = round.rng.clone();
        let starts = Arc::new(self.starts(problem, &mut rng)?);
        let objective = settings.objective.clone();
        let setup = Setup { starts, objective, source: Some(&self.source), ..Setup::new(problem.space()) };
        let mixture = Mixture { neighbours: settings.neighbours, near_carried: 0.0, carried: settings.carried };
        let mut search = Survey::new(&setup, mixture, &self.carried, rng);
        search.tell(&round.seen);
        let best = search.best().points.first().map(|(_, cost)| *cost);
        let limits = Limits { cut_off: settings.cut_off, rough: settings.rough };
        let mut live =
            Evaluator::new(problem, &mut *self.measure, &settings.objective, (&settings.timing, limits), clock);
        live.set_best(best);
        let seen = search.best().considered;
        let mut input = Input { live, recorder: &mut self.recorder, round, best, seen, failed: None };
        let budget = Budget::evaluations(round.left as u64);
        let driven = drive(&mut search, "survey", &settings.objective, &budget, &mut input);
        if let Some(error) = input.failed {
            return Err(error);
        }
        match driven {
            Ok(_) => {}
            Err(DriveError::Device(error)) => return Err(error.into()),
            Err(error) => return Err(RuntimeError::Strategy { name: "survey".into(), message: error.to_string() }),
        }
        let best = search.best();
        match self.source.take_failure() {
            Some(DrawError::Exhausted { .. }) if best.considered == 0 => return Ok(Found::NothingLegal),
            None | Some(DrawError::Exhausted { .. }) => {}
            Some(error) => return Err(not_drawn(problem, error)),
        }
        if let Some((point, _)) = best.points.into_iter().next() {
            self.carry(point);
        }
        Ok(Found::Something)
    }

    fn carry(&mut self, point: Point) {
        self.carried.retain(|p| *p != point);
        if self.carried.len() >= CARRIED_KEPT {
            self.carried.remove(0);
        }
        self.carried.push(point);
    }
}

/// Measures the configurations of one input, and records them.
struct Input<'x, 'c> {
    live: Evaluator<'x>,
    recorder: &'x mut Recorder<'c>,
    round: &'x Round,
    /// The least cost so far.
    best: Option<f64>,
    /// Configurations that were measured of it.
    seen: u64,
    /// What ended the campaign, if not the device.
    failed: Option<RuntimeError>,
}

impl Evaluate for Input<'_, '_> {
    fn ahead(&self) -> usize {
        self.live.ahead().min(MOST_AT_ONCE)
    }

    fn expect(&mut self, points: &[Point]) {
        self.live.expect(points);
    }

    fn evaluate(&mut self, point: &Point) -> Result<Outcome, Refused> {
        self.live.check(point)?;
        let cut_off_s = self.live.timing().cut_off.map(|limit| limit.as_secs_f64());
        let outcome = self.live.time(point).map_err(Refused::Device)?;
        let objective = &self.recorder.settings.objective;
        let cost = outcome.as_ref().ok().and_then(|m| objective.cost(m));
        self.best = cost.into_iter().chain(self.best).min_by(f64::total_cmp);
        self.seen += 1;
        let sample = Sample {
            draw: self.round.draw,
            seed: self.recorder.settings.seed,
            input: self.round.problem.input(),
            config: self.round.problem.space().config(point),
            outcome: outcome.clone(),
            cut_off_s,
            spent_s: self.recorder.lap(),
        };
        self.failed = self.recorder.record(sample, self.best).err();
        Ok(outcome)
    }

    fn seconds(&self) -> f64 {
        self.live.seconds()
    }

    fn is_over(&self) -> bool {
        let fewest = u64::from(self.recorder.settings.configs_per_input.div_ceil(3));
        let late = self.seen >= fewest && self.recorder.spent_s() >= self.round.until_s;
        self.failed.is_some() || late || self.recorder.is_over()
    }
}

/// What an input turned out to have.
enum Found {
    NothingLegal,
    Something,
}
