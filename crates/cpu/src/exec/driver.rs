//! Runs a compiled plan: the loops over cache blocks, packing, and calls of the panel routines.

use std::ops::Range;

use super::memory::ExecBuffer;
use super::pack::{Packed, Panel, pack};
use crate::blueprint::{Blueprint, PHASES, Part};
use crate::codegen::abi::{PanelArgs, PanelFn};
use crate::geometry::Operand;
use crate::scalar::Float;
use crate::split::{KINDS, Split};

/// Generated code of one plan.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) blueprint: Blueprint,
    code: ExecBuffer,
    /// Offsets of the routines: kind of `v`, kind of `s`, phase.
    entries: [[[usize; PHASES]; KINDS]; KINDS],
}

/// Entry of a routine that no tile needs.
const NONE: usize = usize::MAX;

/// Routines start at this alignment, in bytes.
const ROUTINE_ALIGN: usize = 64;

/// Addresses and scalars of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) a: *const u8,
    pub(crate) b: *const u8,
    pub(crate) c: *mut u8,
    pub(crate) workspace: *mut u8,
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
}

/// Why code could not be made executable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompileError {
    #[error("encoding: {0}")]
    Encode(#[from] iced_x86::IcedError),
    #[error("executable memory: {0}")]
    Memory(#[from] std::io::Error),
}

impl Compiled {
    /// Generates the routines of all kinds of tiles that the plan has.
    ///
    /// # Errors
    /// The operating system's refusal of executable memory.
    pub(crate) fn new(blueprint: Blueprint) -> Result<Self, CompileError> {
        let mut code = Vec::new();
        let mut entries = [[[NONE; PHASES]; KINDS]; KINDS];
        for (v, by_v) in entries.iter_mut().enumerate() {
            for (s, by_s) in by_v.iter_mut().enumerate() {
                for (phase, entry) in by_s.iter_mut().enumerate() {
                    if let Some(tile) = blueprint.tile(v, s, phase) {
                        code.resize(code.len().next_multiple_of(ROUTINE_ALIGN), 0xcc);
                        *entry = code.len();
                        code.extend(tile.assemble()?);
                    }
                }
            }
        }
        Ok(Self { code: ExecBuffer::new(&code)?, blueprint, entries })
    }

    fn routine(&self, v: usize, s: usize, phase: usize) -> PanelFn {
        let entry = self.entries[v][s][phase];
        debug_assert_ne!(entry, NONE);
        // SAFETY: the entry is the start of a routine that the generator wrote with this signature.
        unsafe { std::mem::transmute::<*const u8, PanelFn>(self.code.at(entry)) }
    }

    /// Computes the part of one thread.
    ///
    /// # Safety
    /// The operands must be readable and C writable over the extents of the plan's geometry, the workspace
    /// over its size, aligned to 64 bytes, and no other thread may touch the part's C or the thread's share of
    /// the workspace. The host must have the plan's instruction set.
    pub(crate) unsafe fn run_part(&self, thread: usize, call: &Call) {
        let part = self.blueprint.part(thread);
        let mut worker = Worker::new(self, thread, &part, call);
        for s_block in self.blueprint.s_blocks(&part) {
            for k_block in part.k.clone() {
                // SAFETY: the caller's contract.
                unsafe { worker.pack_s(&s_block, k_block) };
                for v_block in self.blueprint.v_blocks(&part) {
                    // SAFETY: the caller's contract.
                    unsafe {
                        worker.pack_v(&v_block, k_block);
                        worker.block(&v_block, &s_block, k_block, k_block == part.k.start);
                    }
                }
            }
        }
    }
}

/// One thread's view of a call.
struct Worker<'a> {
    compiled: &'a Compiled,
    args: PanelArgs,
    v: *const u8,
    s: *const u8,
    c: *mut u8,
    /// Strides of the target in bytes.
    c_v: usize,
    c_s: usize,
    v_packed: *mut u8,
    s_packed: *mut u8,
    es: usize,
}

