//! Runs a compiled plan: the loops over cache blocks, packing, and calls of the panel routines.

use std::ops::Range;

use iced_x86::IcedError;

use super::code::{Code, Invoke, assemble};
use super::narrow::{self, FLIP, Side};
use super::pack::Block;
use super::three_m;
use crate::blueprint::{ALIGN, Blueprint, PHASES, Part, Place};
use crate::codegen::abi::PanelArgs;
use crate::codegen::complex;
use crate::codegen::tile::Tile;
use crate::geometry::Operand;
use crate::scalar::{Float, Numbers, Stored};
use crate::split::{KINDS, Split};

/// Routines of one plan.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) blueprint: Blueprint,
    code: Code,
    entries: Entries,
    /// Whether packing may use the host's vectors.
    simd: bool,
    ahead: Ahead,
}

/// What tiles prefetch for those that come later: found once, since a run of tiles past a panel is short.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    /// See [`Blueprint::far_lines`].
    far_lines: Option<usize>,
    /// Whether the next panel is walked over for packing.
    panel: bool,
    /// Bytes that a tile moves on by in the next block that is packed, and how many of the last panels of `s` take part.
    block: Option<(usize, usize)>,
}

impl Ahead {
    fn of(b: &Blueprint) -> Self {
        let block = b.walk_block().map(|walk| (walk.tile as usize, b.block_panels(walk)));
        let far_lines = b.far_lines().filter(|_| b.config.prefetch > 0);
        Self { far_lines, panel: b.walk_panel().is_some(), block }
    }
}

const PLACES: usize = Place::ALL.len();

/// Entry of a routine that no tile needs.
const NONE: usize = usize::MAX;

/// Where each routine starts: kind of `v`, kind of `s`, phase, place.
type Entries = [[[[usize; PLACES]; PHASES]; KINDS]; KINDS];

/// Every routine that the plan needs, and its position among them.
fn tiles(blueprint: &Blueprint) -> (Vec<Tile>, Entries) {
    let (mut tiles, mut positions) = (Vec::new(), [[[[NONE; PLACES]; PHASES]; KINDS]; KINDS]);
    for index in 0..KINDS * KINDS * PHASES * PLACES {
        let (rest, place) = (index / PLACES, Place::ALL[index % PLACES]);
        let (rest, phase) = (rest / PHASES, rest % PHASES);
        let (v, s) = (rest / KINDS, rest % KINDS);
        if let Some(tile) = blueprint.tile(v, s, phase, place) {
            positions[v][s][phase][place as usize] = tiles.len();
            tiles.push(tile);
        }
    }
    (tiles, positions)
}

/// Positions replaced by where the routines start.
fn entered(mut positions: Entries, starts: &[usize]) -> Entries {
    let all = positions.as_flattened_mut().as_flattened_mut().as_flattened_mut();
    all.iter_mut().filter(|at| **at != NONE).for_each(|at| *at = starts[*at]);
    positions
}

/// Machine code of all routines that the plan needs.
///
/// # Errors
/// The encoder's; a legal plan gives none.
pub(crate) fn generate(blueprint: &Blueprint) -> Result<(Vec<u8>, Entries), IcedError> {
    let (tiles, positions) = tiles(blueprint);
    let (code, starts) = assemble(&tiles)?;
    Ok((code, entered(positions, &starts)))
}

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

impl Call {
    /// The same, so many bytes further on in A, B and C.
    pub(crate) fn moved(&self, [a, b, c]: [usize; 3]) -> Self {
        Self { a: self.a.wrapping_add(a), b: self.b.wrapping_add(b), c: self.c.wrapping_add(c), ..*self }
    }
}

// SAFETY: every thread works on its own part of C and of the workspace; A and B are only read.
unsafe impl Sync for Call {}

