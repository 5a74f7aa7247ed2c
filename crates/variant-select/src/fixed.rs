//! The same variant always: what every selector must beat.

use crate::classes::Classes;
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// Orders variants by their mean relative cost over the training cases; features do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BestFixed;

impl FitSelector for BestFixed {
    fn fit(&self, data: &ChoiceSet, _seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        Ok(Box::new(FixedSelector(Classes::averages(data)?)))
    }
}

struct FixedSelector(Classes);

impl Selector for FixedSelector {
    fn rank(&self, _: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        self.0.rank(candidates, out, |_, _| {});
    }
}
