//! Running generated code on the host.

pub(crate) mod driver;
pub(crate) mod memory;
pub(crate) mod pack;
pub(crate) mod pool;
pub(crate) mod run;
