//! Runs a convolution: packing, the loops over blocks, and calls of the register tiles.

use super::blocks::Runs;
use super::blueprint::{Blueprint, NONE, Part, Positions};
use super::finish::Finish;
use crate::codegen::abi::PanelArgs;
use crate::exec::code::{Code, Invoke};
use crate::exec::pack::Packed;
use crate::scalar::Float;
use crate::split::{Split, share};
use tilewright_ops::conv::Group;

/// Routines of one correlation.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) blueprint: Blueprint,
    code: Code,
    entries: Positions,
}

/// Addresses of one call, in memory of the elements' type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) gathered: *const u8,
    pub(crate) filter: *const u8,
    pub(crate) result: *mut u8,
    pub(crate) workspace: *mut u8,
    pub(crate) finish: Finish,
}

// SAFETY: every thread works on its own part of the result and of the workspace, except where packed filters are written, each
// panel by one thread; the rest is only read.
unsafe impl Sync for Call {}

impl Compiled {
    /// Prepares the routines: generated where the host can run them.
    ///
    /// # Errors
    /// The operating system's refusal of executable memory.
    pub(crate) fn new(blueprint: Blueprint) -> Result<Self, String> {
        let (tiles, positions) = blueprint.tiles();
        let (code, starts) = Code::new(tiles)?;
        Ok(Self::with(blueprint, code, (positions, &starts)))
    }

    /// The same without generated code.
    #[cfg(test)]
    pub(crate) fn portable(blueprint: Blueprint) -> Self {
        let (tiles, positions) = blueprint.tiles();
        let (code, starts) = Code::portable(tiles);
        Self::with(blueprint, code, (positions, &starts))
    }

    fn with(blueprint: Blueprint, code: Code, (mut entries, starts): (Positions, &[usize])) -> Self {
        let all = entries.as_flattened_mut().as_flattened_mut().as_flattened_mut();
        all.iter_mut().filter(|at| **at != NONE).for_each(|at| *at = starts[*at]);
        Self { blueprint, code, entries }
    }

    /// Computes everything.
    ///
    /// # Safety
    /// The tensors must be readable and the result writable over the extents of the input, the workspace over its size and
    /// aligned to 64 bytes, nobody else may touch the result or the workspace, and the host must have the plan's instruction
    /// set.
    pub(crate) unsafe fn run(&self, call: &Call) {
        let threads = self.blueprint.config.t;
        // SAFETY: the caller's contract; panels and parts of different threads do not overlap, and panels are complete before
        // any part reads them.
        unsafe {
            tilewright_threads::run(threads, &|thread| self.pack(thread, threads, call));
            tilewright_threads::run(threads, &|thread| match &self.code {
                #[cfg(target_arch = "x86_64")]
                Code::Native(code) => self.run_part(thread, call, code),
                Code::Portable(tiles) => self.run_part(thread, call, tiles),
            });
        }
    }

    /// Packs one thread's share of the filters.
    ///
    /// # Safety
    /// As for [`Compiled::run`].
    pub(crate) unsafe fn pack(&self, thread: usize, threads: usize, call: &Call) {
        // SAFETY: the caller's contract.
        unsafe {
            match self.blueprint.vector.float {
                Float::F32 => self.pack_as::<f32>(thread, threads, call),
                Float::F64 => self.pack_as::<f64>(thread, threads, call),
            }
        }
    }

    /// # Safety
    /// As for [`Compiled::run`]; `T` is the plan's element type.
    unsafe fn pack_as<T: Packed>(&self, thread: usize, threads: usize, call: &Call) {
        let b = &self.blueprint;
        let each = b.panels.count();
        for unit in share(&(0..each * b.of.groups.len()), thread, threads) {
            let (group, panel) = (unit / each, unit % each);
            let from = call.filter.cast::<T>().wrapping_add(b.of.groups[group].filter);
            let to = call.workspace.cast::<T>().wrapping_add(group * b.packed_len());
            // SAFETY: the caller's contract; generated code runs only on hosts with AVX2.
            unsafe { b.panels.pack(panel, from, to, self.code.is_native()) };
        }
    }

