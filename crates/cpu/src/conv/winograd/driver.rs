//! Runs Winograd's convolution: filters are transformed once a call, inputs and products block by block.

use super::super::driver::Call;
use super::super::finish::Row;
use super::super::lanes::{Lanes, Number, Work, with_vectors};
use super::blueprint::{Blueprint, NONE};
use super::transform::{square_of_filters, square_of_inputs, square_of_outputs};
use crate::codegen::abi::PanelArgs;
use crate::codegen::vector::Vector;
use crate::exec::code::{Code, Invoke};
use crate::exec::pack::Block;
use crate::geometry::Operand;
use crate::split::{KINDS, Split, share};
use std::ops::Range;
use tilewright_ops::conv::Strides;

/// Routines of a plan.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) blueprint: Blueprint,
    code: Code,
    /// By split, kind of tiles and kind of outputs.
    entries: Vec<[[usize; KINDS]; KINDS]>,
}

impl Compiled {
    /// Prepares the routines: generated where the host can run them.
    ///
    /// # Errors
    /// The operating system's refusal of executable memory.
    pub(super) fn new(blueprint: Blueprint) -> Result<Self, String> {
        let (tiles, mut entries) = blueprint.tiles();
        let (code, starts) = Code::new(tiles)?;
        let all = entries.as_flattened_mut().as_flattened_mut();
        all.iter_mut().filter(|at| **at != NONE).for_each(|at| *at = starts[*at]);
        Ok(Self { blueprint, code, entries })
    }

    /// The vectors, and whether they are the host's: code is native only where it has the plan's.
    fn native(&self) -> (Vector, bool) {
        (self.blueprint.vector, self.code.is_native())
    }

    /// Computes everything.
    ///
    /// # Safety
    /// The tensors must be readable and the result writable over the extents of the input, the workspace over its size and
    /// aligned to 64 bytes, nobody else may touch the result or the workspace, and the host must have the plan's instruction
    /// set.
    pub(super) unsafe fn run(&self, call: &Call) {
        let threads = self.blueprint.config.t;
        // SAFETY: the caller's contract; parts of different threads do not overlap, and filters are complete before any part reads
        // them.
        unsafe {
            tilewright_threads::run(threads, &|thread| {
                with_vectors(self.native(), &Filters { compiled: self, thread, call })
            });
            tilewright_threads::run(threads, &|thread| {
                with_vectors(self.native(), &Parts { compiled: self, thread, call })
            });
        }
    }
}

/// Transforms one thread's share of the filters.
struct Filters<'a> {
    compiled: &'a Compiled,
    thread: usize,
    call: &'a Call,
}

impl Work for Filters<'_> {
    #[inline(always)]
    unsafe fn run<T: Number, const L: usize>(&self) {
        // SAFETY: the caller's contract.
        unsafe { if self.compiled.blueprint.config.m == 2 { self.all::<T, L, 2>() } else { self.all::<T, L, 4>() } }
    }
}

impl Filters<'_> {
    /// # Safety
    /// As for [`Compiled::run`].
    #[inline(always)]
    unsafe fn all<T: Number, const L: usize, const M: usize>(&self) {
        let b = &self.compiled.blueprint;
        let (of, t) = (&b.of, M + 2);
        let each = b.outs.tiles();
        for unit in share(&(0..each * of.groups.len()), self.thread, b.config.t) {
            let (group, tile) = (unit / each, unit % each);
            let from = self.call.filter.cast::<T>().wrapping_add(of.groups[group].filter);
            let to = self.call.workspace.cast::<T>().wrapping_add(group * b.filters());
            let (first, width) = (b.outs.start(tile), b.outs.start(tile + 1) - b.outs.start(tile));
            let panel = to.wrapping_add(first * of.channels.count);
            for (channel, lane) in (0..of.channels.count).flat_map(|c| (0..width).step_by(L).map(move |l| (c, l))) {
                let mut filter = [[Lanes::<T, L>::zero(); 3]; 3];
                for tap in &of.taps {
                    for o in 0..L.min(of.outs.count.saturating_sub(first + lane)) {
                        let at = (first + lane + o) * of.outs.stride + channel * of.filter_channel + tap.filter;
                        // SAFETY: the caller's contract: an element of the group's filters.
                        filter[tap.at[0]][tap.at[1]].set(o, unsafe { *from.add(at) });
                    }
                }
                square_of_filters::<T, L, M>(&filter, |i, j, number| {
                    let at = (i * t + j) * b.panels() + channel * width + lane;
                    // SAFETY: the caller's contract: within the panel of this tile.
                    unsafe { number.write(panel.wrapping_add(at)) };
                });
            }
        }
    }
}

/// Computes the blocks of one thread.
struct Parts<'a> {
    compiled: &'a Compiled,
    thread: usize,
    call: &'a Call,
}

/// Tiles, and vectors of each by their first elements.
#[inline(always)]
fn pairs(tiles: usize, vectors: usize, lanes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..tiles).flat_map(move |tile| (0..vectors).map(move |vector| (tile, vector * lanes)))
}

