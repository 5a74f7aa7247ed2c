//! Products of a matrix and a few vectors whose matrix lies contiguous along the long side of C: its columns are read from end to end.
//!
//! A group of `k_s` columns is multiplied by its scalars, which stay in registers, and added to a block of C, which stays in the
//! first-level cache while all of the reduction passes: each column is one long run of memory. Tiles that keep sums in registers for
//! all of k would read a strip of each column instead, each on another page, and where columns are a power of two apart all in one set
//! of the cache.
//!
//! | file | what |
//! |---|---|
//! | `space` | parameters, rules, what models see, the default |
//! | `tile` | generated code of blocks of C |
//! | `driver` | what follows from an input and a configuration, and the loops |
//! | `kernel` | the tunable kernel |
//! | `proofs` | tests in the interpreter |

mod driver;
mod kernel;
#[cfg(test)]
mod proofs;
mod space;
mod tile;

pub use kernel::{AxpyPlan, CpuAxpy};