impl Compiled {
    /// Prepares the routines of all kinds of tiles that the plan has: generated where the host can run them.
    ///
    /// # Errors
    /// The operating system's refusal of executable memory.
    pub(crate) fn new(blueprint: Blueprint) -> Result<Self, String> {
        let (tiles, positions) = tiles(&blueprint);
        let (code, starts) = Code::new(tiles)?;
        let ahead = Ahead::of(&blueprint);
        Ok(Self { entries: entered(positions, &starts), blueprint, simd: code.is_native(), code, ahead })
    }

    /// The same without generated code.
    #[cfg(test)]
    pub(crate) fn portable(blueprint: Blueprint) -> Self {
        let (tiles, positions) = tiles(&blueprint);
        let (code, starts) = Code::portable(tiles);
        let ahead = Ahead::of(&blueprint);
        Self { entries: entered(positions, &starts), blueprint, code, simd: false, ahead }
    }

    /// The generated code as assembly text, if there is any.
    pub(crate) fn listing(&self) -> Option<String> {
        match &self.code {
            #[cfg(target_arch = "x86_64")]
            Code::Native(_) => generate(&self.blueprint).ok().map(|(code, _)| crate::codegen::listing(&code)),
            Code::Portable(_) => None,
        }
    }

    fn entry(&self, v: usize, s: usize, phase: usize, place: Place) -> usize {
        let entry = self.entries[v][s][phase][place as usize];
        debug_assert_ne!(entry, NONE);
        entry
    }

    /// Computes the part of one thread.
    ///
    /// # Safety
    /// As for [`Compiled::run_part_with`], and the host must have the plan's instruction set.
    pub(crate) unsafe fn run_part(&self, thread: usize, call: &Call) {
        // SAFETY: the caller's contract.
        unsafe {
            match &self.code {
                #[cfg(target_arch = "x86_64")]
                Code::Native(code) => {
                    self.run_part_with(thread, call, code);
                    if self.blueprint.config.store == crate::config::Store::Stream {
                        // Non-temporal stores are weakly ordered: a caller's release store would not wait for them.
                        std::arch::x86_64::_mm_sfence();
                    }
                }
                Code::Portable(tiles) => self.run_part_with(thread, call, tiles),
            }
        }
    }

    /// Computes the part of one thread, its routines run by `runs`.
    ///
    /// # Safety
    /// The operands must be readable and C writable over the extents of the plan's input, the workspace
    /// over its size, aligned to 64 bytes, and no other thread may touch the part's C or the thread's share of
    /// the workspace.
    pub(crate) unsafe fn run_part_with(&self, thread: usize, call: &Call, runs: &impl Invoke) {
        let part = self.blueprint.part(thread);
        let mut worker = Worker::new(self, thread, &part, call, runs);
        for s_block in self.blueprint.s_blocks(&part) {
            for k_block in part.k.clone() {
                if !self.blueprint.packs_panels() {
                    // SAFETY: the caller's contract.
                    unsafe { worker.pack_s(&s_block, &s_block, k_block) };
                }
                for v_block in self.blueprint.v_blocks(&part) {
                    // SAFETY: the caller's contract.
                    unsafe {
                        worker.pack_v(&v_block, k_block);
                        worker.block(&v_block, &s_block, k_block, &part);
                    }
                }
            }
        }
    }
}

/// One thread's view of a call.
struct Worker<'a, I> {
    compiled: &'a Compiled,
    runs: &'a I,
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

