//! What becomes of complete sums: staged ones go to their places, and the epilogue is applied.

use super::blocks::Side;
use super::blueprint::Blueprint;
use std::ops::{Add, Range};

/// The epilogue of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finish {
    /// A number per output of all groups; null where there is none.
    pub(crate) bias: *const u8,
    /// A tensor of the result's shape; null where there is none.
    pub(crate) residual: *const u8,
    /// Whether what is negative becomes 0.
    pub(crate) relu: bool,
}

/// An element type.
pub(crate) trait Real: Copy + Default + PartialOrd + Add<Output = Self> {}
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
        let sides = |image: usize, row: usize, column: usize| {
            let counts = [at.images.len(), at.rows.len(), b.of.grid[1]];
            [(image, counts[0]), (row, counts[1]), (column, counts[2])]
        };
        let (to_sides, own_sides) = (sides(to.image, to.row, to.column), sides(own.image, own.row, own.column));
        let side = |d: usize| Side { count: to_sides[d].1, from: own_sides[d].0, to: to_sides[d].0 };
        let [images, rows, columns] = [side(0), side(1), side(2)];
        for out in outs {
            let channel = group * b.of.outs.count + out;
            // SAFETY: the caller's contract.
            let bias = if self.bias.is_null() { T::default() } else { unsafe { *self.bias.cast::<T>().add(channel) } };
            for i in 0..images.count {
                for r in 0..rows.count {
                    let place = first + out * to.out + i * images.to + r * rows.to;
                    let from = out * own.out + i * images.from + r * rows.from;
                    for c in 0..columns.count {
                        let place = place + c * columns.to;
                        // SAFETY: the caller's contract.
                        unsafe {
                            let sum = match staged {
                                Some(staged) => *staged.cast::<T>().add(from + c * columns.from),
                                None => *result.add(place),
                            };
                            result.add(place).write(self.of(sum + bias, place));
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    /// As for [`Finish::run`].
    unsafe fn of<T: Real>(&self, sum: T, place: usize) -> T {
        // SAFETY: the caller's contract.
        let sum = if self.residual.is_null() { sum } else { sum + unsafe { *self.residual.cast::<T>().add(place) } };
        // Of NaN it is 0.
        if self.relu && !(sum > T::default()) { T::default() } else { sum }
    }
}
