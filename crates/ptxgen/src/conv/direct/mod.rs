//! Convolution of few channels by threads on their own: no tile of what is gathered, and no product of matrices.
//!
//! Where a group has few channels, the reduction is short, and where it has few outputs besides, the tiles of a product are mostly
//! empty. Here a thread computes a strip of `q_s` neighbouring columns of `k_s` outputs. Row of taps by row of taps it loads the columns
//! that its strip sees into registers, each one once, and multiplies them with the filters, which the block holds in shared memory, or
//! which threads read from device memory.
//!
//! The code is made for the taps, their distances, the step and the number of channels; sizes and strides of tensors are
//! parameters. The gradient of the images is a correlation for every remainder of the stride, each with a launch and code of its
//! own; positions that no tap meets are among them, and become zeros.
//!
//! | file | what |
//! |---|---|
//! | `space`, `features`, `kernel` | parameters, rules, features, the tunable kernel |
//! | `plan` | launches and their arguments |
//! | `emit` | the code of one correlation |

mod emit;
mod features;
mod kernel;
mod plan;
mod space;

pub use kernel::DirectConv;
pub use plan::DirectPlan;
