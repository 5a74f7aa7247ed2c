//! The generative model of ISAAC (SC17, section 4.1).

use crate::model::Model;
use crate::{Acceptance, Counts, Draw, DrawError, Sampler, Settings};
use rand::RngCore;
use tilewright_core::space::{BoundSpace, ParamSpace};

/// Independent categorical distributions, learnt from accepted samples over a Dirichlet prior: the paper's sampler.
///
/// The first samples are uniform ones, so that the model starts from what is legal; they are handed out as any other.
#[derive(Clone, Debug)]
pub struct Categorical(Model);

impl Categorical {
    /// A model of a kernel's parameters, without samples.
    pub fn new(space: &ParamSpace, settings: Settings) -> Self {
        Self(Model::new(space, settings))
    }

    /// The candidates of the uniform warm-up: the right column of ISAAC's Table 1.
    pub fn warmup_acceptance(&self) -> &Acceptance {
        &self.0.uniform
    }

    /// The candidates that the model drew after the warm-up: the left column of ISAAC's Table 1.
    pub fn model_acceptance(&self) -> &Acceptance {
        &self.0.own
    }

    /// What has been learnt.
    pub fn counts(&self) -> &Counts {
        &self.0.counts
    }

    /// Counts a legal point that came from elsewhere: the log of an interrupted run.
    pub fn learn(&mut self, point: &[u16]) {
        self.0.counts.accept(point);
    }
}

impl Sampler for Categorical {
    fn draw(&mut self, space: &BoundSpace, rng: &mut dyn RngCore) -> Result<Draw, DrawError> {
        self.0.draw(space, rng, |counts, rng, point| {
            point.clear();
            point.extend(space.domains().iter().enumerate().map(|(p, d)| counts.draw_among(p, d, rng)));
            space.first_broken(point)
        })
    }

    fn acceptance(&self) -> &Acceptance {
        &self.0.seen
    }
}