    /// Computes the part of one thread, its routines run by `runs`.
    ///
    /// # Safety
    /// As for [`Compiled::run`]; all panels must be packed.
    pub(crate) unsafe fn run_part(&self, thread: usize, call: &Call, runs: &impl Invoke) {
        let b = &self.blueprint;
        let part = b.part(thread);
        let mut worker = Worker::new(self, thread, &part, call, runs);
        for unit in part.units.clone() {
            let (group, block) = (unit / b.blocks.len(), unit % b.blocks.len());
            for k_block in 0..b.depth.tiles() {
                // SAFETY: the caller's contract.
                unsafe {
                    worker.fill(&b.of.groups[group], block, k_block);
                    worker.block(group, block, k_block);
                }
            }
            // SAFETY: the caller's contract; all sums of these outputs are complete.
            unsafe { worker.finish(group, block) };
        }
    }
}

/// One thread's view of a call.
struct Worker<'a, I> {
    compiled: &'a Compiled,
    runs: &'a I,
    call: &'a Call,
    part: &'a Part,
    args: PanelArgs,
    slab: *mut u8,
    staged: *mut u8,
    es: usize,
}

impl<'a, I: Invoke> Worker<'a, I> {
    fn new(compiled: &'a Compiled, thread: usize, part: &'a Part, call: &'a Call, runs: &'a I) -> Self {
        let b = &compiled.blueprint;
        let own = b.packed_bytes() + thread * (b.slab_bytes() + b.staged_bytes());
        let slab = call.workspace.wrapping_add(own);
        let staged = slab.wrapping_add(b.slab_bytes());
        Self { compiled, runs, call, part, args: PanelArgs::default(), slab, staged, es: b.es() }
    }

    /// Copies a block's channels to the slab, where there is one.
    ///
    /// # Safety
    /// As for [`Compiled::run`].
    unsafe fn fill(&self, group: &Group, block: usize, k_block: usize) {
        let b = &self.compiled.blueprint;
        let Some(slab) = &b.slab else { return };
        let what = (&b.blocks[block], &b.channels(k_block));
        let from = self.call.gathered.wrapping_add(group.gathered * self.es);
        // SAFETY: the caller's contract.
        unsafe {
            match b.vector.float {
                Float::F32 => slab.fill::<f32>(&b.of, what, from.cast(), self.slab.cast()),
                Float::F64 => slab.fill::<f64>(&b.of, what, from.cast(), self.slab.cast()),
            }
        }
    }

    /// Where the first step of the whole reduction would lie for the first position of a block.
    fn gathered(&self, group: &Group, block: usize, k_block: usize) -> *const u8 {
        let b = &self.compiled.blueprint;
        if b.slab.is_some() {
            let skipped = b.channels(k_block).start * b.from.channel;
            return self.slab.wrapping_sub(skipped * self.es);
        }
        let at = &b.blocks[block];
        let row = b.of.origin[0] as usize + at.rows.start * b.of.step[0];
        let place = row * b.from.row + b.of.origin[1] as usize * b.from.column;
        let first = group.gathered + at.images.start * b.from.image + place;
        self.call.gathered.wrapping_add(first * self.es)
    }

    /// Where the first position of a block is stored, of the first output.
    fn target(&self, group: &Group, block: usize) -> *mut u8 {
        let b = &self.compiled.blueprint;
        if b.staged.is_some() {
            return self.staged;
        }
        let (at, r) = (&b.blocks[block], &b.of.result);
        let first = group.result + at.images.start * r.image + at.rows.start * r.row;
        self.call.result.wrapping_add(first * self.es)
    }