impl<'a> Worker<'a> {
    fn new(compiled: &'a Compiled, thread: usize, part: &Part, call: &Call) -> Self {
        let b = &compiled.blueprint;
        let es = b.geometry.float.bytes();
        let (v, s) = if b.frame.swapped { (call.b, call.a) } else { (call.a, call.b) };
        let own = b.v_buffer() + b.s_buffer();
        // Pointer arithmetic within the workspace (or a null workspace of size zero, never dereferenced).
        let v_packed = call.workspace.wrapping_add(thread * own);
        let s_packed = v_packed.wrapping_add(b.v_buffer());
        let slices = call.workspace.wrapping_add(b.threads() * own);
        let (c, c_v, c_s) = if b.reduces() {
            (slices.wrapping_add(part.slice * b.slice_bytes()), es, b.slice_stride() * es)
        } else {
            (call.c, b.frame.c_v * es, b.frame.c_s * es)
        };
        let mut v_mask = [0; 8];
        let words = if b.config.axis == crate::config::Axis::K { 0 } else { b.v.tail() * es / 4 };
        v_mask.iter_mut().take(words).for_each(|word| *word = u32::MAX);
        let args = PanelArgs {
            v: std::ptr::null(),
            s: std::ptr::null(),
            c: std::ptr::null_mut(),
            tiles: 0,
            v_step: 0,
            s_step: 0,
            c_step: 0,
            k_main: 0,
            k_tail: 0,
            ahead: 0,
            alpha: scalar_bits(b.geometry.float, call.alpha),
            beta: scalar_bits(b.geometry.float, call.beta),
            v_mask,
            k_mask: [0; 8],
        };
        Self { compiled, args, v, s, c, c_v, c_s, v_packed, s_packed, es }
    }

    /// # Safety
    /// As for [`Compiled::run_part`].
    unsafe fn pack_v(&self, block: &Range<usize>, k_block: usize) {
        let b = &self.compiled.blueprint;
        if b.pack_v {
            let source = Source { base: self.v, operand: b.frame.v, split: &b.v };
            // SAFETY: the caller's contract.
            unsafe { self.pack(&source, block, k_block, self.v_packed) };
        }
    }

    /// # Safety
    /// As for [`Compiled::run_part`].
    unsafe fn pack_s(&self, block: &Range<usize>, k_block: usize) {
        let b = &self.compiled.blueprint;
        if b.pack_s {
            let source = Source { base: self.s, operand: b.frame.s, split: &b.s };
            // SAFETY: the caller's contract.
            unsafe { self.pack(&source, block, k_block, self.s_packed) };
        }
    }

    /// # Safety
    /// As for [`Compiled::run_part`].
    unsafe fn pack(&self, source: &Source<'_>, block: &Range<usize>, k_block: usize, to: *mut u8) {
        let k = &self.compiled.blueprint.k;
        // SAFETY: the caller's contract; the workspace holds a whole block and its slack.
        unsafe {
            match self.compiled.blueprint.geometry.float {
                Float::F32 => source.pack::<f32>(block, k.start(k_block), k.size(k_block), to.cast()),
                Float::F64 => source.pack::<f64>(block, k.start(k_block), k.size(k_block), to.cast()),
            }
        }
    }

