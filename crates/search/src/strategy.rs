//! Strategies that measure: each asks for points, is told outcomes and decides what to ask next.
//!
//! One file a strategy. All keep the contract of [`tilewright_core::search::Search`]: legal points only, none twice, an
//! end, and the same questions for the same seed and outcomes. Those that are public hold no list of the space; the others choose
//! from a [`crate::Listing`] and are made by [`crate::Strategy::make`].

mod annealing;
mod climb;
mod early;
mod genetic;
pub(crate) mod listed;
mod local;
mod plain;
mod random;
mod refine;
mod survey;

pub(crate) use annealing::Annealing;
pub(crate) use climb::Climb;
pub use early::EarlyStop;
pub(crate) use early::{Early, FEWEST};
pub(crate) use genetic::Genetic;
pub use local::Local;
pub(crate) use plain::{Sequence, Shuffle};
pub use random::Random;
pub use refine::Refine;
pub use survey::{Mixture, Survey};
