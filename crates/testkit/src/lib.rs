//! Conformance suites for implementations of Tilewright's traits, and a toy kernel with a known optimum to build tests on.
//!
//! For tests only: a `dev-dependency` of the crates that implement a trait. Each suite is a plain function that
//! returns the first broken promise as a [`Violation`]; tests unwrap it.
//!
//! ```
//! use std::sync::Arc;
//! use tilewright_core::dtype::DType;
//! use tilewright_testkit::{Effort, kernel, toy};
//!
//! let inputs = [0, 1, 7, 100].map(|n| toy::ScaleInput { n, dtype: DType::F32 });
//! let effort = Effort { probes: 200, runs: 4, ..Effort::default() };
//! kernel(&Arc::new(toy::ScaleKernel::new()), &mut toy::host_device(), &inputs, &effort).unwrap();
//! ```

mod computation;
mod device;
mod kernel;
mod measure;
mod mutants;
mod points;
mod predictor;
mod resources;
mod results;
mod sampler;
mod search;
pub mod toy;
mod violation;

pub use computation::computation;
pub use device::{device, host_device};
pub use kernel::{Effort, kernel};
pub use measure::measure;
pub use mutants::mutants;
pub use points::legal_points;
pub use predictor::{fit, predictor, row_predictor};
pub use resources::{nvrtc, recorded, skip};
pub use sampler::{Draw, Make as MakeSampler, sampler};
pub use search::{Make as MakeSearch, fraction_of_optimum, search};
pub use violation::{Conformity, Violation};
