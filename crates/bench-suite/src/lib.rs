//! Tasks of the papers, campaigns that measure a device, and the tables that compare.
//!
//! - [`tasks`]: named sets of inputs, among them Table 4 of the ISAAC paper (SC17).
//! - [`campaign`]: everything worth measuring on a device, resumable.
//! - [`cases`]: what kernels are checked on.
//! - [`assembly`]: what NVIDIA's assembler says of legal plans.
//! - [`report`]: a comparison as JSON fields and as an aligned table. What times is
//!   [`tilewright_runtime::contest`], what is compared with comes from [`tilewright_baselines`].
//! - [`statistics`]: differences in pairs, with confidence intervals.
#![deny(unsafe_code)]

pub mod assembly;
pub mod campaign;
pub mod cases;
pub mod report;
pub mod statistics;
pub mod tasks;
