#![doc = include_str!("../README.md")]

pub mod affine;
mod array;
mod check;
mod error;
pub mod host;
mod instance;
mod interpret;
pub mod kernel;
pub mod library;
mod size;
mod traffic;
mod transform;

pub use affine::{Affine, idx};
pub use check::Nest;
pub use error::LoopError;
pub use instance::Instance;
pub use interpret::reference;
pub use kernel::{Array, LoopKernel};
pub use size::{Size, Sizes, size};