    /// Computes a cache block.
    ///
    /// # Safety
    /// As for [`Compiled::run_part`]; the packed operands must hold this block.
    unsafe fn block(&mut self, v_block: &Range<usize>, s_block: &Range<usize>, k_block: usize, first: bool) {
        let compiled = self.compiled;
        let b = &compiled.blueprint;
        let depth = b.k.size(k_block);
        self.args.k_main = depth / b.k.unit;
        self.args.k_tail = depth % b.k.unit;
        let phase = usize::from(!first);
        let (outer, inner) = if b.keeps_v() { (v_block, s_block) } else { (s_block, v_block) };
        let (outer_split, inner_split) = if b.keeps_v() { (&b.v, &b.s) } else { (&b.s, &b.v) };
        for tile in outer.clone() {
            let last = tile + 1 == outer.end;
            for kept in outer_split.runs(tile..tile + 1) {
                for run in inner_split.runs(inner.clone()) {
                    let (v, s) = if b.keeps_v() { (kept, run) } else { (run, kept) };
                    self.place(v.first, s.first, v_block, s_block, k_block);
                    let units = inner_split.units(run.kind) * inner_split.unit;
                    self.step(units, depth, tile, last);
                    self.args.tiles = run.count;
                    let routine = compiled.routine(v.kind, s.kind, phase);
                    // SAFETY: the arguments describe tiles within the caller's extents.
                    unsafe { routine(&raw const self.args) };
                }
            }
        }
    }

    /// Sets the addresses of the first tile of a run.
    fn place(&mut self, v: usize, s: usize, v_block: &Range<usize>, s_block: &Range<usize>, k_block: usize) {
        let b = &self.compiled.blueprint;
        let (depth, k) = (b.k.size(k_block), b.k.start(k_block));
        let (v_at, s_at) = (b.v.start(v), b.s.start(s));
        self.args.v = if b.pack_v {
            self.v_packed.wrapping_add((v_at - b.v.start(v_block.start)) * depth * self.es)
        } else {
            self.v.wrapping_add((v_at * b.frame.v.along + k * b.frame.v.step) * self.es)
        };
        self.args.s = if b.pack_s {
            self.s_packed.wrapping_add((s_at - b.s.start(s_block.start)) * depth * self.es)
        } else {
            self.s.wrapping_add((s_at * b.frame.s.along + k * b.frame.s.step) * self.es)
        };
        self.args.c = self.c.wrapping_add(v_at * self.c_v + s_at * self.c_s);
    }

    /// Sets the steps from tile to tile of a run whose tiles are `units` elements wide.
    fn step(&mut self, units: usize, depth: usize, outer: usize, last: bool) {
        let b = &self.compiled.blueprint;
        let width = |packed: bool, along: usize| (if packed { depth } else { along }) * units * self.es;
        if b.keeps_v() {
            self.args.v_step = 0;
            self.args.s_step = width(b.pack_s, b.frame.s.along) as isize;
            self.args.c_step = (units * self.c_s) as isize;
            let next = if last { 0 } else { b.v.start(outer + 1) - b.v.start(outer) };
            self.args.ahead = (next * b.frame.v.along * self.es) as isize;
        } else {
            self.args.v_step = width(b.pack_v, b.frame.v.along) as isize;
            self.args.s_step = 0;
            self.args.c_step = (units * self.c_v) as isize;
            self.args.ahead = self.args.v_step;
        }
    }
}

/// An operand in the caller's memory.
struct Source<'a> {
    base: *const u8,
    operand: Operand,
    split: &'a Split,
}

impl Source<'_> {
    /// Packs the tiles of a block, panel behind panel.
    ///
    /// # Safety
    /// The operand must be readable over its extent, `to` writable over the block and its slack.
    unsafe fn pack<T: Packed>(&self, block: &Range<usize>, k: usize, depth: usize, to: *mut T) {
        let base = self.base.cast::<T>();
        let origin = self.split.start(block.start);
        for tile in block.clone() {
            let at = self.split.start(tile);
            let panel = Panel {
                source: base.wrapping_add(at * self.operand.along + k * self.operand.step),
                along: self.operand.along,
                step: self.operand.step,
                valid: self.split.size(tile),
                width: self.split.start(tile + 1) - at,
                depth,
            };
            // SAFETY: the caller's contract; panels follow each other in ascending order.
            unsafe { pack(&panel, to.add((at - origin) * depth), true) };
        }
    }
}

/// A scalar in the element type, in the low bytes.
fn scalar_bits(float: Float, value: f64) -> u64 {
    match float {
        Float::F32 => u64::from((value as f32).to_bits()),
        Float::F64 => value.to_bits(),
    }
}
