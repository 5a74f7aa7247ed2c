#![doc = include_str!("../README.md")]

pub mod bfs;
pub mod described;
pub mod description;
pub mod device;
pub mod generate;
pub mod histogram;
pub mod image;
pub mod isa;
pub mod kernel;
pub mod matrix;
pub mod solver;
pub mod sort;
pub mod source;
pub mod spmv;
mod store;
pub mod transpose;

use tilewright_core::problem::AnyKernel;
use tilewright_core::space::SpaceError;

/// The kernels of the six computations, computation by computation, for host CPUs.
///
/// # Errors
/// None for the computations of this crate: a test builds all their spaces.
pub fn kernels() -> Result<Vec<Box<dyn AnyKernel>>, SpaceError> {
    let all = [
        kernel::erased::<spmv::Spmv>()?,
        kernel::erased::<sort::Sort>()?,
        kernel::erased::<histogram::Histogram>()?,
        kernel::erased::<bfs::Bfs>()?,
        kernel::erased::<solver::Solver>()?,
        kernel::erased::<transpose::Transpose>()?,
    ];
    Ok(all.into_iter().flatten().collect())
}
