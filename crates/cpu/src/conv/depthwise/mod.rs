//! Convolutions whose groups have one channel and one output: every plane has a filter of its own.
//!
//! There is no product of matrices in them: an output is a sum over the taps, a handful of operations for every element that is moved.
//! Vectors lie along channels where these are neighbours in memory, else along columns, for which the rows of a plane are brought
//! together with their padding, the columns of a stride apart from each other.
//!
//! | file | what |
//! |---|---|
//! | `space` | parameters, rules, what models see |
//! | `blueprint` | what follows from an input and a configuration |
//! | `driver` | the loops |
//! | `tile` | sums in registers |
//! | `registers` | the host's vectors as types |
//! | `kernel` | the tunable kernel, and plans as code that the host runs |

mod blueprint;
mod driver;
mod kernel;
mod registers;
mod space;
mod tile;

pub use kernel::{CpuDepthwise, DepthwisePlan};
