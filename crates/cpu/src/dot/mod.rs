//! Products whose operands both lie contiguous along the reduction: vectors run along k, and every element of C is a dot product.
//!
//! A register tile of `m_s` by `n_s` elements reads `m_s + n_s` vectors a step for `m_s * n_s` multiply-adds, nothing is packed, and each
//! sum is added up across its vector once at the end. That pays where C is thin and the reduction long: vectors times matrices, and
//! dot products.
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
