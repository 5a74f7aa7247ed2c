//! Convolution with filters of 3 x 3 by Winograd's minimal filtering ([`tilewright_ops::conv::winograd`]), in four launches.
//!
//! Tiles of `side x side` outputs, 2 or 4 along a side, become sums of products of `(side + 2)^2` transformed numbers: as many products of
//! matrices, for every group of channels. The first launch transforms the filters to the workspace, the second one the inputs of all
//! tiles, the third multiplies, and the fourth transforms products to outputs, with bias, residual and activation. The
//! multiplication is the template of the GEMM ([`crate::gemm`]) with a batch of products, its parameters and its rules.
//!
//! In the workspace numbers of one place of the tile lie together; the following tables are of one place and one group, the innermost
//! dimension last. What is innermost in the tensors is innermost there too, so that transformations read and write neighbours.
//!
//! | | `nchw` | `nhwc` |
//! |---|---|---|
//! | filters | channels, outputs | channels, outputs |
//! | inputs | channels, tiles | tiles, channels |
//! | products | outputs, tiles | tiles, outputs |
//! | GEMM | rows are tiles, `nt` | rows are outputs, `nn` |
//!
//! Counts of tiles and of outputs are padded with zeros to a multiple of four, so that vectors are aligned.
//!
//! | file | what |
//! |---|---|
//! | `space`, `features`, `kernel` | rules, features, the tunable kernel |
//! | `plan` | launches and their arguments |
//! | `transform` | the kernels of the three transformations |

mod features;
mod kernel;
mod plan;
mod space;
mod transform;

pub use kernel::WinogradConv;
pub use plan::WinogradPlan;
