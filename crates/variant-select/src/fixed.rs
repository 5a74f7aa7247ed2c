//! The same variant always: what every selector must beat.

use crate::classes::{ClassSelector, Classes};
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::selector::Selector;

/// Orders variants by their mean relative cost over the training cases; features do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BestFixed;

impl FitSelector for BestFixed {
    fn fit(&self, data: &ChoiceSet, _seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        Ok(Box::new(ClassSelector::new(Classes::averages(data)?, |_, _, _| {})))
    }
}
