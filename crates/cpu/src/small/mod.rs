//! Small products, and batches of them: one routine for a whole product.
//!
//! Where a product lasts tens of nanoseconds, packing, loops over tiles and their arguments last as long. Here a routine is
//! generated for all register tiles of C: operands are read where they lie, at distances that are part of the instructions, edges
//! are masked, and a batch is a loop around the whole.
//!
//! | file | what |
//! |---|---|
//! | `space` | parameters, rules, what models see |
//! | `default` | what runs before anything is tuned |
//! | `blueprint` | what follows from an input and a configuration |
//! | `isa` | instruction codes |
//! | `routine` | the code of a product and of the loop around it |
//! | `tile`, `store`, `panel`, `prefetch` | its parts: steps of k, writing C, transposing an operand, fetching what comes next |
//! | `portable` | the same without generated code |
//! | `code`, `host`, `kernel` | the routine ready to be called, the plan as host code, the tunable kernel |

mod blueprint;
mod code;
mod default;
mod host;
mod isa;
mod kernel;
mod panel;
mod portable;
mod prefetch;
#[cfg(test)]
mod proofs;
mod routine;
mod space;
mod store;
mod tile;

pub use kernel::{CpuSmall, SmallPlan};
pub(crate) use space::{SMALL_SIDE, SMALL_WORK};
