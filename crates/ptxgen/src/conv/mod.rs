//! Convolution by fused multiply-adds: ISAAC's parameterisation (section 3.3 of the SC17 paper) as PTX.
//!
//! Every direction of a convolution is one or several correlations ([`tilewright_ops::conv::Correlation`]), and each of them an
//! implicit product of matrices: outputs by positions, over channels and taps. A block computes a tile of `k_l` outputs at
//! `n_l x p_l x q_l` positions (images, rows and columns of the result), a thread `k_s` outputs at `n_s x p_s x q_s` of them. Stage
//! by stage, `u` steps of the reduction, threads bring the filters and what their positions gather into shared memory, as rows of
//! neighbouring outputs and positions for every step, whatever the layout.
//!
//! Where a step gathers stands in a table in the workspace, which a kernel fills before the product: no step is divided into a
//! channel and a tap where it is used. Groups lie along the third dimension of the grid, and slices of the reduction (`c_g`) besides.
//!
//! Operands of 16 bits lie as such in device and shared memory and are summed in binary32: two share a register until they are
//! multiplied. Partial sums of slices are binary32 too, so that a result is rounded once; bias and residual are of its type.
//!
//! | file | what |
//! |---|---|
//! | `config`, `facts`, `space`, `registers`, `default`, `features`, `kernel` | parameters, what rules know of an input, rules, registers, the tunable kernel |
//! | `plan`, `job` | launches and their arguments; correlations as numbers |
//! | `count` | how often the program does what |
//! | `blueprint` | what code is specialised to |
//! | `table` | the kernel that fills the table |
//! | `emit`, `gather` | coordinates and the product; device memory to shared memory by the table |
//! | `store`, `finish` | the tile to the result or the workspace; the ordered sum of slices |
//! | `winograd` | a kernel of its own for filters of 3 x 3 |
//! | `direct` | a kernel of its own for few channels |
//! | `elements`, `operands`, `taps` | what these two share: single elements, tensors as arguments, taps as a grid |
//!
//! The loop over stages, the multiply-adds and the sum over groups of threads are those of all such templates (`simt`).

mod blueprint;
mod config;
mod count;
mod default;
mod direct;
mod elements;
mod emit;
mod facts;
mod features;
mod finish;
mod gather;
mod job;
mod kernel;
mod operands;
mod plan;
mod registers;
mod space;
mod store;
mod table;
mod taps;
mod winograd;

pub use crate::simt::{Arithmetic, Load};
pub use blueprint::Blueprint;
pub use config::{ConvConfig, Scan};
pub use direct::{DirectConv, DirectPlan};
pub use emit::module;
pub use kernel::SimtConv;
pub use plan::ConvPlan;
pub use winograd::{WinogradConv, WinogradPlan};
