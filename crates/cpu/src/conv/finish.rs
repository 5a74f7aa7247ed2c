//! What becomes of complete sums: staged ones go to their places, and the epilogue is applied.

use super::blueprint::Blueprint;
use crate::exec::pack::Packed;
#[cfg(target_arch = "x86_64")]
use crate::exec::pack::transpose;
use std::ops::{Add, Range};
use tilewright_ops::conv::Strides;

/// Outputs and positions that are finished together.
const SQUARE: usize = 16;

/// A row of positions: where its sums begin and where they go, of the first output.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) count: usize,
    /// Elements between neighbours of the sums, and of the result.
    pub(super) own: Strides,
    pub(super) strides: Strides,
}

/// The epilogue of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finish {
    /// A number per output of all groups; null where there is none.
    pub(crate) bias: *const u8,
    /// A tensor of the result's shape; null where there is none.
    pub(crate) residual: *const u8,
    /// Whether what is negative becomes 0.
    pub(crate) relu: bool,
    /// Whether the host's vectors may be used.
    pub(crate) simd: bool,
}

/// An element type.
pub(crate) trait Real: Packed + PartialOrd + Add<Output = Self> {}
impl Real for f32 {}
impl Real for f64 {}

impl Finish {
    fn is_none(&self) -> bool {
        self.bias.is_null() && self.residual.is_null() && !self.relu
    }

    /// Finishes outputs of a block of a group.
    ///
    /// # Safety
    /// The result must be writable over its extent, bias and residual readable over theirs where they are not null, staged sums
    /// readable; nobody else may touch these outputs of the block.
    pub(crate) unsafe fn run<T: Real>(
        &self,
        b: &Blueprint,
        (group, block): (usize, usize),
        outs: Range<usize>,
        result: *mut T,
        staged: Option<*const u8>,
    ) {
        if staged.is_none() && self.is_none() {
            return;
        }
        let (at, to, own) = (&b.blocks[block], b.of.result, b.target());
        let first = b.of.groups[group].result + at.images.start * to.image + at.rows.start * to.row;
        let channel = group * b.of.outs.count;
        for (i, r) in (0..at.images.len()).flat_map(|i| (0..at.rows.len()).map(move |r| (i, r))) {
            let row = Row {
                from: i * own.image + r * own.row,
                to: first + i * to.image + r * to.row,
                count: b.of.grid[1],
                own,
                strides: to,
            };
            // SAFETY: the caller's contract.
            unsafe { self.row(&row, (&outs, channel), result, staged.map(<*const u8>::cast)) };
        }
    }

    /// Finishes outputs of a row of positions, a square at a time: what is read across memory stays in the cache for what follows.
    ///
    /// # Safety
    /// As for [`Finish::run`].
    pub(super) unsafe fn row<T: Real>(
        &self,
        row: &Row,
        (outs, channel): (&Range<usize>, usize),
        result: *mut T,
        staged: Option<*const T>,
    ) {
        let mut outs = outs.clone();
        #[cfg(target_arch = "x86_64")]
        if let Some(staged) = staged.filter(|_| self.simd && self.is_none() && row.strides.column == 1) {
            let squares = (outs.len() / T::SQUARE, row.count / T::SQUARE);
            for (o, c) in (0..squares.0).flat_map(|o| (0..squares.1).map(move |c| (o * T::SQUARE, c * T::SQUARE))) {
                let from = staged.wrapping_add(row.from + (outs.start + o) * row.own.out + c * row.own.column);
                let to = result.wrapping_add(row.to + (outs.start + o) * row.strides.out + c);
                // SAFETY: the caller's contract; staged outputs are neighbours.
                unsafe { transpose::square((from, row.own.column), (to, row.strides.out)) };
            }
            // The rest of the columns of these outputs, and the other outputs.
            let whole = squares.1 * T::SQUARE;
            let first =
                Row { from: row.from + whole * row.own.column, to: row.to + whole, count: row.count - whole, ..*row };
            let done = outs.start + squares.0 * T::SQUARE;
            // SAFETY: the caller's contract.
            unsafe { self.plainly(&first, (&(outs.start..done), channel), result, Some(staged)) };
            outs.start = done;
        }
        // SAFETY: the caller's contract.
        unsafe { self.plainly(row, (&outs, channel), result, staged) };
    }

    /// # Safety
    /// As for [`Finish::row`].
    unsafe fn plainly<T: Real>(
        &self,
        row: &Row,
        (outs, channel): (&Range<usize>, usize),
        result: *mut T,
        staged: Option<*const T>,
    ) {
        for (out, column) in
            outs.clone().step_by(SQUARE).flat_map(|o| (0..row.count).step_by(SQUARE).map(move |c| (o, c)))
        {
            for o in out..(out + SQUARE).min(outs.end) {
                let bias = if self.bias.is_null() {
                    T::default()
                } else {
                    // SAFETY: the caller's contract.
                    unsafe { *self.bias.cast::<T>().add(channel + o) }
                };
                let (from, to) = (row.from + o * row.own.out, row.to + o * row.strides.out);
                for c in column..(column + SQUARE).min(row.count) {
                    let place = to + c * row.strides.column;
                    // SAFETY: the caller's contract.
                    unsafe {
                        let sum = match staged {
                            Some(staged) => *staged.add(from + c * row.own.column),
                            None => *result.add(place),
                        };
                        result.add(place).write(self.of(sum + bias, place));
                    }
                }
            }
        }
    }

    /// # Safety
    /// As for [`Finish::run`].
    pub(super) unsafe fn of<T: Real>(&self, sum: T, place: usize) -> T {
        // SAFETY: the caller's contract.
        let sum = if self.residual.is_null() { sum } else { sum + unsafe { *self.residual.cast::<T>().add(place) } };
        // Of NaN it is 0.
        if !self.relu || sum > T::default() { sum } else { T::default() }
    }
}
