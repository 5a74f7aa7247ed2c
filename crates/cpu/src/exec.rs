//! Running generated code on the host.

pub(crate) mod code;
pub(crate) mod driver;
#[cfg(target_arch = "x86_64")]
pub(crate) mod memory;
pub(crate) mod narrow;
pub(crate) mod pack;
pub(crate) mod parts;
mod portable;
pub(crate) mod run;
pub(crate) mod scratch;
mod three_m;
#[cfg(target_arch = "x86_64")]
pub(crate) mod weave;
