//! A few channels of a few rows of images, with their padding: small, contiguous, and free of edges.

use super::blocks::{Block, From};
use tilewright_ops::conv::Correlation;
use std::ops::Range;

/// Where elements lie in a slab, in the order of the tensor that it is copied from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slab {
    pub(crate) strides: From,
    /// Places of an image's part.
    rows: usize,
    columns: usize,
    /// Places of the image from one place of the slab to the next: where there is one tap, no others are copied than it meets.
    apart: [usize; 2],
    /// Places of the slab from one position to the next.
    pub(crate) step: [usize; 2],
    /// Elements.
    pub(crate) len: usize,
}

impl Slab {
    /// One for any of these blocks, with so many channels.
    pub(crate) fn new(of: &Correlation, blocks: &[Block], channels: usize) -> Self {
        let reach = of.reach();
        let most = |count: &dyn Fn(&Block) -> usize| blocks.iter().map(count).max().unwrap_or(1);
        let (images, grid_rows) = (most(&|b| b.images.len()), most(&|b| b.rows.len()));
        let step = [0, 1].map(|d| if reach[d] == 0 { 1 } else { of.step[d] });
        let apart = [0, 1].map(|d| if reach[d] == 0 { of.step[d] } else { 1 });
        let extent = |positions: usize, d: usize| (positions.max(1) - 1) * step[d] + reach[d] + 1;
        let (rows, columns) = (extent(grid_rows, 0), extent(of.grid[1], 1));
        // From the innermost dimension outwards.
        let mut sides = [
            (of.columns.stride, columns, 3),
            (of.rows.stride, rows, 2),
            (of.channels.stride, channels, 1),
            (of.images.stride, images, 0),
        ];
        // Of one element there are any strides; what is copied at once comes first.
        sides.sort_by_key(|side| side.0);
        let (mut strides, mut len) = ([0; 4], 1);
        for (_, count, at) in sides {
            strides[at] = len;
            len *= count;
        }
        let [image, channel, row, column] = strides;
        Self { strides: From { image, channel, row, column }, rows, columns, apart, step, len }
    }

    /// Fills it for a block and a range of channels.
    ///
    /// # Safety
    /// The tensor must be readable from `from` on over its dimensions, and [`Slab::len`] elements writable at `to`.
    pub(crate) unsafe fn fill<T: Copy + Default>(
        &self,
        of: &Correlation,
        (block, channels): (&Block, &Range<usize>),
        from: *const T,
        to: *mut T,
    ) {
        let first = [of.origin[0] + (block.rows.start * of.step[0]) as isize, of.origin[1]];
        let rows = ((block.rows.len().max(1) - 1) * self.step[0] + of.reach()[0] + 1).min(self.rows);
        let s = &self.strides;
        let place = |d: usize, at: usize, extent: usize| {
            usize::try_from(first[d] + (at * self.apart[d]) as isize).ok().filter(|at| *at < extent)
        };
        // The dimension whose elements are neighbours is copied at once.
        if of.columns.stride == 1 {
            let inside = |at: &usize| place(1, *at, of.columns.count).is_some();
            let left = (0..self.columns).find(inside).unwrap_or(self.columns);
            let end = (0..self.columns).rev().find(inside).map_or(left, |last| last + 1);
            for (i, image) in block.images.clone().enumerate() {
                for (c, channel) in channels.clone().enumerate() {
                    for row in 0..rows {
                        let target = to.wrapping_add(i * s.image + c * s.channel + row * s.row);
                        let source = place(0, row, of.rows.count).map(|row| {
                            let at = image * of.images.stride + channel * of.channels.stride + row * of.rows.stride;
                            from.wrapping_add(at).wrapping_offset(first[1])
                        });
                        // SAFETY: the caller's contract; columns `left..end` are inside of the image.
                        unsafe { copy_row(source, target, (left, end, self.columns), self.apart[1]) };
                    }
                }
            }
            return;
        }
        // Channels or images are innermost.
        let is_channel = of.channels.stride == 1;
        let (inner, outer) = if is_channel { (channels, &block.images) } else { (&block.images, channels) };
        let (inner_from, outer_from) =
            if is_channel { (of.channels.stride, of.images.stride) } else { (of.images.stride, of.channels.stride) };
        let outer_to = if is_channel { s.image } else { s.channel };
        for (o, at) in outer.clone().enumerate() {
            for row in 0..rows {
                for column in 0..self.columns {
                    let target = to.wrapping_add(o * outer_to + row * s.row + column * s.column);
                    let found = place(0, row, of.rows.count).zip(place(1, column, of.columns.count));
                    let source = found.map(|(row, column)| {
                        let places = row * of.rows.stride + column * of.columns.stride;
                        from.wrapping_add(at * outer_from + inner.start * inner_from + places)
                    });
                    // SAFETY: the caller's contract; neighbours are contiguous in both.
                    unsafe { copy_row(source, target, (0, inner.len(), inner.len()), 1) };
                }
            }
        }
    }
}

/// Elements `left..end` of a row that has them so far apart, and zeros on both sides; zeros where there is no row.
///
/// # Safety
/// As for [`Slab::fill`].
unsafe fn copy_row<T: Copy + Default>(
    from: Option<*const T>,
    to: *mut T,
    (left, end, len): (usize, usize, usize),
    apart: usize,
) {
    let (left, end) = if from.is_some() { (left, end) } else { (len, len) };
    // SAFETY: the caller's contract.
    unsafe {
        for i in (0..left).chain(end..len) {
            to.add(i).write(T::default());
        }
        match from {
            Some(from) if apart == 1 => {
                std::ptr::copy_nonoverlapping(from.wrapping_add(left), to.add(left), end - left);
            }
            Some(from) => (left..end).for_each(|i| to.add(i).write(*from.wrapping_add(i * apart))),
            None => {}
        }
    }
}