impl<'a, I: Invoke> Worker<'a, I> {
    fn new(compiled: &'a Compiled, thread: usize, part: &Part, call: &Call, runs: &'a I) -> Self {
        let b = &compiled.blueprint;
        let es = b.es();
        let (v, s) = if b.frame.swapped { (call.b, call.a) } else { (call.a, call.b) };
        let own = b.v_buffer() + b.s_buffer();
        // Pointer arithmetic within the workspace (or a null workspace of size zero, never dereferenced).
        let v_packed = call.workspace.wrapping_add(thread * own);
        let s_packed = v_packed.wrapping_add(b.v_buffer());
        let slices = call.workspace.wrapping_add(b.threads() * own);
        let (c, c_v, c_s) = if b.reduces() {
            (slices.wrapping_add(part.slice * b.slice_bytes()), es, b.slice_stride() * es)
        } else {
            (call.c, b.frame.c_v * b.out_es(), b.frame.c_s * b.out_es())
        };
        let [direct, turned] = complex::factors(b.vector.float, call.alpha, b.conjugated());
        let args = PanelArgs {
            direct,
            turned,
            flip: if b.pack_s { 0 } else { FLIP.into() },
            weave: std::array::from_fn(|i| (i / 2 + i % 2 * 32) as u16),
            next: v,
            next_last: v,
            far: v,
            far_last: v,
            walk: v,
            packed: v_packed,
            alpha: scalar_bits(b.vector.float, call.alpha),
            beta: scalar_bits(b.vector.float, call.beta),
            ..PanelArgs::default()
        };
        Self { compiled, runs, args, v, s, c, c_v, c_s, v_packed, s_packed, es }
    }

    /// # Safety
    /// As for [`Compiled::run_part`].
    unsafe fn pack_v(&self, block: &Range<usize>, k_block: usize) {
        let b = &self.compiled.blueprint;
        if b.pack_v && !b.copies_v() {
            // SAFETY: the caller's contract.
            unsafe { self.pack((self.v, b.frame.v, &b.v), block, k_block, self.v_packed, Side::Vectors) };
        }
    }

    /// Packs tiles of a block of `s` to where they have their place.
    ///
    /// # Safety
    /// As for [`Compiled::run_part`].
    unsafe fn pack_s(&self, tiles: &Range<usize>, block: &Range<usize>, k_block: usize) {
        let b = &self.compiled.blueprint;
        if b.pack_s {
            let before = (b.s.start(tiles.start) - b.s.start(block.start)) * b.k.size(k_block);
            let to = self.s_packed.wrapping_add(before * b.packed_s_es());
            // SAFETY: the caller's contract.
            unsafe { self.pack((self.s, b.frame.s, &b.s), tiles, k_block, to, Side::Across) };
        }
    }

    /// Packs the tiles of a block of an operand in the caller's memory.
    ///
    /// # Safety
    /// As for [`Compiled::run_part`].
    unsafe fn pack(
        &self,
        (base, operand, split): (*const u8, Operand, &Split),
        tiles: &Range<usize>,
        k_block: usize,
        to: *mut u8,
        side: Side,
    ) {
        let b = &self.compiled.blueprint;
        let (depth, first) = (b.k.size(k_block), b.k.start(k_block) * b.stored.group());
        let source = base.wrapping_add(first * operand.step * b.source_es());
        let block = Block { source, operand, split, tiles: tiles.clone(), depth };
        // SAFETY: the caller's contract; the workspace holds a whole block, and vectors are used only where the host generates code, for which it
        // has AVX2 and F16C.
        unsafe {
            match self.es {
                _ if b.stored != Stored::Same => {
                    let deep = (depth * b.stored.group()).min(b.input.k - first);
                    narrow::pack(&block, deep, (b.stored, side), to.cast(), self.compiled.simd);
                }
                es if b.numbers == Numbers::ThreeM && side == Side::Across => {
                    let negative = b.conjugated()[1];
                    match es {
                        8 => three_m::pack::<f32>(&block, to.cast(), negative, self.compiled.simd),
                        _ => three_m::pack::<f64>(&block, to.cast(), negative, self.compiled.simd),
                    }
                }
                4 => block.pack::<f32>(to.cast(), self.compiled.simd),
                8 => block.pack::<f64>(to.cast(), self.compiled.simd),
                _ => block.pack::<[f64; 2]>(to.cast(), self.compiled.simd),
            }
        }
    }

