//! Everything derived from an input and a configuration: the legality rules, the generator and the driver
//! read the same values.

pub(crate) mod edge;
mod walks;

use std::ops::Range;

use crate::codegen::tile::{Gathered, Loaded, March, Next, Tile, TilePrefetch, TileStore};
use crate::codegen::vector::{Vector, Width};
use crate::config::{GemmConfig, Order, Store};
use crate::geometry::{Frame, Operand};
use crate::scalar::{Float, Kind, Numbers, Stored};
use crate::split::{Split, pieces, share};
use tilewright_core::dtype::DType;
use tilewright_ops::gemm::{GemmInput, ScalarClass};

/// Alignment of every part of the workspace, in bytes.
pub(crate) const ALIGN: usize = 64;

/// Most bytes of a block of k that are prefetched ahead of their use: a share of a second-level cache.
pub(crate) const FAR_BYTES: usize = 192 << 10;

/// A block of k is first or later for its tile of C.
pub(crate) const PHASES: usize = 2;

/// What a tile does beside its own work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The first that uses the panel that stays: it copies it, or prefetches the next.
    Lead,
    Follow,
    /// Prefetches the panel of `s` that is packed next.
    WalkPanel,
    /// Prefetches the block of `v` that is packed next.
    WalkBlock,
}

impl Place {
    pub(crate) const ALL: [Self; 4] = [Self::Follow, Self::Lead, Self::WalkPanel, Self::WalkBlock];
}

/// Derived values of one plan.
#[derive(Clone, Debug)]
pub(crate) struct Blueprint {
    pub(crate) input: GemmInput,
    pub(crate) config: GemmConfig,
    pub(crate) frame: Frame,
    pub(crate) vector: Vector,
    pub(crate) numbers: Numbers,
    pub(crate) stored: Stored,
    pub(crate) pack_v: bool,
    pub(crate) pack_s: bool,
    pub(crate) v: Split,
    pub(crate) s: Split,
    pub(crate) k: Split,
    /// Tiles of a cache block: along `v` as many as fit (a packed block of `v` has a place in a cache), along `s` as many
    /// as cover it (a second block would mean a second pass over `v`).
    pub(crate) v_block: usize,
    pub(crate) s_block: usize,
    pub(crate) v_threads: usize,
    pub(crate) s_threads: usize,
}

/// The part of the problem that one thread computes, in tiles, and in blocks of k.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) v: Range<usize>,
    pub(crate) s: Range<usize>,
    pub(crate) k: Range<usize>,
    pub(crate) slice: usize,
}

impl Blueprint {
    /// Derives the values; the configuration must be legal for the input in the space of this kind, and have register tiles of so many
    /// vectors, which have instructions for narrow operands or not.
    pub(crate) fn new(input: GemmInput, config: GemmConfig, vectors: usize, (kind, native): (Kind, bool)) -> Self {
        let frame = Frame::of(&input, config.axis);
        let width = Width::from_bytes(config.vec as usize).unwrap_or(Width::X);
        let vector = Vector { width, float: Float::of(input.dtype()) };
        let c = &config;
        let (m, n) = ((c.m_s, c.m_l, c.t_m, c.pack_a), (c.n_s, c.n_l, c.t_n, c.pack_b));
        let (v, s) = if frame.swapped { (n, m) } else { (m, n) };
        let (numbers, stored) = (Numbers::of(input.dtype(), kind, native), Stored::of(input.dtype(), native));
        let lanes = vector.lanes() / numbers.parts();
        let (k_s, k_g) = (c.k_s as usize, c.k_g as usize);
        let steps = (c.u as usize / k_s).max(1);
        let mut blueprint = Self {
            frame,
            vector,
            numbers,
            stored,
            pack_v: v.3,
            pack_s: s.3,
            v: Split::new(frame.v_len, lanes, vectors),
            s: Split::new(frame.s_len, 1, s.0 as usize),
            k: Split::into_multiple(input.k.div_ceil(stored.group()), k_s, steps, k_g),
            v_block: (v.1 / v.0).max(1) as usize,
            s_block: s.1.div_ceil(s.0).max(1) as usize,
            v_threads: v.2 as usize,
            s_threads: s.2 as usize,
            config,
            input,
        };
        if blueprint.turns_edge() {
            blueprint.v = blueprint.v.with_edge(vectors);
            // A block that a thread's other tiles fill takes the edge too: a second block would mean a second pass over `s`. A thread without
            // an edge may have a tile more in it then.
            let most = blueprint.v.tiles().div_ceil(blueprint.v_threads);
            blueprint.v_block += usize::from(most == blueprint.v_block + 1);
        }
        blueprint
    }

