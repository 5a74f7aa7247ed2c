//! What is known of a problem before anything of it is measured.

use crate::error::RuntimeError;
use crate::nothing_legal::nothing_legal;
use rand::RngCore;
use std::sync::{Arc, Mutex, PoisonError};
use tilewright_core::objective::Objective;
use tilewright_core::predictor::{Predictor, Scorer};
use tilewright_core::problem::Problem;
use tilewright_core::search::Ranked;
use tilewright_core::space::{BoundSpace, Point};
use tilewright_sampler::{DrawError, Sampler};
use tilewright_search::{Model, Options, RANKED_PER_TIMED, Sampling, Setup, Source, exhaustive, sampled, spread};

/// Seconds a configuration from which on a model is asked once, for its ranking, and not for hundreds of neighbours before each
/// measurement.
const COSTLY: f64 = 3e-4;

/// What a model is asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ranking {
    /// Every legal configuration.
    #[default]
    Everything,
    /// A sample of them, and the neighbours of its best: for a model whose word costs too much for everything.
    Sample(Sampling),
}

/// The word of a predictor on one problem, and its default: what any strategy starts from.
pub struct Knowledge<'a> {
    problem: &'a dyn Problem,
    /// The predictor's kind, and the predictor bound to the problem.
    scorer: Option<(String, Box<dyn Scorer + 'a>)>,
    is_costly: bool,
    /// The model's best, more than are worth timing at first.
    ranked: Arc<Vec<Point>>,
    /// What is worth timing first, with what the model expects of it.
    pub starts: Vec<(Point, Option<f64>)>,
    /// The configuration that runs before anything is tuned, where it is legal.
    pub default: Option<Point>,
    /// How many configurations the model was asked about.
    pub considered: u64,
    /// Seconds of asking it.
    pub seconds: f64,
    /// What was asked, as part of a sentence; empty without a model.
    pub reason: String,
}

impl<'a> Knowledge<'a> {
    /// Asks the model, where there is one, and spreads what is to be timed first over its ranking: `top` configurations, and the
    /// default behind the first one.
    ///
    /// # Errors
    /// A model of another schema, nothing legal, or a sampler of another space.
    pub fn ask(
        problem: &'a dyn Problem,
        predictor: Option<&'a dyn Predictor>,
        (ranking, top): (&Ranking, usize),
        sampler: &mut dyn Sampler,
        seed: u64,
    ) -> Result<Self, RuntimeError> {
        let default = problem.default_point().filter(|p| problem.space().is_legal(p));
        let starts = default.iter().map(|p| (p.clone(), None)).collect();
        let (ranked, reason) = (Arc::default(), String::new());
        let (considered, seconds, is_costly, scorer) = (0, 0.0, false, None);
        let mut out = Self { problem, scorer, is_costly, ranked, starts, default, considered, seconds, reason };
        if let Some(predictor) = predictor {
            let scorer = predictor.bind(problem)?;
            out.rank(&*scorer, predictor.kind(), (ranking, top), sampler, seed)?;
            out.scorer = Some((predictor.kind().to_owned(), scorer));
        }
        Ok(out)
    }

    fn rank(
        &mut self,
        scorer: &dyn Scorer,
        kind: &str,
        (ranking, top): (&Ranking, usize),
        sampler: &mut dyn Sampler,
        seed: u64,
    ) -> Result<(), RuntimeError> {
        let (problem, k) = (self.problem, top.saturating_mul(RANKED_PER_TIMED));
        let (Ranked { points, considered }, seconds, looked) = match ranking {
            Ranking::Everything => {
                let found = exhaustive(problem, scorer, &Options::top(k));
                (found.ranked, found.statistics.seconds, "searched over {} legal configurations")
            }
            Ranking::Sample(how) => {
                let found = sampled(problem, scorer, sampler, k, how, seed);
                let found = found.map_err(|e| not_drawn(problem, e))?;
                (found.ranked, found.seconds, "asked about {} legal configurations, drawn and climbed to,")
            }
        };
        if points.is_empty() {
            return Err(nothing_legal(problem));
        }
        let looked = looked.replace("{}", &considered.to_string());
        self.reason = format!("the {kind} model was {looked} in {seconds:.2} s");
        (self.considered, self.seconds) = (considered, seconds);
        self.is_costly = seconds > COSTLY * considered as f64;
        self.ranked = Arc::new(points.iter().map(|(point, _)| point.clone()).collect());
        let known = |(point, cost)| (point, Some(cost));
        let mut starts: Vec<(Point, Option<f64>)> = spread(points, top).into_iter().map(known).collect();
        if let Some(default) = &self.default {
            // Early: large inputs leave no time for all.
            let at = starts.iter().position(|(point, _)| point == default);
            let default = at.map_or_else(|| (default.clone(), None), |at| starts.remove(at));
            starts.insert(usize::from(at != Some(0)).min(starts.len()), default);
        }
        self.starts = starts;
        Ok(())
    }

    /// What kind of model ranked; none without one.
    pub fn kind(&self) -> Option<&str> {
        self.scorer.as_ref().map(|(kind, _)| kind.as_str())
    }

    /// The model, as strategies ask it.
    pub fn model(&self) -> Option<Model<'_>> {
        let is_costly = self.is_costly;
        self.scorer.as_ref().map(|(_, scorer)| Model { scorer: &**scorer, is_costly })
    }

    /// What a strategy is made from.
    pub fn setup<'s>(&'s self, objective: &Objective, source: &'s dyn Source) -> Setup<'s> {
        Setup {
            objective: objective.clone(),
            model: self.model(),
            ranked: self.ranked.clone(),
            starts: Arc::new(self.starts.iter().map(|(point, _)| point.clone()).collect()),
            source: Some(source),
            ..Setup::new(self.problem.space())
        }
    }
}

/// Why nothing was drawn.
pub(crate) fn not_drawn(problem: &dyn Problem, error: DrawError) -> RuntimeError {
    match error {
        DrawError::Exhausted { .. } => nothing_legal(problem),
        e @ (DrawError::OtherSpace { .. } | DrawError::Uncounted(_)) => {
            RuntimeError::Setting { field: "sampler", message: e.to_string() }
        }
    }
}

/// A sampler that searches draw from, and what went wrong with it last.
pub struct Shared<'a>(Mutex<(&'a mut dyn Sampler, Option<DrawError>)>);

impl<'a> Shared<'a> {
    /// Shares a sampler.
    pub fn new(sampler: &'a mut dyn Sampler) -> Self {
        Self(Mutex::new((sampler, None)))
    }

    /// Why the last failed draw failed since this was asked last.
    pub fn take_failure(&self) -> Option<DrawError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    }
}

impl Source for Shared<'_> {
    fn draw(&self, space: &BoundSpace, rng: &mut dyn RngCore) -> Option<Point> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match held.0.draw(space, rng) {
            Ok(draw) => Some(draw.point),
            Err(error) => {
                held.1 = Some(error);
                None
            }
        }
    }
}