/// A thread's memory.
#[derive(Clone, Copy)]
struct Memory<T> {
    /// Inputs of a row of tiles: places, channels side by side.
    inputs: *mut T,
    /// Transformed inputs: numbers of the tile, tiles, channels.
    transformed: *mut T,
    /// Products: numbers of the tile, tiles, outputs.
    products: *mut T,
    /// Outputs of a row of tiles: places, outputs side by side.
    outputs: *mut T,
}

impl Work for Parts<'_> {
    #[inline(always)]
    unsafe fn run<T: Number, const L: usize>(&self) {
        // SAFETY: the caller's contract.
        unsafe { if self.compiled.blueprint.config.m == 2 { self.all::<T, L, 2>() } else { self.all::<T, L, 4>() } }
    }
}

impl Parts<'_> {
    /// # Safety
    /// As for [`Compiled::run`].
    #[inline(always)]
    unsafe fn all<T: Number, const L: usize, const M: usize>(&self) {
        let b = &self.compiled.blueprint;
        let memory = self.memory::<T>();
        let units = share(&(0..b.of.groups.len() * b.blocks.len()), self.thread, b.config.t);
        for unit in units {
            let (group, block) = (unit / b.blocks.len(), &b.blocks[unit % b.blocks.len()]);
            // SAFETY: the caller's contract.
            unsafe {
                for (at, row) in block.clone().enumerate() {
                    self.gather(group, row, memory.inputs);
                    self.transform::<T, L, M>(at, &memory);
                }
                self.multiply(group, block, &memory);
                for (at, row) in block.clone().enumerate() {
                    self.restore::<T, L, M>(at, &memory);
                    self.store(group, row, memory.outputs);
                }
            }
        }
    }

    fn memory<T>(&self) -> Memory<T> {
        let b = &self.compiled.blueprint;
        let own = b.packed_bytes() + self.thread * b.thread_bytes();
        let mut at = self.call.workspace.wrapping_add(own);
        let [inputs, transformed, products, outputs] = b.parts().map(|elements| {
            let this = at;
            at = at.wrapping_add(b.bytes(elements));
            this.cast::<T>()
        });
        Memory { inputs, transformed, products, outputs }
    }

    /// Brings the inputs of a row of tiles together, channels side by side, with zeros around the image.
    ///
    /// # Safety
    /// As for [`Compiled::run`].
    #[inline(always)]
    unsafe fn gather<T: Number>(&self, group: usize, row: usize, to: *mut T) {
        let b = &self.compiled.blueprint;
        let (of, width) = (&b.of, b.channels);
        let (image, first) = (row / b.grid[0], row % b.grid[0] * b.config.m);
        let base = of.groups[group].gathered + image * of.images.stride;
        let from = self.call.gathered.cast::<T>().wrapping_add(base);
        let left = (-of.origin[1]).clamp(0, b.columns() as isize) as usize;
        let end = (of.columns.count as isize - of.origin[1]).clamp(left as isize, b.columns() as isize) as usize;
        let channels = Split::new(of.channels.count, width, 1);
        for r in 0..b.t() {
            let to = to.wrapping_add(r * b.columns() * width);
            let at = of.origin[0] + (first + r) as isize;
            let inside = usize::try_from(at).ok().filter(|at| *at < of.rows.count);
            let (left, end) = if inside.is_some() { (left, end) } else { (b.columns(), b.columns()) };
            // SAFETY: the caller's contract; columns `left..end` are inside of the image.
            unsafe {
                to.write_bytes(0, left * width);
                if let Some(row) = inside {
                    let first = (of.origin[1] + left as isize) as usize;
                    let source = from.wrapping_add(row * of.rows.stride + first * of.columns.stride).cast();
                    let operand = Operand { along: of.channels.stride, step: of.columns.stride };
                    let block = Block { source, operand, split: &channels, tiles: 0..1, depth: end - left };
                    block.pack(to.wrapping_add(left * width), self.compiled.code.is_native());
                }
                to.wrapping_add(end * width).write_bytes(0, (b.columns() - end) * width);
            }
        }
    }

    /// Transforms the inputs of a row of tiles, the `at`-th of its block.
    ///
    /// # Safety
    /// As for [`Compiled::run`].
    #[inline(always)]
    unsafe fn transform<T: Number, const L: usize, const M: usize>(&self, at: usize, memory: &Memory<T>) {
        let b = &self.compiled.blueprint;
        let (t, width) = (M + 2, b.channels);
        for (tile, channel) in pairs(b.grid[1], width / L, L) {
            let read = |i: usize, j: usize| {
                let place = i * b.columns() + tile * M + j;
                // SAFETY: the caller's contract: within the row's inputs.
                unsafe { Lanes::read(memory.inputs.wrapping_add(place * width + channel)) }
            };
            square_of_inputs::<T, L, M>(read, |i, j, number| {
                let to = ((i * t + j) * b.most + at * b.grid[1] + tile) * width + channel;
                // SAFETY: the caller's contract: within the block's transformed inputs.
                unsafe { number.write(memory.transformed.wrapping_add(to)) };
            });
        }
    }

    /// Multiplies transformed inputs and filters of a block, number by number of the tile.
    ///
    /// # Safety
    /// As for [`Compiled::run`].
    unsafe fn multiply<T: Number>(&self, group: usize, block: &Range<usize>, memory: &Memory<T>) {
        match &self.compiled.code {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the caller's contract.
            Code::Native(code) => unsafe { self.multiply_with(group, block, memory, code) },
            // SAFETY: the caller's contract.
            Code::Portable(tiles) => unsafe { self.multiply_with(group, block, memory, tiles) },
        }
    }

    /// # Safety
    /// As for [`Compiled::run`].
    unsafe fn multiply_with<T: Number>(
        &self,
        group: usize,
        block: &Range<usize>,
        memory: &Memory<T>,
        runs: &impl Invoke,
    ) {
        let b = &self.compiled.blueprint;
        let at = b.split(block);
        let (split, entries) = (&b.splits[at], &self.compiled.entries[at]);
        let (depth, es) = (b.of.channels.count, b.es());
        let filters = self.call.workspace.cast::<T>().wrapping_add(group * b.filters());
        let mut args = PanelArgs { k_main: depth / b.config.k_s, k_tail: depth % b.config.k_s, ..PanelArgs::default() };
        for number in 0..b.t() * b.t() {
            let v = filters.wrapping_add(number * b.panels());
            let s = memory.transformed.wrapping_add(number * b.most * b.channels);
            let c = memory.products.wrapping_add(number * b.most * b.out_width);
            let place = |args: &mut PanelArgs, out: usize, tile: usize| {
                let (out, tile) = (b.outs.start(out), split.start(tile));
                args.v = v.wrapping_add(out * depth).cast::<u8>();
                args.s = s.wrapping_add(tile * b.channels).cast::<u8>();
                args.c = c.wrapping_add(tile * b.out_width + out).cast::<u8>();
            };
            if b.config.keeps_v {
                for out in 0..b.outs.tiles() {
                    for run in split.runs(0..split.tiles()) {
                        place(&mut args, out, run.first);
                        let units = split.units(run.kind);
                        (args.v_step, args.s_step) = (0, (units * b.channels * es) as isize);
                        (args.c_step, args.tiles) = ((units * b.out_width * es) as isize, run.count);
                        // SAFETY: the caller's contract: tiles of this block.
                        unsafe { runs.invoke(entries[run.kind][b.outs.kind(out)], &raw mut args) };
                    }
                }
            } else {
                for tile in 0..split.tiles() {
                    for run in b.outs.runs(0..b.outs.tiles()) {
                        place(&mut args, run.first, tile);
                        let units = b.outs.units(run.kind) * b.outs.unit;
                        (args.v_step, args.s_step) = ((units * depth * es) as isize, 0);
                        (args.c_step, args.tiles) = ((units * es) as isize, run.count);
                        // SAFETY: the caller's contract: tiles of this block.
                        unsafe { runs.invoke(entries[split.kind(tile)][run.kind], &raw mut args) };
                    }
                }
            }
        }
    }

    /// Transforms products to the outputs of a row of tiles, the `at`-th of its block.
    ///
    /// # Safety
    /// As for [`Compiled::run`].
    #[inline(always)]
    unsafe fn restore<T: Number, const L: usize, const M: usize>(&self, at: usize, memory: &Memory<T>) {
        let b = &self.compiled.blueprint;
        let (t, m, width) = (M + 2, M, b.out_width);
        for (tile, out) in pairs(b.grid[1], width / L, L) {
            let read = |i: usize, j: usize| {
                let from = ((i * t + j) * b.most + at * b.grid[1] + tile) * width + out;
                // SAFETY: the caller's contract: within the block's products.
                unsafe { Lanes::read(memory.products.wrapping_add(from)) }
            };
            square_of_outputs::<T, L, M>(read, |i, j, number| {
                let place = i * b.grid[1] * m + tile * m + j;
                // SAFETY: the caller's contract: within the row's outputs.
                unsafe { number.write(memory.outputs.wrapping_add(place * width + out)) };
            });
        }
    }

    /// Brings the outputs of a row of tiles to their places.
    ///
    /// # Safety
    /// As for [`Compiled::run`].
    unsafe fn store<T: Number>(&self, group: usize, row: usize, from: *const T) {
        let b = &self.compiled.blueprint;
        let (of, m, width) = (&b.of, b.config.m, b.out_width);
        let (image, first) = (row / b.grid[0], row % b.grid[0] * m);
        let own = Strides { image: 0, row: 0, column: width, out: 1 };
        for i in 0..m.min(of.grid[0] - first) {
            let to = of.groups[group].result + image * of.result.image + (first + i) * of.result.row;
            let row = Row { from: i * b.grid[1] * m * width, to, count: of.grid[1], own, strides: of.result };
            let outs = (&(0..of.outs.count), group * of.outs.count);
            // SAFETY: the caller's contract: rows of this block.
            unsafe { self.call.finish.row(&row, outs, self.call.result.cast(), Some(from)) };
        }
    }
}
