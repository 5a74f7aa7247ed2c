//! Runs depthwise convolutions: blocks of rows of a plane at a time, or a row of all channels.
//!
//! What lies in the padding is multiplied like everything else, as zeros: the reference does, and a filter may hold an infinity.

use super::super::driver::Call;
use super::super::finish::Finish;
use super::super::lanes::{Lanes, Number, Work, with_vectors};
use super::blueprint::Blueprint;
use crate::split::share;
use std::ops::Range;
use tilewright_ops::conv::winograd::Linear;

/// Computes everything.
///
/// # Safety
/// The tensors must be readable and the result writable over the extents of the input, the workspace over its size and aligned to 64
/// bytes, nobody else may touch the result or the workspace, and the host must have the plan's vectors.
pub(super) unsafe fn run(blueprint: &Blueprint, call: &Call) {
    let native = (blueprint.vector, call.finish.simd);
    // SAFETY: the caller's contract; parts of different threads do not overlap.
    tilewright_threads::run(blueprint.config.t, &|thread| unsafe {
        with_vectors(native, &Parts { b: blueprint, thread, call });
    });
}

/// The work of one thread.
struct Parts<'a> {
    b: &'a Blueprint,
    thread: usize,
    call: &'a Call,
}

impl Work for Parts<'_> {
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn run<T: Number, const L: usize>(&self) {
        // SAFETY: the caller's contract.
        unsafe {
            match self.b.config.vectors {
                8 => self.all::<T, L, 8>(),
                4 => self.all::<T, L, 4>(),
                2 => self.all::<T, L, 2>(),
                _ => self.all::<T, L, 1>(),
            }
        }
    }
}

