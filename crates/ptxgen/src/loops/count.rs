//! Counts of kernels of loops, in their sizes.

use super::module;
use crate::count::{CountError, Launch};
use crate::ir::Index;
use crate::target::Target;
use tilewright_core::counts::Counts;
use tilewright_loops::{LoopError, LoopKernel, Size};

/// Why a kernel of loops has no counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoopCountError {
    /// It has no code.
    #[error(transparent)]
    Kernel(#[from] LoopError),
    /// Its code cannot be counted.
    #[error(transparent)]
    Count(#[from] CountError),
}

/// Counts the code of a kernel for a target, whatever its sizes.
///
/// # Errors
/// What has no code ([`module()`]), or what the counter has no form for.
pub fn count(kernel: &LoopKernel, target: Target) -> Result<Counts, LoopCountError> {
    let module = module(kernel, target)?;
    let mut grid = [1, 1, 1].map(Index::from);
    for (axis, index) in kernel.nest()?.groups {
        grid[axis as usize] = index_of(&kernel.find_loop(index)?.extent);
    }
    Ok(crate::count::count(&module, &Launch::new(grid))?)
}

fn index_of(size: &Size) -> Index {
    match size {
        Size::Const(c) => (*c).into(),
        Size::Named(name) => Index::param(name),
        Size::Sum(a, b) => index_of(a).plus(&index_of(b)),
        Size::Product(a, b) => index_of(a).times(&index_of(b)),
        Size::Quotient(a, by) => index_of(a).floor(*by),
    }
}