    /// Computes a block of positions over a block of the reduction.
    ///
    /// # Safety
    /// As for [`Compiled::run`]; panels and slab must hold this block.
    unsafe fn block(&mut self, group: usize, block: usize, k_block: usize) {
        let compiled = self.compiled;
        let b = &compiled.blueprint;
        let (runs, split) = (b.runs[block].0, &b.splits[b.runs[block].1]);
        let depth = b.depth.size(k_block);
        (self.args.k_main, self.args.k_tail) = (depth / b.config.k_s, depth % b.config.k_s);
        self.args.table = b.table[b.depth.start(k_block)..].as_ptr();
        let tail = if b.along_outs() { b.outs.tail() } else { split.tail() };
        self.args.v_mask = [0; 8];
        self.args.v_mask.iter_mut().take(tail * self.es / 4).for_each(|word| *word = u32::MAX);
        let entries = &compiled.entries[b.runs[block].1];
        let of = &b.of.groups[group];
        let at = Places {
            panels: self.call.workspace.wrapping_add(group * b.packed_len() * self.es),
            from: self.gathered(of, block, k_block),
            to: self.target(of, block),
            runs,
            split,
            out: b.target().out,
            k_block,
            phase: usize::from(k_block > 0),
        };
        let (outs, along) = (self.part.outs.clone(), 0..split.tiles());
        if b.keeps_outs() {
            for out in outs {
                for (from, to) in runs.starts() {
                    for run in split.runs(along.clone()) {
                        self.place(&at, out, (from, to), run.first);
                        self.step_along(&at, split.units(run.kind) * split.unit);
                        // SAFETY: the caller's contract.
                        unsafe { self.tiles(run.count, entries[run.kind][b.outs.kind(out)][at.phase]) };
                    }
                }
            }
        } else {
            for (from, to) in runs.starts() {
                for tile in along.clone() {
                    for run in b.outs.runs(outs.clone()) {
                        self.place(&at, run.first, (from, to), tile);
                        self.step_outs(&at, b.outs.units(run.kind));
                        // SAFETY: the caller's contract.
                        unsafe { self.tiles(run.count, entries[split.kind(tile)][run.kind][at.phase]) };
                    }
                }
            }
        }
    }

    /// # Safety
    /// As for [`Compiled::run`]; the arguments must describe tiles of this routine.
    unsafe fn tiles(&mut self, count: usize, entry: usize) {
        debug_assert_ne!(entry, NONE);
        self.args.tiles = count;
        // SAFETY: the caller's contract.
        unsafe { self.runs.invoke(entry, &raw mut self.args) };
    }

    /// Sets the addresses of the first tile of a run.
    fn place(&mut self, at: &Places<'_>, out: usize, (from, to): (usize, usize), tile: usize) {
        let b = &self.compiled.blueprint;
        let along = at.split.start(tile);
        let panel = at.panels.wrapping_add(b.panels.at(at.k_block, out) * self.es).cast_const();
        let gathered = at.from.wrapping_add((from + along * at.runs.inner.from) * self.es);
        (self.args.v, self.args.s) = if b.along_outs() { (panel, gathered) } else { (gathered, panel) };
        let result = to + along * at.runs.inner.to + b.outs.start(out) * at.out;
        self.args.c = at.to.wrapping_add(result * self.es);
    }

    fn step_along(&mut self, at: &Places<'_>, positions: usize) {
        let gathered = (positions * at.runs.inner.from * self.es) as isize;
        (self.args.v_step, self.args.s_step) =
            if self.compiled.blueprint.along_outs() { (0, gathered) } else { (gathered, 0) };
        self.args.c_step = (positions * at.runs.inner.to * self.es) as isize;
    }

    fn step_outs(&mut self, at: &Places<'_>, units: usize) {
        let b = &self.compiled.blueprint;
        let panel = (b.panels.step(at.k_block, units) * self.es) as isize;
        (self.args.v_step, self.args.s_step) = if b.along_outs() { (panel, 0) } else { (0, panel) };
        self.args.c_step = (units * b.outs.unit * at.out * self.es) as isize;
    }

    /// Finishes the outputs of a block: brings them to their places, and does what the epilogue says.
    ///
    /// # Safety
    /// As for [`Compiled::run`]; the sums of the block must be complete.
    unsafe fn finish(&self, group: usize, block: usize) {
        let b = &self.compiled.blueprint;
        let staged = b.staged.is_some().then_some(self.staged.cast_const());
        let outs = b.outs.start(self.part.outs.start)..b.outs.start(self.part.outs.end).min(b.of.outs.count);
        // SAFETY: the caller's contract.
        unsafe {
            match b.vector.float {
                Float::F32 => self.call.finish.run::<f32>(b, (group, block), outs, self.call.result.cast(), staged),
                Float::F64 => self.call.finish.run::<f64>(b, (group, block), outs, self.call.result.cast(), staged),
            }
        }
    }
}

/// Where a block's operands lie.
struct Places<'a> {
    panels: *mut u8,
    from: *const u8,
    to: *mut u8,
    runs: Runs,
    /// What runs are cut by.
    split: &'a Split,
    /// Elements between outputs.
    out: usize,
    k_block: usize,
    phase: usize,
}
