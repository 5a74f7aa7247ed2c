//! Measuring, verifying, storing and dispatching plans: what ties the parts of Tilewright together.

mod error;
mod host_measure;
pub mod log;
mod nothing_legal;
pub mod paired;
pub mod plan;
pub mod plan_cache;
pub mod store;
pub mod table;
pub mod timing;
pub mod trainer;
pub mod tune;
pub mod verify;

pub use error::RuntimeError;
pub use host_measure::HostMeasure;
