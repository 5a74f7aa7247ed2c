//! The generative models: a uniform warm-up, counts learnt from what is accepted, and two ways to draw by them.

use crate::uniform::{exhausted, fill_uniform, is_empty};
use crate::{Acceptance, Counts, Draw, DrawError, Exact, MAX_ATTEMPTS, Sampler};
use rand::RngCore;
use tilewright_core::space::{BoundSpace, ParamSpace, Point, Rule};

/// How the generative models learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Pseudo-samples of every value: the Dirichlet prior. 100 in the paper.
    pub alpha: u64,
    /// Accepted uniform samples before the model draws itself.
    pub warmup: u64,
    /// Uniform candidates drawn for the warm-up. What is missing then is drawn from the counted space (see
    /// [`crate::Exact`]), which gives the same samples sooner, unless the space looks too large to count.
    pub warmup_candidates: u64,
    /// Whether samples accepted after the warm-up are counted too. The model then moves, slowly, from the marginal
    /// distributions of the legal set to where its own draws are accepted most.
    pub refresh: bool,
    /// Candidates of one draw before it is given up.
    pub max_attempts: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { alpha: 100, warmup: 500, warmup_candidates: 200_000, refresh: true, max_attempts: MAX_ATTEMPTS }
    }
}

/// Independent categorical distributions, learnt from accepted samples over a Dirichlet prior: the generative model of ISAAC
/// (SC17, section 4.1).
pub type Categorical = Generative<false>;

/// [`Categorical`] drawn in the order of the parameters, each only among the values for which every rule holds
/// that is decided so far (the pruning of BACUGen's enumeration, applied to a draw). A candidate is rejected only where
/// its values leave none to a later parameter.
///
/// Not in the paper. Parameters are no longer independent, and points below sparse branches of the space come more
/// often than they would uniformly; every legal point has a positive probability.
pub type Chained = Generative<true>;

/// A generative model, whose parameters are `CONDITIONED` on those before them or not: [`Chained`] or [`Categorical`].
///
/// The first samples are uniform ones, so that the model starts from what is legal; they are handed out as any other.
#[derive(Clone, Debug)]
pub struct Generative<const CONDITIONED: bool> {
    settings: Settings,
    counts: Counts,
    /// All candidates.
    seen: Acceptance,
    /// Candidates of the warm-up.
    uniform: Acceptance,
    /// Candidates after it.
    own: Acceptance,
    /// For the warm-up where uniform candidates are too rarely legal; none once a space could not be counted.
    exact: Option<Exact>,
    /// Samples that it gave.
    counted: u64,
    /// The values that the next parameter may take; kept for its memory.
    among: Vec<u16>,
}

/// Where the next candidate comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Uniform,
    Counted,
    Model,
}

/// A space is counted for a warm-up if it has no more legal points than this by estimate: a few seconds' walk.
const COUNTABLE: f64 = 1e8;

impl<const CONDITIONED: bool> Generative<CONDITIONED> {
    /// A model of a kernel's parameters, without samples.
    pub fn new(space: &ParamSpace, settings: Settings) -> Self {
        Self {
            settings,
            counts: Counts::new(space, settings.alpha),
            seen: Acceptance::default(),
            uniform: Acceptance::default(),
            own: Acceptance::default(),
            exact: Some(Exact::new()),
            counted: 0,
            among: Vec::new(),
        }
    }

    /// The candidates of the uniform warm-up: the right column of ISAAC's Table 1.
    pub fn warmup_acceptance(&self) -> &Acceptance {
        &self.uniform
    }

    /// The candidates that the model drew after the warm-up: the left column of ISAAC's Table 1.
    pub fn model_acceptance(&self) -> &Acceptance {
        &self.own
    }

    /// What has been learnt.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Counts a legal point that came from elsewhere: the log of an interrupted run.
    pub fn learn(&mut self, point: &[u16]) {
        self.counts.accept(point);
    }

    fn source(&self, space: &BoundSpace) -> Source {
        if self.uniform.accepted + self.counted >= self.settings.warmup {
            return Source::Model;
        }
        if self.uniform.drawn < self.settings.warmup_candidates {
            return Source::Uniform;
        }
        let possible: f64 = space.domains().iter().map(|values| values.len() as f64).product();
        // Three more than were seen: an upper bound where none were (95% confidence).
        let legal = possible * (self.uniform.accepted + 3) as f64 / self.uniform.drawn.max(1) as f64;
        if legal <= COUNTABLE && self.exact.is_some() { Source::Counted } else { Source::Model }
    }

    /// Fills in a candidate by what has been learnt, as far as the rules let it, and gives the rule that it breaks.
    fn propose<'s>(&mut self, space: &'s BoundSpace, rng: &mut dyn RngCore, point: &mut Vec<u16>) -> Option<&'s Rule> {
        if !CONDITIONED {
            point.extend(space.domains().iter().enumerate().map(|(p, d)| self.counts.draw_among(p, d, rng)));
            return space.first_broken(point);
        }
        for param in 0..space.params().len() {
            let blocked = space.next_values(point, &mut self.among);
            if blocked.is_some() {
                return blocked;
            }
            point.push(self.counts.draw_among(param, &self.among, rng));
        }
        None
    }
}

impl<const CONDITIONED: bool> Sampler for Generative<CONDITIONED> {
    fn draw(&mut self, space: &BoundSpace, rng: &mut dyn RngCore) -> Result<Draw, DrawError> {
        self.counts.expect(space)?;
        let mut rejected = Acceptance::default();
        let mut point = Vec::with_capacity(space.params().len());
        let attempts = if is_empty(space) { 0 } else { self.settings.max_attempts };
        space.remember();
        for attempts in 1..=attempts {
            let mut source = self.source(space);
            if let (Source::Counted, Some(exact)) = (source, &mut self.exact) {
                match exact.draw(space, rng) {
                    Ok(draw) => {
                        self.counted += 1;
                        self.seen.count(None);
                        self.counts.accept(&draw.point);
                        return Ok(Draw { attempts, ..draw });
                    }
                    Err(DrawError::Uncounted(_)) => (self.exact, source) = (None, Source::Model),
                    Err(e) => return Err(e),
                }
            }
            point.clear();
            let broken = if source == Source::Uniform {
                fill_uniform(space, rng, &mut point);
                space.first_broken(&point)
            } else {
                self.propose(space, rng, &mut point)
            };
            self.seen.count(broken);
            rejected.count(broken);
            if source == Source::Uniform { &mut self.uniform } else { &mut self.own }.count(broken);
            if broken.is_none() {
                if source == Source::Uniform || self.settings.refresh {
                    self.counts.accept(&point);
                }
                return Ok(Draw { point: Point(point), attempts });
            }
        }
        Err(exhausted(space, &rejected))
    }

    fn acceptance(&self) -> &Acceptance {
        &self.seen
    }
}
