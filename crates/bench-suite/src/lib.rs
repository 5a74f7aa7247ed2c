//! Tasks of the papers, baselines found on the machine, and the tables that compare them.
//!
//! - [`tasks`]: named sets of GEMM inputs, among them Table 4 of the ISAAC paper (SC17).
//! - [`baseline`]: the libraries people use today, found at run time: the crates `gemm` and
//!   `matrixmultiply`, and OpenBLAS, BLIS and Intel MKL by `dlopen`.
//! - [`compare`]: N contenders on one task, interleaved, checked before they are timed.
//! - [`vendor`]: the same on a device of its own, beside its maker's libraries.
//! - [`report`]: the comparison as JSON fields and as an aligned table.
//!
//! ```
//! use tilewright_bench_suite::{baseline, exact::ExactProduct};
//! use tilewright_core::buffer::Filling;
//! use tilewright_core::computation::Computation;
//! use tilewright_core::dtype::DType;
//! use tilewright_ops::gemm::{Gemm, GemmInput, Layout};
//!
//! let input = GemmInput::new(17, 9, 33, DType::F32, Layout::Nt);
//! let mut work = Gemm.workload(&input, Filling::Exact, 1);
//! let expected = ExactProduct::new(&input, &work);
//! for found in &baseline::find_all().found {
//!     baseline::multiply(&**found, &input, &mut work.buffers, &work.scalars, 1)?;
//!     expected.check(&work.buffers)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

pub mod baseline;
pub mod campaign;
pub mod compare;
pub mod exact;
pub mod gemm;
pub mod report;
pub mod settle;
pub mod tasks;
pub mod vendor;
