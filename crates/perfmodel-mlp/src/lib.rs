//! ISAAC's multi-layer perceptron on log features, as a Tilewright predictor.

mod aligned;
mod bound;
mod encoding;
mod error;
mod layout;
mod log2;
mod network;
mod packed;

pub use error::TrainError;
pub use layout::{Layout, MAX_DEPTH, MAX_WIDTH};
