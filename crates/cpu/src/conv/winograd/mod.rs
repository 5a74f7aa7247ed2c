//! Convolutions with filters of 3 x 3 by Winograd's minimal filtering, F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3) (Lavin and Gray, *Fast
//! algorithms for convolutional neural networks*, 2016).
//!
//! A tile of `m x m` outputs is a sum over channels of products of `(m + 2) x (m + 2)` transformed numbers: as many products of
//! matrices, of a fourth (m = 2: four ninths) of the operations. Channels are brought side by side on the way, so that transformations
//! are made of whole vectors; the products are the register tiles of the GEMM.
//!
//! Errors grow with the tile: `space` refuses the larger one where the bound of the reference is for few sums.

mod blueprint;
mod driver;
mod host;
mod kernel;
mod space;
mod transform;

pub use kernel::{CpuWinograd, WinogradPlan};