    pub(crate) fn threads(&self) -> usize {
        self.v_threads * self.s_threads * self.config.k_g as usize
    }

    /// Whether slices of k are summed through the workspace, of which there is one where C has fewer bits than sums and
    /// tiles do not round them.
    pub(crate) fn reduces(&self) -> bool {
        let is_narrow = matches!(self.input.types.output, DType::F16 | DType::Bf16);
        self.config.k_g > 1 || (is_narrow && !self.rounds())
    }

    /// Whether tiles round what they store, all of whose sum they have.
    pub(crate) fn rounds(&self) -> bool {
        let is_whole = self.k.tiles() == 1 && self.config.k_g == 1;
        let has_code = self.numbers == Numbers::Halves && !self.frame.swapped && self.frame.c_v == 1;
        self.input.types.output == DType::Bf16 && is_whole && has_code
    }

    /// Bytes of an element that tiles store.
    pub(crate) fn out_es(&self) -> usize {
        if self.rounds() { self.input.types.output.size() } else { self.es() }
    }

    /// Bytes of an element as the operands store it.
    pub(crate) fn source_es(&self) -> usize {
        if self.stored == Stored::Same { self.es() } else { self.stored.bytes() }
    }

    /// Bytes from a neighbour of an operand to the next, where the caller has it.
    pub(crate) fn along_bytes(&self, operand: Operand) -> usize {
        operand.along * self.source_es()
    }

    /// Bytes from a step of k to the next, as tiles take them.
    pub(crate) fn step_bytes(&self, operand: Operand) -> usize {
        operand.step * self.stored.group() * self.source_es()
    }

    /// Rows of an operand that a step takes: those that are multiplied at a time, where they do not lie side by side.
    pub(crate) fn rows(&self, operand: Operand) -> usize {
        if operand.along == 1 { self.stored.group() } else { 1 }
    }

    /// Bytes from one of them to the next.
    pub(crate) fn row_bytes(&self, operand: Operand) -> usize {
        self.step_bytes(operand) / self.rows(operand)
    }

    pub(crate) fn part(&self, thread: usize) -> Part {
        let v = thread % self.v_threads;
        let s = thread / self.v_threads % self.s_threads;
        let slice = thread / (self.v_threads * self.s_threads);
        Part {
            v: share(&(0..self.v.tiles()), v, self.v_threads),
            s: share(&(0..self.s.tiles()), s, self.s_threads),
            k: share(&(0..self.k.tiles()), slice, self.config.k_g as usize),
            slice,
        }
    }

    /// Bytes of an element as tiles read it.
    pub(crate) fn es(&self) -> usize {
        self.vector.float.bytes() * self.numbers.parts()
    }

    /// The same of one that is packed to be broadcast.
    pub(crate) fn packed_s_es(&self) -> usize {
        self.vector.float.bytes() * self.numbers.packed_across()
    }

    /// Whether the operand along vectors is conjugated, and the one across them.
    pub(crate) fn conjugated(&self) -> [bool; 2] {
        let layout = self.input.layout;
        let [a, b] = [layout.a_conjugated(), layout.b_conjugated()];
        if self.frame.swapped { [b, a] } else { [a, b] }
    }

    fn deepest(&self) -> usize {
        self.k.big_units * self.k.unit
    }

    /// Steps of k of the deepest block, as the operands have them.
    fn deepest_source(&self) -> usize {
        self.deepest() * self.stored.group()
    }

    /// Bytes of one thread's packed block of so many tiles.
    fn buffer(&self, split: &Split, tiles: usize, (head, es): (usize, usize)) -> usize {
        let elements = tiles.min(split.tiles()) * split.big_units * split.unit * (head + self.deepest());
        (elements * es).next_multiple_of(ALIGN)
    }

    /// Bytes of one thread's packed block of `v`.
    pub(crate) fn v_buffer(&self) -> usize {
        if self.pack_v { self.buffer(&self.v, self.v_block, (self.numbers.head(), self.es())) } else { 0 }
    }

    /// Bytes of one thread's packed block of `s`.
    pub(crate) fn s_buffer(&self) -> usize {
        if self.pack_s { self.buffer(&self.s, self.s_block, (0, self.packed_s_es())) } else { 0 }
    }

