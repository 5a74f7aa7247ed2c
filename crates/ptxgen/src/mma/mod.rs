//! GEMM by warp-wide matrix instructions (`mma.sync`), from sm_80 on.
//!
//! A block computes a tile of `m_l x n_l` elements of C, a warp `m_w x n_w` of them, in fragments that lie in its registers as the
//! instruction wants them. The instruction's rows are columns of C, since C is stored by columns: then a lane holds two
//! neighbouring elements of a column. So its first factor comes from B, and its second from A.
//!
//! Tiles of operands stand in shared memory as they lie in device memory, several stages deep, copied by `cp.async`. A tile's rows
//! are columns of memory: rows of A (columns of B) where memory is contiguous along the reduction, else steps of it. They have
//! no padding; pieces of a row are permuted instead (`tile`), so that neither copies nor fragments meet in a bank.
//!
//! How fragments are read (`variants`) depends on the type and on the way memory is contiguous in:
//!
//! | operands | along the reduction | along rows (columns of B) |
//! |---|---|---|
//! | f16, bf16 | `ldmatrix` | `ldmatrix.trans` |
//! | tf32 | `ldmatrix` | `ld.shared.b32` |
//! | f64 | `ld.shared.f64` | `ld.shared.f64` |
//! | f32 | as tf32, then rounded or split in registers | as tf32, then rounded or split |
//! | i8 | `ldmatrix` | `ld.shared.b32`, and bytes exchanged in registers (`transpose`) |
//!
//! `ldmatrix` moves rows of 16 bytes whatever they hold, but transposes elements of 16 bits only. Nothing is transposed in a launch
//! of its own.
//!
//! | file | what |
//! |---|---|
//! | `config`, `space`, `registers`, `features`, `default`, `kernel` | parameters, rules, predicted registers, what a model sees, the tunable kernel |
//! | `blueprint` | what code is specialised to |
//! | `variants` | which instruction multiplies, and how its fragments are read |
//! | `tile` | where elements lie in shared memory |
//! | `emit`, `load`, `reader`, `fragments`, `transpose`, `store` | the code of a block |
//!
//! Parameters, coordinates, launches and the sum of slices are those of all products (`gemm::frame`, `gemm::plan`), the loop over
//! stages is that of all templates (`simt`).

mod blueprint;
mod config;
mod default;
mod emit;
mod features;
mod fragments;
mod kernel;
mod load;
mod reader;
mod registers;
mod space;
mod store;
mod tile;
mod transpose;
mod variants;

pub use blueprint::Blueprint;
pub use config::MmaConfig;
pub use emit::module;
pub use kernel::{MmaGemm, MmaPlan};
pub use variants::Multiplied;
