//! The generative model with the parameters conditioned on each other by the rules themselves.

use crate::model::Model;
use crate::{Acceptance, Counts, Draw, DrawError, Sampler, Settings};
use rand::RngCore;
use tilewright_core::space::{BoundSpace, ParamSpace};

/// [`crate::Categorical`] drawn in the order of the parameters, each only among the values for which every rule holds
/// that is decided so far (the pruning of BACUGen's enumeration, applied to a draw). A candidate is rejected only where
/// its values leave none to a later parameter.
///
/// Not in the paper. Parameters are no longer independent, and points below sparse branches of the space come more
/// often than they would uniformly; every legal point has a positive probability.
#[derive(Clone, Debug)]
pub struct Chained {
    model: Model,
    /// The values that the next parameter may take; kept for its memory.
    among: Vec<u16>,
}

impl Chained {
    /// A model of a kernel's parameters, without samples.
    pub fn new(space: &ParamSpace, settings: Settings) -> Self {
        Self { model: Model::new(space, settings), among: Vec::new() }
    }

    /// The candidates of the uniform warm-up.
    pub fn warmup_acceptance(&self) -> &Acceptance {
        &self.model.uniform
    }

    /// The candidates that the model drew after the warm-up.
    pub fn model_acceptance(&self) -> &Acceptance {
        &self.model.own
    }

    /// What has been learnt.
    pub fn counts(&self) -> &Counts {
        &self.model.counts
    }

    /// Counts a legal point that came from elsewhere: the log of an interrupted run.
    pub fn learn(&mut self, point: &[u16]) {
        self.model.counts.accept(point);
    }
}

impl Sampler for Chained {
    fn draw(&mut self, space: &BoundSpace, rng: &mut dyn RngCore) -> Result<Draw, DrawError> {
        let among = &mut self.among;
        self.model.draw(space, rng, |counts, rng, point| {
            point.clear();
            for param in 0..space.params().len() {
                let blocked = space.next_values(point, among);
                if blocked.is_some() {
                    return blocked;
                }
                point.push(counts.draw_among(param, among, rng));
            }
            None
        })
    }

    fn acceptance(&self) -> &Acceptance {
        &self.model.seen
    }
}