    /// Elements between neighbours along `s` in a slice of partial sums.
    pub(crate) fn slice_stride(&self) -> usize {
        self.v.start(self.v.tiles()).next_multiple_of(ALIGN / self.es())
    }

    /// Bytes of one slice of partial sums.
    pub(crate) fn slice_bytes(&self) -> usize {
        if self.reduces() { self.slice_stride() * self.frame.s_len * self.es() } else { 0 }
    }

    /// Bytes of workspace over all threads and slices.
    pub(crate) fn workspace(&self) -> usize {
        self.threads() * (self.v_buffer() + self.s_buffer()) + self.config.k_g as usize * self.slice_bytes()
    }

    /// Cache blocks of a part, in tiles of `v`.
    pub(crate) fn v_blocks(&self, part: &Part) -> impl Iterator<Item = Range<usize>> + use<> {
        pieces(part.v.clone(), self.v_block)
    }

    /// The same in tiles of `s`.
    pub(crate) fn s_blocks(&self, part: &Part) -> impl Iterator<Item = Range<usize>> + use<> {
        pieces(part.s.clone(), self.s_block)
    }

    /// The routine of a kind of tile, or none when no tile is of that kind.
    pub(crate) fn tile(&self, v_kind: usize, s_kind: usize, phase: usize, place: Place) -> Option<Tile> {
        let later = self.k.tiles() > self.config.k_g as usize;
        if !self.v.has(v_kind) || !self.s.has(s_kind) || (phase > 0 && !later) || !self.has(place) {
            return None;
        }
        if self.is_turned(v_kind) {
            return Some(self.turned_tile(s_kind, phase));
        }
        let es = self.es();
        let vecs = self.v.units(v_kind);
        let (s, parts) = (self.s.units(s_kind), self.numbers.parts());
        let bytes = |elements: usize| (elements * es) as i32;
        let (s_k, s_s) = self.s_strides(s);
        let copy_v = place == Place::Lead && self.copies_v();
        let v_k = if self.pack_v && !copy_v { bytes(vecs * self.v.unit) } else { self.step_bytes(self.frame.v) as i32 };
        Some(Tile {
            vector: self.vector,
            vecs,
            tail: self.tail(v_kind, s_kind),
            s: s * parts,
            numbers: self.numbers,
            conjugated: if self.numbers == Numbers::ThreeM { self.conjugated() } else { [false; 2] },
            k_s: self.config.k_s as usize,
            k_l: self.config.k_l as usize,
            v_masked: copy_v || !self.pack_v,
            copy_v,
            loaded_v: self.loaded_v(),
            // Beside one vector, an exclusive or that broadcasts from memory is cheaper than a broadcast; with packed bytes it is one with 0.
            flips_s: self.numbers == Numbers::Quads && (!self.pack_s || vecs == 1),
            gathered: Gathered::None,
            v_k,
            s_k,
            s_s,
            store: if self.reduces() {
                TileStore::Along { s_stride: bytes(self.slice_stride()) }
            } else if self.rounds() {
                TileStore::Rounded { s_stride: (self.frame.c_s * self.out_es()) as i32 }
            } else if self.frame.c_v == 1 && !self.frame.swapped {
                TileStore::Along { s_stride: bytes(self.frame.c_s) }
            } else {
                TileStore::Across { v_stride: bytes(self.frame.c_v) }
            },
            alpha: self.input.alpha,
            beta: self.beta(phase),
            stream: self.config.store == Store::Stream && !self.reduces(),
            prefetch: self.prefetch(s_k as usize == es, place),
        })
    }

    /// What vectors become as they are loaded.
    pub(crate) fn loaded_v(&self) -> Loaded {
        match self.stored {
            _ if self.pack_v => Loaded::AsIs,
            Stored::Bf16Pairs => Loaded::Woven,
            Stored::Bf16 => Loaded::Widened,
            Stored::F16 => Loaded::Converted,
            Stored::Same => Loaded::AsIs,
            // Rules have them packed.
            Stored::I8 | Stored::I8Quads => unreachable!("{:?} is not loaded where it lies", self.stored),
        }
    }

    /// Bytes from a step of k of the operand across vectors to the next, and from a neighbour, of so many.
    fn s_strides(&self, s: usize) -> (i32, i32) {
        if self.pack_s {
            ((s * self.packed_s_es()) as i32, self.es() as i32)
        } else {
            (self.step_bytes(self.frame.s) as i32, self.along_bytes(self.frame.s) as i32)
        }
    }

