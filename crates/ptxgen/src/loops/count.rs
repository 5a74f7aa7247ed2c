//! Counts of kernels of loops, in their sizes.

use super::module;
use crate::count::{Array as Rows, CountError, Launch};
use crate::ir::Index;
use crate::target::Target;
use tilewright_core::counts::Counts;
use tilewright_loops::kernel::{Order, Stmt, visit};
use tilewright_loops::{Affine, Array, LoopError, LoopKernel, Size};

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
    let mut launch = Launch::new(grid);
    for (array, _) in kernel.globals() {
        launch.arrays.extend(rows(kernel, array)?.map(|rows| (array.name.to_owned(), rows)));
    }
    Ok(crate::count::count(&module, &launch)?)
}

/// How much of the rows of an array is used (of its columns, where those are contiguous): from the first to the last element
/// that any index reaches. `None` for arrays without rows, or without accesses.
fn rows(kernel: &LoopKernel, array: &Array) -> Result<Option<Rows>, LoopError> {
    let fastest = if array.order == Order::RowMajor { array.shape.len().saturating_sub(1) } else { 0 };
    if array.shape.len() < 2 {
        return Ok(None);
    }
    let mut reached: Vec<(Affine, i64)> = Vec::new();
    visit(&kernel.body, &mut |stmt| {
        stmt.accesses(&mut |access, _| {
            if access.array == array.name {
                reached.push((access.at[fastest].clone(), 0));
            }
        });
        if let Stmt::Fetch { from, origin, extents, .. } = stmt {
            if *from == array.name {
                reached.push((origin[fastest].clone(), extents[fastest] - 1));
            }
        }
    });
    let first = reached.iter().map(|(at, _)| at.constant).min();
    let mut last: Option<Index> = None;
    for (at, more) in &reached {
        let mut end = Index::from(at.constant + more);
        for (index, factor) in at.terms() {
            let extent = index_of(&kernel.find_loop(index)?.extent);
            end = end.plus(&extent.minus(&1.into()).times(&factor.into()));
        }
        last = Some(match last {
            None => end,
            Some(last) => match end.minus(&last).constant() {
                Some(..=0) => last,
                Some(_) => end,
                None => last.larger(&end),
            },
        });
    }
    let both = first.zip(last);
    Ok(both.map(|(first, last)| Rows { used: last.minus(&(first - 1).into()), pitch: index_of(&array.shape[fastest]) }))
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
