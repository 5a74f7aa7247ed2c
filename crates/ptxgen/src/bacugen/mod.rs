//! GEMM as BACUGen has it: the stencil and the parameters of "Autotuning GEMMs for Fermi" (Kurzak, Tomov, Dongarra), section 5, for
//! S, D, C and Z, with every transposition and conjugation.
//!
//! A block of `m_dim x n_dim` threads computes a tile of `m_blk x n_blk` elements of C in steps of `k_blk`; a thread computes elements that
//! lie `m_dim` rows and `n_dim` columns apart. For loading the block regroups: `m_dim_a x n_dim_a` threads over the tile of A, and `m_dim_b x
//! n_dim_b` over that of B, each as the operand is stored, so that the first dimension is contiguous in memory (Figure 4).
//!
//! Tiles are skewed in shared memory (section 5.2.1): a step of A is a row of `m_blk + 1` elements, a column of B one of `k_blk + 1`, so
//! that neither reading nor writing by rows or columns meets in a bank. Device memory is read through the read-only path (`load=nc`,
//! what texture caches were on Fermi) or not (`load=global`). The loop is the paper's (Algorithm 1): while the tiles in shared memory
//! are multiplied, the next ones are on their way to registers. Everything but that loop is unrolled.
//!
//! What is ours: sizes that tiles do not divide, with the remainder of the reduction first; batches; bias and activation; a limit of
//! registers by what the code needs, as the paper's count leaves out addresses and counters (section 5.3.3 says so).
//!
//! | file | what |
//! |---|---|
//! | `space`, `default`, `kernel` | parameters and rules (`tilewright_sampler::bacugen` has the paper's), the tunable kernel |
//! | `blueprint` | what code is specialised to: that of the GEMM, with the paper's arrangement of threads |
//! | `emit` | tiles in shared memory |
//!
//! The rest is that of the GEMM (`gemm`, `simt`).

mod blueprint;
mod default;
mod emit;
mod kernel;
mod space;

pub use blueprint::Blueprint;
pub use kernel::{BacugenGemm, BacugenPlan};