    /// What C is multiplied by before the product of a block of k is added.
    fn beta(&self, phase: usize) -> ScalarClass {
        match phase {
            0 if self.reduces() => ScalarClass::Zero,
            0 => self.input.beta,
            _ => ScalarClass::One,
        }
    }

    fn has(&self, place: Place) -> bool {
        match place {
            Place::Follow => true,
            Place::Lead => self.leads(),
            Place::WalkPanel => self.walk_panel().is_some(),
            Place::WalkBlock => self.walk_block().is_some(),
        }
    }

    fn prefetch(&self, s_contiguous: bool, place: Place) -> TilePrefetch {
        let distance = self.config.prefetch;
        let c = self.config.store == Store::Normal;
        let own = place != Place::Lead;
        TilePrefetch {
            v_steps: if self.pack_v && own { distance } else { 0 },
            next: if distance > 0 { self.next_panel(place) } else { Next::None },
            far: if distance > 0 { self.far() } else { None },
            walk: match place {
                Place::Lead | Place::Follow => None,
                Place::WalkPanel => self.walk_panel(),
                Place::WalkBlock => self.walk_block(),
            },
            s_bytes: if !self.pack_s && s_contiguous { distance * self.es() as u32 } else { 0 },
            c,
        }
    }

    fn next_panel(&self, place: Place) -> Next {
        if self.keeps_v() {
            if self.pack_v && !self.copies_v() {
                return Next::None;
            }
            let lanes = self.v.units(0) * self.v.unit;
            Next::V(self.march(self.frame.v, self.s_block.min(self.s.tiles()), self.lines(lanes)))
        } else if place == Place::Lead {
            Next::S
        } else {
            Next::None
        }
    }

    /// All steps of a block of k within `tiles` tiles of the panel that stays.
    fn march(&self, operand: Operand, tiles: usize, lines: usize) -> March {
        March {
            columns: (self.config.k_s as usize * self.rows(operand)).div_ceil(tiles) as u32,
            stride: self.row_bytes(operand) as i32,
            lines: lines as u32,
        }
    }

    fn lines(&self, elements: usize) -> usize {
        (elements * self.source_es()).div_ceil(ALIGN)
    }

    /// The operand that streams past the panel that stays.
    pub(crate) fn streaming(&self) -> (&Split, Operand, usize) {
        if self.keeps_v() { (&self.s, self.frame.s, self.s_block) } else { (&self.v, self.frame.v, self.v_block) }
    }

    /// Cache lines of a step of k of the streaming operand's block that the tiles of one panel that stays prefetch from
    /// the next block of k, if those are worth it: neighbours lie together, and the whole block fits beside what is in use.
    pub(crate) fn far_lines(&self) -> Option<usize> {
        let (split, operand, block) = self.streaming();
        let block = block.min(split.tiles());
        let row = self.lines(split.start(block).min(split.extent));
        let fits = row * ALIGN * self.deepest() <= FAR_BYTES;
        let panels = if self.keeps_v() {
            self.v_block.min(self.v.tiles() / self.v_threads)
        } else {
            self.s_block.min(self.s.tiles() / self.s_threads)
        };
        (operand.along == 1 && self.stored == Stored::Same && self.k.tiles() > 1 && fits && self.walk_block().is_none())
            .then(|| row.div_ceil(panels.max(1)))
    }

    fn far(&self) -> Option<March> {
        let (split, operand, block) = self.streaming();
        self.far_lines().map(|lines| self.march(operand, block.min(split.tiles()), lines))
    }

    /// Whether the first tile of a panel of `v` copies it on the way, instead of a separate pass: when blocks
    /// are one panel deep, vectors are contiguous in the source and the panel stays.
    pub(crate) fn copies_v(&self) -> bool {
        self.pack_v && self.v_block == 1 && self.keeps_v() && self.frame.v.along == 1 && self.stored == Stored::Same
    }

    /// Whether the first tile of a panel that stays has a routine of its own: it copies the panel of `v`, or
    /// prefetches the panel of `s` that stays next from the caller's memory.
    pub(crate) fn leads(&self) -> bool {
        self.copies_v() || (!self.keeps_v() && !self.pack_s && self.config.prefetch > 0)
    }

    /// Whether the panel of `v` stays while that of `s` streams.
    pub(crate) fn keeps_v(&self) -> bool {
        self.config.order == Order::Vector
    }
}
