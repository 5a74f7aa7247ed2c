//! Thin products whose longer operand lies contiguous along the reduction: vectors run along k, and every element of C is a dot product.
//!
//! A register tile of `m_s` by `n_s` elements reads `m_s + n_s` vectors a step for `m_s * n_s` multiply-adds, and each sum is added up
//! across its vector once for each block of `u` steps of k, of which the shorter side stays near. The shorter operand is transposed, block
//! by block, where it lies across k. That pays where the reduction is long and vectors along C would be filled badly: vectors times
//! matrices, dot products, and sides a little longer than some vectors.
//!
//! | file | what |
//! |---|---|
//! | `space` | parameters, rules, what models see |
//! | `default` | what runs before anything is tuned, and where this kernel leads |
//! | `tile` | generated code of register tiles |
//! | `driver` | what follows from an input and a configuration, and the loops |
//! | `kernel` | the tunable kernel |
//! | `proofs` | tests in the interpreter |

mod default;
mod driver;
mod kernel;
#[cfg(test)]
mod proofs;
mod space;
mod tile;

pub use kernel::{CpuDot, DotPlan};
pub(crate) use kernel::{is_thin, lies_along_k};
