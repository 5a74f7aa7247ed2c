//! Runs PTX text on the host.

#![forbid(unsafe_code)]

mod counts;
mod finding;
mod kernel;
mod lanes;
mod launch;
mod lower;
mod machine;
mod memory;
mod module;
mod rounding;
mod text;
mod types;

pub use counts::{Class, Counts, FloatOp, Precision, Site, Stride, Tally, Traffic};
pub use finding::{Fault, Finding, Hazard};
pub use launch::{Argument, Launch, LaunchError, Limits, Report};
pub use memory::{BufferId, Memory, MemoryError};
pub use module::{LoadError, Module};
pub use text::{ParseError, Place};
pub use types::Space;
