//! The measuring part of a campaign.

use super::Tuner;
use super::guide::Guide;
use super::propose::{Carried, Mixture, Seen};
use super::settings::Progress;
use super::training::rows;
use crate::error::RuntimeError;
use crate::log::{CampaignLog, Record, Sample};
use crate::nothing_legal::nothing_legal;
use crate::timing::Clock;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::time::Duration;
use tilewright_core::measurement::{Outcome, Timing};
use tilewright_core::objective::Objective;
use tilewright_core::problem::{MeasureError, Problem};
use tilewright_core::space::Point;
use tilewright_sampler::DrawError;

/// Drawn inputs in a row without a legal configuration, or with all of theirs measured, before the campaign ends.
const IDLE_INPUTS: u32 = 50;

/// Measurements before a model is fitted to guide the rest.
const FEWEST_TO_GUIDE: u64 = 200;

/// The log is synced at least this often.
const SYNC_EVERY: Duration = Duration::from_secs(2);

pub(super) struct Campaign<'c, 't> {
    tuner: &'c mut Tuner<'t>,
    log: CampaignLog,
    samples: Vec<Sample>,
    clock: &'c dyn Clock,
    /// Seconds used up by earlier parts of this campaign.
    spent_before: f64,
    began: Duration,
    /// When the last sample was complete.
    mark: Duration,
    synced: Duration,
    ok: u64,
    /// Measurements in this call, for the rate.
    new: u64,
    carried: Carried,
    guide: Option<Guide>,
    /// How many of the settings' moments of fitting a guide have passed.
    fitted: usize,
}

/// The input at hand.
struct Round {
    draw: u64,
    problem: Box<dyn Problem>,
    rng: ChaCha8Rng,
    seen: Seen,
    /// What the guide suggests.
    suggested: VecDeque<Point>,
    /// Configurations still to be measured.
    left: usize,
    /// When most of them have been measured, the budget's time at which the rest is left.
    until_s: f64,
}

impl<'c, 't> Campaign<'c, 't> {
    /// Takes up a log; the samples after the first `finished` belong to an interrupted campaign.
    pub(super) fn new(
        tuner: &'c mut Tuner<'t>,
        log: CampaignLog,
        samples: Vec<Sample>,
        finished: usize,
        clock: &'c dyn Clock,
    ) -> Self {
        let now = clock.now();
        let ok = samples.iter().filter(|s| s.outcome.is_ok()).count() as u64;
        let spent_before = samples[finished..].iter().map(|s| s.spent_s).sum();
        Self {
            tuner,
            log,
            samples,
            clock,
            spent_before,
            began: now,
            mark: now,
            synced: now,
            ok,
            new: 0,
            carried: Carried::default(),
            guide: None,
            fitted: 0,
        }
    }

    /// The log and everything in it.
    pub(super) fn finish(self) -> (CampaignLog, Vec<Sample>) {
        (self.log, self.samples)
    }

    fn spent_s(&self) -> f64 {
        self.spent_before + self.clock.now().saturating_sub(self.began).as_secs_f64()
    }

    fn over(&self) -> bool {
        self.spent_s() >= self.tuner.settings.budget.as_secs_f64()
            || self.tuner.settings.samples.is_some_and(|n| self.ok >= n)
            || self.tuner.observer.stop()
    }

    /// Measures until the budget ends.
    pub(super) fn measure(&mut self) -> Result<(), RuntimeError> {
        let mut draw = self.next_draw();
        let mut idle = 0;
        while !self.over() {
            self.fit_guide()?;
            let mut round = self.round(draw)?;
            let before = self.samples.len();
            let found = self.measure_input(&mut round)?;
            idle = if self.samples.len() > before { 0 } else { idle + 1 };
            if idle == IDLE_INPUTS {
                match found {
                    Found::NothingLegal => return Err(nothing_legal(&*round.problem)),
                    Found::Something => break,
                }
            }
            draw = draw.wrapping_add(1);
        }
        Ok(self.log.sync()?)
    }

    /// Share of the campaign that is done.
    fn done(&self) -> f64 {
        let settings = &self.tuner.settings;
        let budget_s = settings.budget.as_secs_f64();
        let by_time = if budget_s > 0.0 { self.spent_s() / budget_s } else { 1.0 };
        let by_count = settings.samples.map_or(0.0, |n| self.ok as f64 / n.max(1) as f64);
        by_time.max(by_count).min(1.0)
    }

    /// Fits a model on what was measured, when it is time to.
    fn fit_guide(&mut self) -> Result<(), RuntimeError> {
        let settings = &self.tuner.settings;
        let due = settings.guide_at.iter().filter(|at| **at <= self.done()).count();
        if due <= self.fitted || settings.guided == 0.0 || self.ok < FEWEST_TO_GUIDE {
            return Ok(());
        }
        self.fitted = due;
        let (kernel, trainer) = (self.tuner.kernel, self.tuner.trainer);
        let device = self.tuner.measure.spec();
        let rows = rows(kernel, device, &self.samples, &settings.objective, trainer.prior())?;
        match trainer.train(&rows.set, settings.seed) {
            Ok(trained) => self.guide = Some(Guide::new(trained.predictor)),
            Err(error) => tracing::warn!(%error, "going on without a guide"),
        }
        Ok(())
    }

    /// The first draw of this campaign's seed that is not complete.
    fn next_draw(&self) -> u64 {
        let settings = &self.tuner.settings;
        let ours = || self.samples.iter().filter(|s| s.seed == settings.seed);
        let Some(last) = ours().map(|s| s.draw).max() else { return 0 };
        let count = ours().filter(|s| s.draw == last).count();
        if count < settings.configs_per_input as usize { last } else { last.wrapping_add(1) }
    }

