//! What the generative models share: a uniform warm-up, counts learnt from what is accepted, and the bookkeeping.

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

/// A model's state.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    settings: Settings,
    pub(crate) counts: Counts,
    /// All candidates.
    pub(crate) seen: Acceptance,
    /// Candidates of the warm-up.
    pub(crate) uniform: Acceptance,
    /// Candidates after it.
    pub(crate) own: Acceptance,
    /// For the warm-up where uniform candidates are too rarely legal; none once a space could not be counted.
    exact: Option<Exact>,
    /// Samples that it gave.
    counted: u64,
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

impl Model {
    pub(crate) fn new(space: &ParamSpace, settings: Settings) -> Self {
        Self {
            settings,
            counts: Counts::new(space, settings.alpha),
            seen: Acceptance::default(),
            uniform: Acceptance::default(),
            own: Acceptance::default(),
            exact: Some(Exact::new()),
            counted: 0,
        }
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

    /// Draws until a candidate is legal. `propose` fills in a candidate and gives the rule that it breaks.
    pub(crate) fn draw<'s>(
        &mut self,
        space: &'s BoundSpace,
        rng: &mut dyn RngCore,
        mut propose: impl FnMut(&Counts, &mut dyn RngCore, &mut Vec<u16>) -> Option<&'s Rule>,
    ) -> Result<Draw, DrawError> {
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
            let broken = if source == Source::Uniform {
                fill_uniform(space, rng, &mut point);
                space.first_broken(&point)
            } else {
                propose(&self.counts, rng, &mut point)
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
}
