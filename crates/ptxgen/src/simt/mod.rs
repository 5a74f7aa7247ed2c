//! What the templates of products by fused multiply-adds share, whatever it is that they multiply.
//!
//! A block has tiles of two operands in shared memory, as rows of neighbouring elements for every step of the reduction. The
//! template says how they come there ([`Side`]); what threads do with them is the same for all.
//!
//! | file | what |
//! |---|---|
//! | `arithmetic` | what a template knows of numbers |
//! | `arrangement` | which thread computes what |
//! | `loader` | how threads share the loads of a tile, and the rules of that |
//! | `mover` | from device memory to shared memory |
//! | `stages` | the loop over the reduction in three forms: one stage, two stages, several by `cp.async` |
//! | `fragments` | from shared memory to registers, and the multiply-adds |
//! | `tree`, `slices` | the sum over the groups of a block, and over the slices of the grid |

mod arithmetic;
mod arrangement;
mod fragments;
pub(crate) mod loader;
mod mover;
mod slices;
mod stages;
mod tree;

pub use arithmetic::Arithmetic;
pub(crate) use arrangement::{Arrangement, chunk};
pub(crate) use fragments::{Fragments, Operands, add_products};
pub(crate) use loader::{Loader, Rows, Slot};
pub(crate) use mover::{Mover, Targets};
pub(crate) use slices::ordered_sum;
pub use stages::Load;
pub(crate) use stages::{Multiply, Reduction, Side};
pub(crate) use tree::tree;