    /// Computes a cache block.
    ///
    /// # Safety
    /// As for [`Compiled::run_part`]; the packed operands must hold this block.
    unsafe fn block(&mut self, v_block: &Range<usize>, s_block: &Range<usize>, k_block: usize, part: &Part) {
        let compiled = self.compiled;
        let b = &compiled.blueprint;
        let depth = b.k.size(k_block);
        self.args.k_main = depth / b.k.unit;
        self.args.k_tail = depth % b.k.unit;
        let phase = usize::from(k_block != part.k.start);
        let keeps_v = b.keeps_v();
        let (outer, inner) = if keeps_v { (v_block, s_block) } else { (s_block, v_block) };
        let (outer_split, inner_split) = if keeps_v { (&b.v, &b.s) } else { (&b.s, &b.v) };
        for tile in outer.clone() {
            let kept = outer_split.kind(tile);
            let mut place = if b.leads() { Place::Lead } else { Place::Follow };
            if b.packs_panels() {
                if v_block.start == part.v.start {
                    // SAFETY: the caller's contract; the panel's place holds nothing that is still needed.
                    unsafe { self.pack_s(&(tile..tile + 1), s_block, k_block) };
                }
                place = self.walk(tile, (v_block, s_block), k_block, part);
            }
            self.look_ahead(tile, outer, k_block);
            self.look_far(tile - outer.start, inner, k_block);
            for mut run in inner_split.runs(inner.clone()) {
                let (v_kind, s_kind) = if keeps_v { (kept, run.kind) } else { (run.kind, kept) };
                let is_turned = b.is_turned(v_kind);
                self.step(inner_split.units(run.kind) * inner_split.unit, depth);
                if is_turned {
                    std::mem::swap(&mut self.args.v_step, &mut self.args.s_step);
                }
                self.args.v_mask = b.mask(v_kind, s_kind);
                while run.count > 0 {
                    let (v, s) = if keeps_v { (tile, run.first) } else { (run.first, tile) };
                    let lead = place == Place::Lead;
                    self.place(v, s, v_block, s_block, k_block, lead);
                    if is_turned {
                        std::mem::swap(&mut self.args.v, &mut self.args.s);
                    }
                    self.args.tiles = if lead { 1 } else { run.count };
                    let entry = compiled.entry(v_kind, s_kind, phase, place);
                    // SAFETY: the arguments describe tiles within the caller's extents.
                    unsafe { self.runs.invoke(entry, &raw mut self.args) };
                    run.first += self.args.tiles;
                    run.count -= self.args.tiles;
                    if lead {
                        place = Place::Follow;
                    }
                }
            }
        }
    }

    /// Sets what the tiles of a panel of `s` prefetch for packing: the panel that comes next while panels are being packed, and at
    /// the end of a block of `v` the next one.
    fn walk(&mut self, panel: usize, blocks: (&Range<usize>, &Range<usize>), k_block: usize, part: &Part) -> Place {
        let b = &self.compiled.blueprint;
        let (v_block, s_block) = blocks;
        let at = |base: *const u8, operand: Operand, start: usize, k_block: usize| {
            base.wrapping_add(start * b.along_bytes(operand) + b.k.start(k_block) * b.step_bytes(operand))
        };
        if let Some((step, panels)) = self.compiled.ahead.block {
            let first = s_block.end.saturating_sub(panels).max(s_block.start);
            let next = if v_block.end < part.v.end {
                Some((v_block.end, k_block))
            } else {
                Some((part.v.start, k_block + 1)).filter(|_| k_block + 1 < part.k.end)
            };
            if let Some((tile, k_next)) = next.filter(|_| panel >= first) {
                let done = (panel - first) * v_block.len() * step;
                self.args.walk = at(self.v, b.frame.v, b.v.start(tile), k_next).wrapping_add(done);
                return Place::WalkBlock;
            }
        }
        if v_block.start == part.v.start && panel + 1 < s_block.end && self.compiled.ahead.panel {
            self.args.walk = at(self.s, b.frame.s, b.s.start(panel + 1), k_block);
            return Place::WalkPanel;
        }
        Place::Follow
    }