impl Parts<'_> {
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn all<T: Number, const L: usize, const V: usize>(&self) {
        let units = share(&(0..self.b.units()), self.thread, self.b.config.t);
        let [filters, rows] = self.b.own(self.thread).map(|at| self.call.workspace.wrapping_add(at).cast::<T>());
        // SAFETY: the caller's contract; filters and rows are this thread's parts of the workspace.
        unsafe {
            if self.b.channels_first {
                self.pack(filters);
                units.for_each(|unit| self.row::<T, L, V>(unit, filters));
            } else {
                units.for_each(|unit| self.block::<T, L, V>(unit, filters, rows));
            }
        }
    }

    /// Brings the filters of all channels together, channels side by side.
    ///
    /// # Safety
    /// As for [`run`], and the filters must be writable.
    unsafe fn pack<T: Number>(&self, filters: *mut T) {
        let of = &self.b.of;
        let from = self.call.filter.cast::<T>();
        for (number, tap) in of.taps.iter().enumerate() {
            for (g, group) in of.groups.iter().enumerate() {
                // SAFETY: the caller's contract: an element of the filters, and one of as many as there are.
                unsafe { *filters.add(number * of.groups.len() + g) = *from.add(group.filter + tap.filter) };
            }
        }
    }

    /// A row of outputs of all channels.
    ///
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn row<T: Number, const L: usize, const V: usize>(&self, unit: usize, filters: *const T) {
        let count = self.b.of.groups.len();
        let mut channel = 0;
        // SAFETY: the caller's contract: channels from `channel` on that there are.
        unsafe {
            while channel + V * L <= count {
                self.channels::<T, L, V>(unit, channel, filters);
                channel += V * L;
            }
            while channel + L <= count {
                self.channels::<T, L, 1>(unit, channel, filters);
                channel += L;
            }
            if channel < count && count >= L {
                // Some are computed twice, which is quicker than one by one.
                self.channels::<T, L, 1>(unit, count - L, filters);
            } else {
                (channel..count).for_each(|channel| self.channels::<T, 1, 1>(unit, channel, filters));
            }
        }
    }

    /// A row of outputs of `V * L` channels.
    ///
    /// # Safety
    /// As for [`run`]; there must be as many channels.
    #[inline(always)]
    unsafe fn channels<T: Number, const L: usize, const V: usize>(
        &self,
        unit: usize,
        channel: usize,
        filters: *const T,
    ) {
        let of = &self.b.of;
        let (image, p) = (unit / of.grid[0], unit % of.grid[0]);
        let base = of.groups[0].gathered + image * of.images.stride + channel;
        let from = self.call.gathered.cast::<T>().wrapping_add(base);
        let to = of.groups[0].result + image * of.result.image + p * of.result.row + channel;
        let bias = self.bias::<T>(channel);
        for q in 0..of.grid[1] {
            let mut sums = [Lanes::<T, L>::zero(); V];
            for (number, tap) in of.taps.iter().enumerate() {
                let row = inside(p * of.step[0] + tap.at[0], of.origin[0], of.rows.count);
                let column = inside(q * of.step[1] + tap.at[1], of.origin[1], of.columns.count);
                let place = row.zip(column).map(|(row, column)| row * of.rows.stride + column * of.columns.stride);
                let filter = filters.wrapping_add(number * of.groups.len() + channel);
                for (v, sum) in sums.iter_mut().enumerate() {
                    let zero = Lanes::zero();
                    // SAFETY: the caller's contract: channels of a place within the image, and of a filter.
                    let (x, f) = unsafe {
                        let x = place.map_or(zero, |place| Lanes::read(from.wrapping_add(place + v * L)));
                        (x, Lanes::<T, L>::read(filter.wrapping_add(v * L)))
                    };
                    *sum = sum.plus(x.zip(f, |x, f| x * f));
                }
            }
            for (v, sum) in sums.into_iter().enumerate() {
                let place = to + q * of.result.column + v * L;
                // SAFETY: the caller's contract: outputs of these channels, and as many numbers of the bias.
                unsafe {
                    let added = bias.map_or(Lanes::zero(), |bias| Lanes::read(bias.wrapping_add(v * L)));
                    let sum = self.call.finish.vector(sum.plus(added), place);
                    sum.write(self.call.result.cast::<T>().wrapping_add(place));
                }
            }
        }
    }

    /// The numbers of the bias from a channel on.
    fn bias<T>(&self, channel: usize) -> Option<*const T> {
        let bias = self.call.finish.bias.cast::<T>();
        (!bias.is_null()).then(|| bias.wrapping_add(channel))
    }

    /// A block of rows of outputs of a plane.
    ///
    /// # Safety
    /// As for [`run`], and filters and rows must be writable.
    #[inline(always)]
    unsafe fn block<T: Number, const L: usize, const V: usize>(&self, unit: usize, filters: *mut T, rows: *mut T) {
        let (b, of) = (self.b, &self.b.of);
        let (plane, block) = (unit / b.blocks, unit % b.blocks);
        let (image, group) = (plane / of.groups.len(), plane % of.groups.len());
        let outputs = share(&(0..of.grid[0]), block, b.blocks);
        // SAFETY: the caller's contract.
        unsafe {
            for (number, tap) in of.taps.iter().enumerate() {
                let from = self.call.filter.cast::<T>().wrapping_add(of.groups[group].filter + tap.filter);
                *filters.add(number) = *from;
            }
            self.bring(image, group, &outputs, rows);
            for (at, p) in outputs.enumerate() {
                let to = of.groups[group].result + image * of.result.image + p * of.result.row;
                let rows = rows.wrapping_add(at * of.step[0] * b.pitch);
                for q in (0..of.grid[1]).step_by(V * L) {
                    self.columns::<T, L, V>((group, q, to), filters, rows);
                }
            }
        }
    }

    /// Outputs of `V * L` columns of a row, those that there are.
    ///
    /// # Safety
    /// As for [`run`]; the row must have been brought.
    #[inline(always)]
    unsafe fn columns<T: Number, const L: usize, const V: usize>(
        &self,
        (group, q, to): (usize, usize, usize),
        filters: *const T,
        row: *const T,
    ) {
        let (b, of) = (self.b, &self.b.of);
        let mut sums = [Lanes::<T, L>::zero(); V];
        for (number, tap) in b.taps.iter().enumerate() {
            // SAFETY: the caller's contract: a filter, and columns of a row, which end with as many as vectors overrun.
            unsafe {
                let filter = *filters.wrapping_add(number);
                for (v, sum) in sums.iter_mut().enumerate() {
                    let x = Lanes::<T, L>::read(row.wrapping_add(tap + q + v * L));
                    *sum = sum.plus(x.map(|x| x * filter));
                }
            }
        }
        // SAFETY: the caller's contract.
        let bias = self.bias::<T>(group).map_or(T::default(), |bias| unsafe { *bias });
        let finish = &self.call.finish;
        let result = self.call.result.cast::<T>();
        for (v, sum) in sums.into_iter().enumerate() {
            let (q, sum) = (q + v * L, sum.map(|x| x + bias));
            // SAFETY: the caller's contract: columns of the result that there are.
            unsafe {
                if of.result.column == 1 && q + L <= of.grid[1] {
                    finish.vector(sum, to + q).write(result.wrapping_add(to + q));
                } else {
                    for (lane, q) in (q..of.grid[1]).take(L).enumerate() {
                        let place = to + q * of.result.column;
                        result.wrapping_add(place).write(finish.of(sum.get(lane), place));
                    }
                }
            }
        }
    }

    /// Brings the rows that a block of outputs sees together, with zeros around the image; columns of the same remainder by the stride
    /// lie side by side.
    ///
    /// # Safety
    /// As for [`Parts::block`].
    #[inline(always)]
    unsafe fn bring<T: Number>(&self, image: usize, group: usize, outputs: &Range<usize>, rows: *mut T) {
        let (b, of) = (self.b, &self.b.of);
        let base = of.groups[group].gathered + image * of.images.stride;
        let from = self.call.gathered.cast::<T>().wrapping_add(base);
        for r in 0..b.rows(outputs.len()) {
            let to = rows.wrapping_add(r * b.pitch);
            let Some(row) = inside(outputs.start * of.step[0] + r, of.origin[0], of.rows.count) else {
                // SAFETY: the caller's contract: a row. All bits of zero are 0.
                unsafe { to.write_bytes(0, b.pitch) };
                continue;
            };
            let from = from.wrapping_add(row * of.rows.stride);
            for phase in 0..of.step[1] {
                // SAFETY: the caller's contract: a row's columns of one remainder.
                unsafe { self.phase(from, phase, to.wrapping_add(phase * b.phase)) };
            }
        }
    }

    /// Columns of a row of an image from the `phase`-th that the first output sees, a stride apart.
    ///
    /// # Safety
    /// As for [`Parts::block`].
    #[inline(always)]
    unsafe fn phase<T: Number>(&self, from: *const T, phase: usize, to: *mut T) {
        let (b, of) = (self.b, &self.b.of);
        let (step, first) = (of.step[1], of.origin[1] + phase as isize);
        // Those from `left` to `end` are within the image.
        let up_to = |column: isize| (column.max(0) as usize).div_ceil(step).min(b.phase);
        let left = up_to(-first);
        let end = up_to(of.columns.count as isize - first).max(left);
        // SAFETY: the caller's contract: elements of a row of the image, and `b.phase` of a row that is brought.
        unsafe {
            to.write_bytes(0, left);
            if end > left {
                let from = from.wrapping_add((first + (left * step) as isize) as usize * of.columns.stride);
                let apart = step * of.columns.stride;
                if apart == 1 {
                    to.wrapping_add(left).copy_from_nonoverlapping(from, end - left);
                } else {
                    (0..end - left).for_each(|i| to.wrapping_add(left + i).write(*from.wrapping_add(i * apart)));
                }
            }
            to.wrapping_add(end).write_bytes(0, b.phase - end);
        }
    }
}

/// A row or a column of the image, `at` from where the padding begins.
fn inside(at: usize, origin: isize, count: usize) -> Option<usize> {
    usize::try_from(at as isize + origin).ok().filter(|at| *at < count)
}

impl Finish {
    /// The epilogue of neighbours, the bias apart, the first of them at an element of the result.
    ///
    /// # Safety
    /// The residual must be readable over as many where it is not null.
    #[inline(always)]
    unsafe fn vector<T: Number, const L: usize>(&self, sums: Lanes<T, L>, place: usize) -> Lanes<T, L> {
        let residual = self.residual.cast::<T>();
        let sums = match residual.is_null() {
            true => sums,
            // SAFETY: the caller's contract.
            false => sums.plus(unsafe { Lanes::read(residual.wrapping_add(place)) }),
        };
        // Of NaN it is 0.
        if self.relu { sums.map(|x| if x > T::default() { x } else { T::default() }) } else { sums }
    }
}
