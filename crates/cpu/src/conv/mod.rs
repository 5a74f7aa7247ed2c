//! Convolutions on the host CPU, by the register tiles of the GEMM and without a matrix of patches.
//!
//! All directions are correlations ([`tilewright_ops::conv::Correlation`]). The filters of all are packed once a call, as panels of outputs; images are read where they
//! lie, or from a slab that holds a few channels of a few rows with their padding (`slab`). A table says how far from the first step of
//! the reduction every other one lies: ISAAC's indirection table (section 3.3), read by the register tile itself.
//!
//! | file | what |
//! |---|---|
//! | `space`, `config`, `default`, `features` | parameters, rules, what models see |
//! | `blueprint`, `blocks` | what follows from an input and a configuration |
//! | `panels`, `slab` | packed filters, images with their padding |
//! | `driver`, `finish` | the loops, and what is done to outputs |
//! | `host` | plans as code that the host runs |
//! | `lanes` | arrays that the compiler makes vectors of |
//! | `depthwise` | a kernel of its own for groups of one channel |
//! | `winograd` | a kernel of its own for filters of 3 x 3 |

mod blocks;
mod blueprint;
mod config;
mod default;
mod depthwise;
mod driver;
mod features;
mod finish;
mod host;
mod kernel;
mod lanes;
mod panels;
#[cfg(test)]
mod proofs;
mod slab;
mod space;
mod winograd;

pub use depthwise::{CpuDepthwise, DepthwisePlan};
pub use kernel::{ConvPlan, CpuConv};
pub use winograd::{CpuWinograd, WinogradPlan};
