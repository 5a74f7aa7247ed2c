//! Runs depthwise convolutions: blocks of rows of a plane at a time, or a row of all channels.
//!
//! What lies in the padding is multiplied like everything else, as zeros: the reference does, and a filter may hold an infinity.

use super::super::driver::Call;
use super::blueprint::Blueprint;
use super::registers::{Register, Work, with_registers};
use super::tile::{Filters, Tap, sums};
use crate::codegen::vector::Vector;
use crate::split::share;
use std::ops::Range;

/// Computes everything.
///
/// # Safety
/// The tensors must be readable and the result writable over the extents of the input, the workspace over its size and aligned to 64
/// bytes, nobody else may touch the result or the workspace, and the host must have the plan's vectors.
pub(super) unsafe fn run(blueprint: &Blueprint, call: &Call) {
    tilewright_threads::run(blueprint.config.t, &|thread| {
        let parts = Parts { b: blueprint, thread, call };
        // SAFETY: the caller's contract; parts of different threads do not overlap.
        unsafe {
            match (blueprint.config.lines, blueprint.config.vectors) {
                // Tiles are for registers, of which single elements have none to spare.
                _ if !parts.native().1 => parts.with::<1, 1>(),
                (8, 2) => parts.with::<8, 2>(),
                (8, _) => parts.with::<8, 1>(),
                (4, 4) => parts.with::<4, 4>(),
                (4, 2) => parts.with::<4, 2>(),
                (4, _) => parts.with::<4, 1>(),
                (2, 4) => parts.with::<2, 4>(),
                (2, 2) => parts.with::<2, 2>(),
                (2, _) => parts.with::<2, 1>(),
                (_, 4) => parts.with::<1, 4>(),
                (_, 2) => parts.with::<1, 2>(),
                _ => parts.with::<1, 1>(),
            }
        }
    });
}

/// The work of one thread.
pub(super) struct Parts<'a> {
    pub(super) b: &'a Blueprint,
    thread: usize,
    pub(super) call: &'a Call,
}

/// The work of one thread by tiles of `Q` outputs of `V` vectors: each size is a function of its own, which compiles in a moment; one
/// function of all sizes took the compiler minutes.
struct Tiles<'a, const Q: usize, const V: usize>(&'a Parts<'a>);

impl<const Q: usize, const V: usize> Work for Tiles<'_, Q, V> {
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn run<X: Register>(&self) {
        // A copy, which results that are written cannot have changed: its fields stay in registers.
        let call = *self.0.call;
        let parts = Parts { call: &call, ..*self.0 };
        // SAFETY: the caller's contract.
        unsafe { if X::COUNT == 1 { parts.all::<X, 1, 1>() } else { parts.all::<X, Q, V>() } }
    }
}

/// Rows that are brought together for a block of outputs: see [`Parts::bring`].
struct Bring<'a> {
    parts: &'a Parts<'a>,
    image: usize,
    group: usize,
    outputs: &'a Range<usize>,
    rows: *mut u8,
}

impl Work for Bring<'_> {
    /// # Safety
    /// As for [`Parts::bring`].
    #[inline(always)]
    unsafe fn run<X: Register>(&self) {
        // SAFETY: the caller's contract.
        unsafe { self.parts.bring::<X>(self.image, self.group, self.outputs, self.rows.cast()) };
    }
}

