//! What is known of a problem before anything of it is measured.

use crate::error::RuntimeError;
use crate::nothing_legal::nothing_legal;
use rand::RngCore;
use std::iter::from_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use tilewright_core::objective::Objective;
use tilewright_core::predictor::{Coverage, Predictor, Scorer};
use tilewright_core::problem::Problem;
use tilewright_core::search::Ranked;
use tilewright_core::space::{BoundSpace, Point};
use tilewright_core::text::counted;
use tilewright_sampler::{DrawError, Exact, Sampler};
use tilewright_search::{Model, Options, RANKED_PER_TIMED, Sampling, Setup, Source, exhaustive, sampled, spread};

/// Seconds a configuration from which on a model is asked once, for its ranking, and not for hundreds of neighbours before each
/// measurement.
const COSTLY: f64 = 3e-4;

/// How a sample was asked about.
const DRAWN: &str = "asked about {}, drawn and climbed to,";

/// The same of a list.
const NAMED: &str = "asked about {} that it names";

/// What a model is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// Every legal configuration, or a sample of them where that would take longer than this.
    Everything {
        /// About the longest that it may take.
        within: Duration,
    },
    /// A sample of them, and the neighbours of its best: for a model whose word costs too much for everything.
    Sample(Sampling),
    /// These, which whoever made the model named for this input.
    Listed(Vec<Point>),
}

impl Default for Ranking {
    fn default() -> Self {
        Self::Everything { within: Duration::from_secs(30) }
    }
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
        let sample = |sampler: &mut dyn Sampler, how: &Sampling| {
            let found = sampled(problem, scorer, sampler, k, how, seed).map_err(|e| not_drawn(problem, e))?;
            Ok::<_, RuntimeError>((found.ranked, found.seconds))
        };
        let ((Ranked { points, considered }, seconds), looked) = match ranking {
            Ranking::Everything { within } => match too_long(problem, scorer, *within) {
                None => {
                    let found = exhaustive(problem, scorer, &Options::top(k));
                    ((found.ranked, found.statistics.seconds), "searched over {}".to_owned())
                }
                Some(all) => {
                    let how = Sampling { limit: Sampling::default().limit.min(*within), ..Sampling::default() };
                    tracing::warn!("the {kind} model would take more than {all:.0} s for all configurations");
                    let why = format!("{DRAWN} since all would have taken more than {all:.0} s,");
                    (sample(&mut Exact::new(), &how)?, why)
                }
            },
            Ranking::Sample(how) => (sample(sampler, how)?, DRAWN.to_owned()),
            Ranking::Listed(named) => ((listed(problem, scorer, named), 0.0), NAMED.to_owned()),
        };
        if points.is_empty() {
            return Err(nothing_legal(problem));
        }
        let looked = looked.replace("{}", &counted(considered, "legal configuration"));
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

    /// How well what the model was fitted on covers the input; in full without a model.
    pub fn coverage(&self) -> Coverage {
        self.scorer.as_ref().map_or(Coverage::Full, |(_, scorer)| scorer.coverage())
    }

    /// What is to run where nothing is timed: of the model's best, the one that is furthest ahead of the default in the eyes of the
    /// network that expects least of it, and whether that is the model's first. `None` where some network expects more than so large a
    /// share of the default's time, where there is no model, and where nothing is to be compared.
    ///
    /// The first of very many is more often one that the model takes for too fast than the default is. Networks that were fitted on other
    /// parts of the data seldom make the same mistake, where the input is like some that they saw: see [`Knowledge::coverage`].
    pub fn unanimous(&self, worth_leaving: f64) -> Option<(Point, bool)> {
        let ((_, scorer), default) = (self.scorer.as_ref()?, self.default.as_ref()?);
        let opinions = scorer.opinions_each([default].into_iter().chain(&*self.ranked));
        if opinions.len() < 2 && scorer.coverage() < Coverage::Full {
            return None;
        }
        let by = |one: &[f32], at: usize| if one[at].is_nan() { f32::INFINITY } else { one[at] - one[0] };
        let ahead = |at: usize| opinions.iter().map(|one| by(one, at)).fold(f32::NEG_INFINITY, f32::max);
        let words = (1..=self.ranked.len()).map(|at| (at - 1, ahead(at)));
        let (at, word) = words.min_by(|a, b| a.1.total_cmp(&b.1))?;
        (f64::from(word).exp() <= worth_leaving).then(|| (self.ranked[at].clone(), at == 0))
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

/// The legal ones of these, the best first.
fn listed(problem: &dyn Problem, scorer: &dyn Scorer, named: &[Point]) -> Ranked {
    let legal: Vec<Point> = named.iter().filter(|point| problem.space().is_legal(point)).cloned().collect();
    let costs = scorer.score_each(&legal).into_iter().map(|log| f64::from(log).exp());
    let mut points: Vec<(Point, f64)> = legal.into_iter().zip(costs).collect();
    points.sort_by(|a, b| a.1.total_cmp(&b.1));
    Ranked { considered: points.len() as u64, points }
}

/// Seconds that asking about every legal configuration takes at least, as far as the first of them tell, where that is longer than
/// the limit.
fn too_long(problem: &dyn Problem, scorer: &dyn Scorer, limit: Duration) -> Option<f64> {
    /// Configurations of the last look, whose seconds are those of a long search.
    const MOST: usize = 4096;
    let screen = scorer.screen();
    let scorer = screen.as_ref().map_or(scorer, |screen| screen.scorer);
    let threads = available_parallelism().map_or(1, usize::from) as f64;
    let (mut walk, mut count, limit) = (problem.space().walk(), 1, limit.as_secs_f64());
    let each = loop {
        let points: Vec<Point> = from_fn(|| walk.next_point().map(Point::from)).take(count).collect();
        let begun = Instant::now();
        scorer.score_each(&points);
        let each = begun.elapsed().as_secs_f64() / points.len().max(1) as f64;
        count *= 16;
        // Few at a time cost more each, so that the look that decides is as long as it can be.
        if points.is_empty() || count > MOST || each * count as f64 > limit / 10.0 {
            break each / threads;
        }
    };
    let (mut all, most) = (0u64, limit / each.max(f64::MIN_POSITIVE));
    // Mostly all points, legal or not, would not take too long: nobody needs to count the legal ones.
    if problem.space().cartesian() as f64 <= most {
        return None;
    }
    let ended = !problem.space().for_each_legal(|_| {
        all += 1;
        all as f64 <= most
    });
    ended.then_some(limit.max(each * all as f64))
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