    /// Sets where the panel that stays next lies: the next tile, or the first one at the next block of k.
    fn look_ahead(&mut self, tile: usize, block: &Range<usize>, k_block: usize) {
        let b = &self.compiled.blueprint;
        let keeps_v = b.keeps_v();
        let (split, operand, base) = if keeps_v { (&b.v, b.frame.v, self.v) } else { (&b.s, b.frame.s, self.s) };
        let at = |tile: usize, k_block: usize| {
            split.start(tile) * b.along_bytes(operand) + b.k.start(k_block) * b.step_bytes(operand)
        };
        let more = tile + 1 < block.end || block.end < split.tiles();
        let (tile_next, k_next) = match (more, k_block + 1 < b.k.tiles()) {
            (true, _) => (tile + 1, k_block),
            (false, true) => (0, k_block + 1),
            (false, false) => (tile, k_block),
        };
        let next = at(tile_next, k_next);
        self.args.ahead = next as isize - at(tile, k_block) as isize;
        self.args.next = base.wrapping_add(next);
        let last = b.k.size(k_next) * b.rows(operand) - 1;
        self.args.next_last = self.args.next.wrapping_add(last * b.row_bytes(operand));
    }

    /// Sets which lines of the streaming operand's next block of k the tiles of the panel that stays prefetch.
    fn look_far(&mut self, panel: usize, block: &Range<usize>, k_block: usize) {
        let b = &self.compiled.blueprint;
        let Some(lines) = self.compiled.ahead.far_lines.filter(|_| k_block + 1 < b.k.tiles()) else {
            self.args.far_last = self.args.far;
            return;
        };
        let (split, operand, _) = b.streaming();
        let base = if b.keeps_v() { self.s } else { self.v };
        let row = (split.start(block.start) + b.k.start(k_block + 1) * operand.step) * self.es;
        self.args.far = base.wrapping_add(row + panel * lines * ALIGN);
        self.args.far_last = self.args.far.wrapping_add((b.k.size(k_block + 1) - 1) * operand.step * self.es);
    }

    /// Sets the addresses of the first tile of a run.
    fn place(
        &mut self,
        v: usize,
        s: usize,
        v_block: &Range<usize>,
        s_block: &Range<usize>,
        k_block: usize,
        lead: bool,
    ) {
        let b = &self.compiled.blueprint;
        let (depth, k) = (b.k.size(k_block), b.k.start(k_block));
        let (v_at, s_at) = (b.v.start(v), b.s.start(s));
        self.args.packed = self.v_packed;
        self.args.v = if b.pack_v && !(lead && b.copies_v()) {
            self.v_packed.wrapping_add((v_at - b.v.start(v_block.start)) * (b.numbers.head() + depth) * self.es)
        } else {
            self.v.wrapping_add(v_at * b.along_bytes(b.frame.v) + k * b.step_bytes(b.frame.v))
        };
        self.args.s = if b.pack_s {
            self.s_packed.wrapping_add((s_at - b.s.start(s_block.start)) * depth * b.packed_s_es())
        } else {
            self.s.wrapping_add(s_at * b.along_bytes(b.frame.s) + k * b.step_bytes(b.frame.s))
        };
        self.args.c = self.c.wrapping_add(v_at * self.c_v + s_at * self.c_s);
    }

    /// Sets the steps from tile to tile of a run whose tiles are `width` elements wide.
    fn step(&mut self, width: usize, depth: usize) {
        let b = &self.compiled.blueprint;
        let panel = |packed: bool, operand: Operand, (head, es): (usize, usize)| {
            (width * if packed { (head + depth) * es } else { b.along_bytes(operand) }) as isize
        };
        (self.args.v_step, self.args.s_step, self.args.c_step) = if b.keeps_v() {
            (0, panel(b.pack_s, b.frame.s, (0, b.packed_s_es())), (width * self.c_s) as isize)
        } else {
            (panel(b.pack_v, b.frame.v, (b.numbers.head(), self.es)), 0, (width * self.c_v) as isize)
        };
    }
}

/// A scalar in the element type, in the low bytes.
pub(crate) fn scalar_bits(float: Float, value: f64) -> u64 {
    match float {
        Float::F32 => u64::from((value as f32).to_bits()),
        Float::F64 => value.to_bits(),
    }
}
