//! Measuring, verifying, storing and dispatching plans: what ties the parts of Tilewright together.
//!
//! The way of a kernel through this crate: [`tune`] draws inputs and configurations, times them on a
//! [`tilewright_core::problem::Measure`] ([`Live`] is one, on any [`tilewright_core::device::Device`]), keeps a [`log`] that survives a kill, and writes a
//! profile ([`store`]). [`plan`] answers for an input: from the [`plan_cache`], or by searching the model and timing its
//! best against each other ([`paired`]), and only after [`verify`] has found the result right. [`contest`] times kernels of one
//! computation beside each other, generated ones and routines of libraries. [`table`] calls what was decided.

pub mod bystanders;
pub mod contest;
#[cfg(feature = "cuda")]
pub mod cuda;
mod error;
pub mod knowledge;
mod live;
pub mod log;
mod nothing_legal;
pub mod paired;
pub mod plan;
pub mod plan_cache;
mod programs;
pub mod ptxas;
pub mod selection;
pub mod store;
pub mod table;
pub mod trainer;
pub mod trial;
pub mod tune;
pub mod verify;
pub mod worker;

pub use error::RuntimeError;
pub use live::Live;
