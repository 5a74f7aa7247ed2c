//! A few channels of a few rows of images, with their padding: small, contiguous, and free of edges.

use super::blocks::{Block, From};
use std::ops::Range;
use tilewright_ops::conv::Correlation;

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
            // Where each row of any channel comes from.
            let sources: Vec<Option<isize>> = (0..rows)
                .map(|row| Some((place(0, row, of.rows.count)? * of.rows.stride) as isize + first[1]))
                .collect();
            let cut = Cut { left, end, len: self.columns, apart: self.apart[1] };
            for (i, image) in block.images.clone().enumerate() {
                for (c, channel) in channels.clone().enumerate() {
                    let from = from.wrapping_add(image * of.images.stride + channel * of.channels.stride);
                    let mut target = to.wrapping_add(i * s.image + c * s.channel);
                    for source in &sources {
                        // SAFETY: the caller's contract; columns `left..end` are inside of the image.
                        unsafe { cut.copy(source.map(|at| from.wrapping_offset(at)), target) };
                        target = target.wrapping_add(s.row);
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
        let cut = Cut { left: 0, end: inner.len(), len: inner.len(), apart: 1 };
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
                    unsafe { cut.copy(source, target) };
                }
            }
        }
    }
}

/// A row: elements `left..end` come from a tensor that has them so far apart, on both sides are zeros.
struct Cut {
    left: usize,
    end: usize,
    len: usize,
    apart: usize,
}

impl Cut {
    /// Copies one; zeros where there is no row.
    ///
    /// # Safety
    /// As for [`Slab::fill`].
    #[inline]
    unsafe fn copy<T: Copy + Default>(&self, from: Option<*const T>, to: *mut T) {
        let (left, end) = if from.is_some() { (self.left, self.end) } else { (self.len, self.len) };
        // SAFETY: the caller's contract.
        unsafe {
            for i in (0..left).chain(end..self.len) {
                to.add(i).write(T::default());
            }
            match from {
                Some(from) if self.apart == 1 => copy(from.wrapping_add(left), to.add(left), end - left),
                Some(from) => (left..end).for_each(|i| to.add(i).write(*from.wrapping_add(i * self.apart))),
                None => {}
            }
        }
    }
}

/// Copies neighbours. Rows are short, and a call of the library's copy, which the compiler would make of plain writes, takes longer
/// than most of them.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline]
unsafe fn copy<T: Copy>(from: *const T, to: *mut T, count: usize) {
    const PIECE: usize = 8;
    let mut at = 0;
    // SAFETY: the caller's contract; pieces lie within the count.
    unsafe {
        while at + PIECE <= count {
            std::ptr::copy_nonoverlapping(from.add(at).cast::<[T; PIECE]>(), to.add(at).cast(), 1);
            at += PIECE;
        }
        while at < count {
            to.add(at).write_volatile(*from.add(at));
            at += 1;
        }
    }
}
