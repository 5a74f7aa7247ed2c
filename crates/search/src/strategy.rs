//! Strategies that measure: each asks for points, is told outcomes and decides what to ask next.
//!
//! One file a strategy. All keep the contract of [`tilewright_core::search::Search`]: legal points only, none twice, an
//! end, and the same questions for the same seed and outcomes.

mod in_order;
mod local;
mod random;

pub use in_order::InOrder;
pub use local::Local;
pub use random::Random;