    /// Draws an input, from a stream of its own, so that a resumed campaign draws what an uninterrupted one does.
    fn round(&mut self, draw: u64) -> Result<Round, RuntimeError> {
        let settings = &self.tuner.settings;
        let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
        rng.set_stream(draw.wrapping_add(1));
        let input = self.tuner.kernel.draw(&settings.fixed, &settings.limits, &mut || rng.random())?;
        let problem = self.tuner.kernel.problem(self.tuner.measure.spec(), &input)?;
        let left = settings.configs_per_input as usize;
        let until_s = self.spent_s() + settings.budget.as_secs_f64() * settings.input_share;
        let (seen, suggested) = (Seen::default(), VecDeque::new());
        let mut round = Round { draw, problem, rng, seen, suggested, left, until_s };
        for s in self.samples.iter().filter(|s| s.input == round.problem.input()) {
            round.left -= usize::from(s.draw == draw && s.seed == settings.seed && round.left > 0);
            if let Ok(point) = s.config.to_point(round.problem.space().params(), None) {
                let cost = s.outcome.as_ref().ok().and_then(|m| settings.objective.cost(m));
                round.seen.add(&point, cost.unwrap_or(f64::INFINITY));
            }
        }
        Ok(round)
    }

    fn measure_input(&mut self, round: &mut Round) -> Result<Found, RuntimeError> {
        let settings = &self.tuner.settings;
        let mixture = Mixture { neighbours: settings.neighbours, carried: settings.carried };
        let fewest = settings.configs_per_input.div_ceil(3) as usize;
        if let Some(guide) = &self.guide {
            let count = (settings.guided * f64::from(settings.configs_per_input)).ceil() as usize;
            let (problem, sampler) = (&*round.problem, &mut *self.tuner.sampler);
            round.suggested = guide.suggest(problem, count, self.carried.points(), sampler, &mut round.rng)?;
        }
        while round.left > 0 && !self.over() && (round.seen.len() < fewest || self.spent_s() < round.until_s) {
            let (seen, carried, suggested) = (&round.seen, &self.carried, &mut round.suggested);
            let sampler = &mut *self.tuner.sampler;
            let point = match mixture.propose(&*round.problem, seen, suggested, carried, sampler, &mut round.rng) {
                Ok(Some(point)) => point,
                Ok(None) => break,
                Err(DrawError::Exhausted { .. }) if seen.len() > 0 => break,
                Err(DrawError::Exhausted { .. }) => return Ok(Found::NothingLegal),
                Err(e @ (DrawError::OtherSpace { .. } | DrawError::Uncounted(_))) => {
                    return Err(RuntimeError::Setting { field: "sampler", message: e.to_string() });
                }
            };
            round.left -= 1;
            self.measure_point(round, &point)?;
        }
        if let Some((_, point)) = round.seen.best() {
            self.carried.add(point.clone());
        }
        Ok(Found::Something)
    }

    fn measure_point(&mut self, round: &mut Round, point: &Point) -> Result<(), RuntimeError> {
        let settings = &self.tuner.settings;
        let best_s = round.seen.best().filter(|_| settings.objective == Objective::default()).map(|b| b.0);
        let cut_off_s = best_s.map(|s| s * settings.cut_off);
        let policy = Timing {
            cut_off: cut_off_s.map(limit),
            rough_beyond: best_s.map(|s| limit(s * settings.rough)),
            ..settings.timing.clone()
        };
        let outcome: Outcome = match self.tuner.measure.measure(&*round.problem, point, &policy) {
            Ok(measurement) => Ok(measurement),
            Err(MeasureError::Failed(failure)) => Err(failure),
            Err(MeasureError::Device(error)) => return Err(error.into()),
        };
        let cost = outcome.as_ref().ok().and_then(|m| settings.objective.cost(m));
        round.seen.add(point, cost.unwrap_or(f64::INFINITY));
        let now = self.clock.now();
        let spent_s = now.saturating_sub(self.mark).as_secs_f64();
        self.mark = now;
        let sample = Sample {
            draw: round.draw,
            seed: settings.seed,
            input: round.problem.input(),
            config: round.problem.space().config(point),
            outcome,
            cut_off_s,
            spent_s,
        };
        self.record(sample, round.seen.best().map(|b| b.0))
    }

    fn record(&mut self, sample: Sample, best: Option<f64>) -> Result<(), RuntimeError> {
        self.log.append(&Record::Sample(sample.clone()))?;
        let now = self.clock.now();
        if now.saturating_sub(self.synced) >= SYNC_EVERY {
            self.log.sync()?;
            self.synced = now;
        }
        self.ok += u64::from(sample.outcome.is_ok());
        self.new += 1;
        self.samples.push(sample);
        self.report(best);
        Ok(())
    }

    fn report(&mut self, best: Option<f64>) {
        let Some(last) = self.samples.last() else { return };
        let spent_s = self.spent_s();
        let budget_s = self.tuner.settings.budget.as_secs_f64();
        let wanted = self.tuner.settings.samples;
        let here_s = spent_s - self.spent_before;
        let left = wanted.map(|n| n.saturating_sub(self.ok) as f64 * here_s / self.new.max(1) as f64);
        let progress = Progress {
            samples: self.ok,
            failed: self.samples.len() as u64 - self.ok,
            spent_s,
            remaining_s: (budget_s - spent_s).max(0.0).min(left.unwrap_or(f64::INFINITY)),
            done: self.done(),
            input: &last.input,
            best,
            outcome: &last.outcome,
        };
        self.tuner.observer.sample(&progress);
    }
}

/// A limit of so many seconds; one that no clock reaches is none.
fn limit(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// What an input turned out to have.
enum Found {
    NothingLegal,
    Something,
}
