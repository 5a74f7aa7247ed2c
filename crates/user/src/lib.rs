#![doc = include_str!("../README.md")]

mod arguments;
mod computation;
mod counting;
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
pub use counting::Counter;
pub use error::UserError;
pub use kernel::{UserKernel, UserPlan};
pub use reference::{OnDevice, Referee};
