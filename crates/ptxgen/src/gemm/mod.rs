//! GEMM by fused multiply-adds: ISAAC's parameterisation (section 3.2 of the SC17 paper) as PTX.
//!
//! Numbers are f32, f64, c32 and c64, f16 and bf16 that are summed in f32, or f16 in pairs that are summed in f16:
//! `simt::Arithmetic` knows what an element is. Every epilogue is applied where results are stored.
//!
//! A block computes a tile of `m_l x n_l` elements of C, a thread `m_s x n_s` of them. Stage by stage, `u` steps of the
//! reduction, the threads bring tiles of A and B into shared memory, as rows of `m_l` and `n_l` neighbouring elements
//! whatever the layout: operands that are contiguous along the reduction are transposed on their way. Then every thread
//! multiplies and adds, fully unrolled, with the fragments of the next step loaded one step ahead.
//!
//! | file | what |
//! |---|---|
//! | `config`, `space`, `facts`, `registers`, `kernel` | parameters, rules, what they know of inputs, predicted registers, the tunable kernel |
//! | `plan` | launches and their arguments |
//! | `residence` | blocks and bytes of a multiprocessor at a time |
//! | `default` | what runs before anything is tuned |
//! | `blueprint` | what code is specialised to |
//! | `emit` | coordinates, and what the loop over stages is given |
//! | `frame` | what all templates of products share: parameters, coordinates, how matrices lie |
//! | `source` | a thread's way through an operand in device memory |
//! | `load`, `store` | device memory to shared memory; the tile to C or to the workspace |
//! | `straight` | rows of A from device memory to registers, for products of few columns |
//! | `finish` | `C = beta C`, and the ordered sum of slices |
//! | `ticket` | the same sum by the last block of each tile, in the launch of the product |
//! | `stream` | a fixed number of blocks that share the stages of all tiles evenly |
//!
//! The loop over stages, the multiply-adds and the sum over groups are those of all such templates (`simt`).
//!
//! Bounds: a thread's rows (columns for B) are compared with the size once, the predicate is used in every stage. The
//! remainder of the reduction is the first stage, so that only loads before the loop are predicated along it. What is not
//! loaded is zero.

mod blueprint;
mod config;
pub(crate) mod default;
pub(crate) mod emit;
pub(crate) mod facts;
pub(crate) mod features;
mod finish;
pub(crate) mod frame;
pub(crate) mod kernel;
pub(crate) mod load;
mod plan;
pub(crate) mod registers;
mod residence;
pub(crate) mod source;
pub(crate) mod space;
pub(crate) mod store;
mod straight;
mod stream;
mod ticket;

pub use crate::simt::{Arithmetic, Load};
pub use blueprint::Blueprint;
pub use config::{Bounds, GemmConfig, Raster, Split};
pub use emit::module;
pub use frame::{Frame, Template};
pub use kernel::SimtGemm;
pub use plan::GemmPlan;
pub(crate) use plan::{GRID, launch};
pub use residence::Residence;
pub(crate) use space::{BLOCK_TILE, THREAD_TILE};
pub(crate) use space::{Names, product};