impl Parts<'_> {
    /// The plan's vectors, and whether the host computes with them.
    fn native(&self) -> (Vector, bool) {
        (self.b.vector, self.call.finish.simd)
    }

    /// # Safety
    /// As for [`run`].
    unsafe fn with<const Q: usize, const V: usize>(&self) {
        // SAFETY: the caller's contract.
        unsafe { with_registers(self.native(), &Tiles::<Q, V>(self)) };
    }

    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn all<X: Register, const Q: usize, const V: usize>(&self) {
        let units = share(&(0..self.b.units()), self.thread, self.b.config.t);
        let [filters, rows] =
            self.b.own(self.thread).map(|at| self.call.workspace.wrapping_add(at).cast::<X::Element>());
        let mut taps = Vec::with_capacity(self.b.taps.len());
        // No closures from here on: they are functions of their own, without the instructions that this one is compiled for.
        // SAFETY: the caller's contract; filters and rows are this thread's parts of the workspace. All bits of zero are 0.
        unsafe {
            rows.write_bytes(0, self.b.parts()[1]);
            if self.b.channels_first {
                self.pack(filters);
                for unit in units {
                    self.row::<X, Q, V>(unit, filters, rows, &mut taps);
                }
            } else {
                self.b.staged_taps(rows, &mut taps);
                for unit in units {
                    self.block::<X, Q, V>(unit, filters, rows, &taps);
                }
            }
        }
    }

    /// Brings the filters of all channels together, channels side by side.
    ///
    /// # Safety
    /// As for [`run`], and the filters must be writable.
    unsafe fn pack<T: Copy>(&self, filters: *mut T) {
        let of = &self.b.of;
        let from = self.call.filter.cast::<T>();
        for (number, tap) in of.taps.iter().enumerate() {
            for (g, group) in of.groups.iter().enumerate() {
                // SAFETY: the caller's contract: an element of the filters, and one of as many as there are.
                unsafe { *filters.add(number * self.b.channels() + g) = *from.add(group.filter + tap.filter) };
            }
        }
    }

    /// A row of outputs of all channels; `zeros` stand for what lies in the padding.
    ///
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn row<X: Register, const Q: usize, const V: usize>(
        &self,
        unit: usize,
        filters: *const X::Element,
        zeros: *const X::Element,
        taps: &mut Vec<Tap<X::Element>>,
    ) {
        let (of, inner) = (&self.b.of, &self.b.inner);
        let (image, p) = (unit / of.grid[0], unit % of.grid[0]);
        let image_at = of.groups[0].gathered + image * of.images.stride;
        let from = self.call.gathered.cast::<X::Element>().wrapping_add(image_at);
        let to = of.groups[0].result + image * of.result.image + p * of.result.row;
        // SAFETY: the caller's contract.
        unsafe {
            for q in (0..inner.start).chain(inner.end..of.grid[1]) {
                self.b.taps_of(p, Some(q), (from, zeros), taps);
                self.channels::<X, 1, V>(taps, filters, 0, to + q * of.result.column);
            }
            self.b.taps_of(p, None, (from, zeros), taps);
            let mut q = inner.start;
            while q < inner.end {
                let place = |q| to + q * of.result.column;
                if inner.len() >= Q {
                    // Some are computed twice at the end, which is quicker than one by one.
                    q = q.min(inner.end - Q);
                    self.channels::<X, Q, V>(taps, filters, q, place(q));
                    q += Q;
                } else {
                    self.channels::<X, 1, V>(taps, filters, q, place(q));
                    q += 1;
                }
            }
        }
    }

    /// `Q` columns of outputs of all channels.
    ///
    /// # Safety
    /// As for [`run`]; taps must be those of the columns, of which the first is `q` columns from where they are.
    #[inline(always)]
    unsafe fn channels<X: Register, const Q: usize, const V: usize>(
        &self,
        taps: &[Tap<X::Element>],
        filters: *const X::Element,
        q: usize,
        to: usize,
    ) {
        let count = self.b.of.groups.len();
        let mut channel = 0;
        // SAFETY: the caller's contract: channels from `channel` on that there are.
        unsafe {
            while channel + V * X::COUNT <= count {
                self.channels_at::<X, Q, V, true>(taps, filters, (q, channel), to);
                channel += V * X::COUNT;
            }
            while channel + X::COUNT <= count {
                self.channels_at::<X, Q, 1, true>(taps, filters, (q, channel), to);
                channel += X::COUNT;
            }
            if channel < count {
                self.channels_at::<X, Q, 1, false>(taps, filters, (q, channel), to);
            }
        }
    }

    /// `Q` columns of outputs of `V` vectors of channels, or where they are not `WHOLE` of those that are left.
    ///
    /// # Safety
    /// As for [`Parts::channels`].
    #[inline(always)]
    unsafe fn channels_at<X: Register, const Q: usize, const V: usize, const WHOLE: bool>(
        &self,
        taps: &[Tap<X::Element>],
        filters: *const X::Element,
        (q, channel): (usize, usize),
        to: usize,
    ) {
        let left = self.b.of.groups.len() - channel;
        let filters = Filters { from: filters.wrapping_add(channel), step: self.b.channels() };
        let bias = self.call.finish.bias.cast::<X::Element>();
        // SAFETY: the caller's contract: channels of places within the image or of zeros, of filters, of outputs and of the bias.
        unsafe {
            let mut sums = sums::<X, Q, V, WHOLE, false>(taps, &filters, (q, channel), left);
            if !bias.is_null() {
                for v in 0..V {
                    let at = bias.wrapping_add(channel + v * X::COUNT);
                    let bias = if WHOLE { X::read(at) } else { X::read_some(at, left) };
                    for line in &mut sums {
                        line[v] = line[v].plus(bias);
                    }
                }
            }
            // Arrays that are moved to be taken apart go through memory.
            for (j, line) in sums.iter().enumerate() {
                for (v, &sum) in line.iter().enumerate() {
                    let place = to + j * self.b.of.result.column + channel + v * X::COUNT;
                    self.put(sum, place, (1, if WHOLE { X::COUNT } else { left }));
                }
            }
        }
    }

    /// A block of rows of outputs of a plane.
    ///
    /// # Safety
    /// As for [`run`]; filters and rows must be writable, and taps those of the rows.
    #[inline(always)]
    unsafe fn block<X: Register, const Q: usize, const V: usize>(
        &self,
        unit: usize,
        filters: *mut X::Element,
        rows: *mut X::Element,
        taps: &[Tap<X::Element>],
    ) {
        let (b, of) = (self.b, &self.b.of);
        let (plane, block) = (unit / b.blocks, unit % b.blocks);
        let (image, group) = (plane / of.groups.len(), plane % of.groups.len());
        let outputs = share(&(0..of.grid[0]), block, b.blocks);
        let to = of.groups[group].result + image * of.result.image + outputs.start * of.result.row;
        // SAFETY: the caller's contract.
        unsafe {
            for (number, tap) in of.taps.iter().enumerate() {
                let from = self.call.filter.cast::<X::Element>().wrapping_add(of.groups[group].filter + tap.filter);
                *filters.add(number) = *from;
            }
            let bring = Bring { parts: self, image, group, outputs: &outputs, rows: rows.cast() };
            with_registers(self.native(), &bring);
            let mut row = 0;
            while row + Q <= outputs.len() {
                self.columns::<X, Q, V>((group, row, to), filters, taps);
                row += Q;
            }
            while row < outputs.len() {
                self.columns::<X, 1, V>((group, row, to), filters, taps);
                row += 1;
            }
        }
    }

    /// `Q` rows of outputs.
    ///
    /// # Safety
    /// As for [`Parts::block`]; the rows must have been brought.
    #[inline(always)]
    unsafe fn columns<X: Register, const Q: usize, const V: usize>(
        &self,
        (group, row, to): (usize, usize, usize),
        filters: *const X::Element,
        taps: &[Tap<X::Element>],
    ) {
        let count = self.b.of.grid[1];
        let mut q = 0;
        // SAFETY: the caller's contract.
        unsafe {
            while q + (V - 1) * X::COUNT < count {
                self.columns_at::<X, Q, V>((group, row, q), to, filters, taps);
                q += V * X::COUNT;
            }
            while q < count {
                self.columns_at::<X, Q, 1>((group, row, q), to, filters, taps);
                q += X::COUNT;
            }
        }
    }

    /// `Q` rows of outputs of `V` vectors of columns, the last of which need not be there.
    ///
    /// # Safety
    /// As for [`Parts::columns`].
    #[inline(always)]
    unsafe fn columns_at<X: Register, const Q: usize, const V: usize>(
        &self,
        (group, row, q): (usize, usize, usize),
        to: usize,
        filters: *const X::Element,
        taps: &[Tap<X::Element>],
    ) {
        let of = &self.b.of;
        let filters = Filters { from: filters, step: 1 };
        let bias = self.call.finish.bias.cast::<X::Element>();
        // SAFETY: the caller's contract: rows that were brought, which end with as many columns as vectors overrun; a number of the
        // bias; columns of the result that there are.
        unsafe {
            let sums = sums::<X, Q, V, true, true>(taps, &filters, (row, q), 0);
            let bias = X::all(if bias.is_null() { X::Element::default() } else { *bias.add(group) });
            for (j, line) in sums.iter().enumerate() {
                for (v, &sum) in line.iter().enumerate() {
                    let q = q + v * X::COUNT;
                    let place = to + (row + j) * of.result.row + q * of.result.column;
                    self.put(sum.plus(bias), place, (of.result.column, of.grid[1] - q));
                }
            }
        }
    }
}
