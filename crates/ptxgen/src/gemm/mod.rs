//! GEMM by fused multiply-adds: ISAAC's parameterisation as PTX.

mod arithmetic;
mod blueprint;
mod config;
mod default;
mod emit;
mod features;
mod finish;
mod kernel;
mod load;
mod loader;
mod plan;
mod registers;
mod space;
mod store;
mod tree;

pub use arithmetic::{Arithmetic, F32, F64, Fused};
pub use blueprint::Blueprint;
pub use config::{Bounds, GemmConfig, Load, Raster, Split};
pub use emit::module;
pub use kernel::SimtGemm;
pub use plan::{Batch, GemmPlan};
