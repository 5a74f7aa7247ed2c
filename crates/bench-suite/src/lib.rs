//! Tasks of the papers, baselines found on the machine, and the tables that compare them.
//!
//! - [`tasks`]: named sets of GEMM inputs, among them Table 4 of the ISAAC paper (SC17).
//! - [`baseline`]: the libraries people use today, found at run time: the crates `gemm` and
//!   `matrixmultiply`, and OpenBLAS, BLIS and Intel MKL by `dlopen`.
//! - [`compare`]: N contenders on one task, interleaved, checked before they are timed.
//! - [`report`]: the comparison as JSON fields and as an aligned table.
//!
//! ```
//! use tilewright_bench_suite::{baseline, operands::Operands, tasks::Layout};
//!
//! let mut operands = Operands::<f32>::new(17, 9, 33, Layout::NT, 1)?;
//! for found in &baseline::find_all().found {
//!     found.sgemm(&mut operands.call(1.0, 0.0)?, 1);
//!     operands.verify(1.0, 0.0)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

pub mod baseline;
pub mod compare;
pub mod gemm;
pub mod operands;
pub mod report;
pub mod settle;
pub mod tasks;
