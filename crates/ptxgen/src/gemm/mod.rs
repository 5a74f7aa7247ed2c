//! GEMM by fused multiply-adds: ISAAC's parameterisation as PTX.

mod arithmetic;
mod blueprint;
mod config;
mod emit;
mod load;
mod loader;
mod store;
mod tree;

pub use arithmetic::{Arithmetic, F32, F64, Fused};
pub use blueprint::Blueprint;
pub use config::{Bounds, GemmConfig, Load, Raster, Split};
pub use emit::module;
