//! Uniform sampling without rejection: legal points are counted, and drawn by number.

use crate::{Acceptance, Draw, DrawError, LegalSet, Sampler};
use rand::RngCore;
use tilewright_core::space::BoundSpace;

/// Every legal point with equal probability, at the first attempt: what accepted samples of [`crate::Uniform`] are,
/// where those would take too long.
///
/// The first draw from a space builds its [`LegalSet`]; a change of the space builds another.
#[derive(Clone, Debug, Default)]
pub struct Exact {
    seen: Acceptance,
    counted: Option<(BoundSpace, LegalSet)>,
}

impl Exact {
    /// A sampler that has counted nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Sampler for Exact {
    fn draw(&mut self, space: &BoundSpace, rng: &mut dyn RngCore) -> Result<Draw, DrawError> {
        let counted = match self.counted.take() {
            Some(counted) if counted.0.is_clone_of(space) => counted,
            _ => {
                space.remember();
                (space.clone(), LegalSet::of(space).map_err(|e| DrawError::Uncounted(e.to_string()))?)
            }
        };
        let (_, set) = self.counted.insert(counted);
        let Some(point) = set.sample(rng) else {
            let rule = space.census().rejected_by.into_iter().max_by_key(|(_, count)| *count).map(|(rule, _)| rule);
            return Err(DrawError::Exhausted { attempts: 0, cartesian: space.cartesian(), rule });
        };
        self.seen.count(None);
        Ok(Draw { point, attempts: 1 })
    }

    fn acceptance(&self) -> &Acceptance {
        &self.seen
    }
}
