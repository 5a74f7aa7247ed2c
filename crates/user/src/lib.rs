#![doc = include_str!("../README.md")]

mod arguments;
mod computation;
mod data;
mod document;
mod error;
mod formula;
mod inputs;
mod kernel;
mod launches;
mod locate;
mod npy;
mod open;
mod reference;

pub use computation::InputOfUser;
pub use error::UserError;
pub use kernel::{UserKernel, UserPlan};
pub use reference::{OnDevice, Referee};
