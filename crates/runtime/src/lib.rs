//! Measuring, verifying, storing and dispatching plans: what ties the parts of Tilewright together.

pub mod log;
pub mod store;
pub mod timing;
