//! The register tile: a panel routine that computes a row of `v x s` tiles by outer products.
//!
//! Vectors run along `v`, elements of the other operand are broadcast along `s`. Per step of k a tile
//! needs `vecs` vector loads, `s` broadcasts and `vecs * s` fused multiply-adds.

use iced_x86::{IcedError, Register};

use super::abi::at;
use super::emitter::{Emitter, LINE, mem, mem_index};
use super::vector::{Vector, Width};
use super::{across, along};
use tilewright_ops::gemm::ScalarClass;

pub(super) const ARGS: Register = Register::RDI;
pub(super) const C: Register = Register::R10;
const V: Register = Register::RAX;
const S: Register = Register::RDX;
const COUNT: Register = Register::RCX;
const V_BASE: Register = Register::R8;
const S_BASE: Register = Register::R9;
const TILES: Register = Register::R11;
const AHEAD: Register = Register::RSI;
const NEXT: Register = Register::RSI;
/// A tile with a gathered operand prefetches no panel that comes next.
const TABLE: Register = Register::RSI;
const PACKED: Register = Register::RBX;
const SCRATCH: Register = Register::R12;
const FAR: Register = Register::R13;
const WALK: Register = Register::R14;

/// Registers that the transposition of a tile needs beside the accumulators.
const SCRATCH_ACROSS: usize = 4;

/// How the tile lies in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TileStore {
    /// `v` is contiguous; consecutive `s` are `s_stride` bytes apart.
    Along { s_stride: i32 },
    /// `s` is contiguous; consecutive `v` are `v_stride` bytes apart. Transposed in registers.
    Across { v_stride: i32 },
}

/// The operand whose next panel is prefetched, from the caller's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Next {
    #[default]
    None,
    /// The panel of `v`, on and on over all tiles of the panel that stays.
    V(March),
    /// The same steps of k as those being computed.
    S,
}

/// A prefetch that goes on from tile to tile: spread over many, the misses fit the processor's miss buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct March {
    /// Steps of k per turn of the loop.
    pub(crate) columns: u32,
    /// Bytes between them.
    pub(crate) stride: i32,
    /// Cache lines of each.
    pub(crate) lines: u32,
}

/// A prefetch of memory that is packed later, into the second-level cache. It is spread evenly over the turns of the loop over k:
/// misses that come all at once take the miss buffers from the loads of the tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Walk {
    /// Places that a turn prefetches, and bytes between them.
    pub(crate) strips: u32,
    pub(crate) stride: i32,
    /// Cache lines of each.
    pub(crate) lines: u32,
    /// Bytes from turn to turn, and from the first turn of a tile to that of the next.
    pub(crate) turn: i32,
    pub(crate) tile: i32,
}

/// The operand whose steps of k lie where a table says, and not at equal distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Gathered {
    #[default]
    None,
    V,
    S,
}

/// What is prefetched while a tile is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TilePrefetch {
    /// `v` this many k-steps further in the same panel.
    pub(crate) v_steps: u32,
    /// The same steps of the panel that stays next.
    pub(crate) next: Next,
    /// The next block of k of the operand that streams past the panel that stays, from the caller's memory.
    pub(crate) far: Option<March>,
    /// What is packed later, from the caller's memory.
    pub(crate) walk: Option<Walk>,
    /// Broadcast operand contiguous along k: this many bytes further in each of its rows.
    pub(crate) s_bytes: u32,
    /// The C tile, at the start.
    pub(crate) c: bool,
}

/// Everything that the code of a tile depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tile {
    pub(crate) vector: Vector,
    /// Vectors along `v`.
    pub(crate) vecs: usize,
    /// Valid lanes of the last vector; 0 means all.
    pub(crate) tail: usize,
    /// Extent along `s`.
    pub(crate) s: usize,
    /// Unroll of the loop over k, a multiple of `k_l`.
    pub(crate) k_s: usize,
    /// Independent accumulator sets.
    pub(crate) k_l: usize,
    /// Whether reads of the last vector along `v` must be masked (not packed).
    pub(crate) v_masked: bool,
    /// Whether the panel of `v` is copied on the way, for the tiles that follow.
    pub(crate) copy_v: bool,
    /// Which operand is gathered.
    pub(crate) gathered: Gathered,
    /// Bytes between steps of k, in `v` and in `s`; 0 in one that is gathered.
    pub(crate) v_k: i32,
    pub(crate) s_k: i32,
    /// Bytes between neighbours along `s` in the broadcast operand.
    pub(crate) s_s: i32,
    pub(crate) store: TileStore,
    pub(crate) alpha: ScalarClass,
    pub(crate) beta: ScalarClass,
    /// Non-temporal stores of full vectors.
    pub(crate) stream: bool,
    pub(crate) prefetch: TilePrefetch,
}

impl Tile {
    /// Accumulator registers.
    pub(crate) const fn accumulators(&self) -> usize {
        self.vecs * self.s * self.k_l
    }

    /// Number of the register that holds the first accumulator. The transposition works on 128-bit
    /// parts with VEX encodings, so its scratch registers must be below 16.
    const fn first(&self) -> usize {
        match (self.vector.width, self.store) {
            (Width::Z, TileStore::Across { .. }) => SCRATCH_ACROSS,
            _ => 0,
        }
    }

    /// Accumulator of vector `i` and broadcast `j` in set `set`.
    pub(super) fn acc(&self, set: usize, j: usize, i: usize) -> Register {
        self.vector.reg(self.first() + (set * self.s + j) * self.vecs + i)
    }

    /// Register number `i` of those that hold no accumulator.
    pub(super) fn free(&self, i: usize) -> Register {
        if i < self.first() { self.vector.reg(i) } else { self.vector.reg(self.accumulators() + i) }
    }

    /// How many registers hold no accumulator.
    fn free_count(&self) -> usize {
        self.vector.width.registers() - self.accumulators()
    }

    pub(super) const fn is_tail(&self, i: usize) -> bool {
        self.tail != 0 && i + 1 == self.vecs
    }

    /// Machine code of the panel routine.
    ///
    /// # Errors
    /// The encoder's; a tile that fits the registers and whose strides fit 31 bits gives none.
    pub(crate) fn assemble(&self) -> Result<Vec<u8>, IcedError> {
        let mut e = Emitter::new(self.vector)?;
        e.mov_load(V_BASE, mem(ARGS, at::V));
        e.mov_load(S_BASE, mem(ARGS, at::S));
        e.mov_load(C, mem(ARGS, at::C));
        e.mov_load(TILES, mem(ARGS, at::TILES));
        match self.prefetch.next {
            Next::None => {}
            Next::V(_) => e.mov_load(NEXT, mem(ARGS, at::NEXT)),
            Next::S => e.mov_load(AHEAD, mem(ARGS, at::AHEAD)),
        }
        if self.prefetch.far.is_some() {
            e.push_register(FAR);
            e.mov_load(FAR, mem(ARGS, at::FAR));
        }
        if self.marches() {
            e.push_register(SCRATCH);
        }
        if self.prefetch.walk.is_some() {
            e.push_register(WALK);
        }
        if self.copy_v {
            e.push_register(PACKED);
            e.mov_load(PACKED, mem(ARGS, at::PACKED));
        }
        if self.tail != 0 {
            e.set_mask(self.tail);
        }
        let mut next_tile = e.label();
        e.bind(&mut next_tile);
        self.emit_start(&mut e);
        self.emit_k_loop(&mut e);
        self.emit_sum_of_sets(&mut e);
        match self.store {
            TileStore::Along { s_stride } => along::emit_store(self, &mut e, s_stride),
            TileStore::Across { v_stride } => across::emit_store(self, &mut e, v_stride),
        }
        e.add_load(V_BASE, mem(ARGS, at::V_STEP));
        e.add_load(S_BASE, mem(ARGS, at::S_STEP));
        e.add_load(C, mem(ARGS, at::C_STEP));
        if let Some(walk) = self.prefetch.walk {
            e.mov_load(WALK, mem(ARGS, at::WALK));
            e.add_imm(WALK, walk.tile);
            e.mov_store(mem(ARGS, at::WALK), WALK);
        }
        e.dec(TILES);
        e.jump_if_not_zero(next_tile);
        if self.copy_v {
            e.pop_register(PACKED);
        }
        if self.prefetch.walk.is_some() {
            e.pop_register(WALK);
        }
        if self.marches() {
            e.pop_register(SCRATCH);
        }
        if self.prefetch.far.is_some() {
            e.mov_store(mem(ARGS, at::FAR), FAR);
            e.pop_register(FAR);
        }
        if matches!(self.prefetch.next, Next::V(_)) {
            e.mov_store(mem(ARGS, at::NEXT), NEXT);
        }
        e.ret();
        e.finish()
    }

    fn marches(&self) -> bool {
        self.prefetch.far.is_some() || matches!(self.prefetch.next, Next::V(_))
    }

    fn emit_start(&self, e: &mut Emitter) {
        e.mov(V, V_BASE);
        e.mov(S, S_BASE);
        if self.gathered != Gathered::None {
            e.mov_load(TABLE, mem(ARGS, at::TABLE));
        }
        if self.prefetch.walk.is_some() {
            e.mov_load(WALK, mem(ARGS, at::WALK));
        }
        e.mov_load(COUNT, mem(ARGS, at::K_MAIN));
        for i in 0..self.accumulators() {
            e.zero(self.vector.reg(self.first() + i));
        }
        if self.prefetch.c {
            self.emit_prefetch_c(e);
        }
    }

    fn emit_prefetch_c(&self, e: &mut Emitter) {
        let es = self.vector.float.bytes() as i64;
        let (rows, stride, run) = match self.store {
            TileStore::Along { s_stride } => {
                let lanes = self.vecs * self.vector.lanes();
                (self.s, s_stride, lanes as i64 * es)
            }
            TileStore::Across { v_stride } => {
                let rows = self.vecs * self.vector.lanes();
                (if self.tail == 0 { rows } else { 0 }, v_stride, self.s as i64 * es)
            }
        };
        for row in 0..rows as i64 {
            let mut byte = 0;
            while byte < run {
                e.prefetch_write(mem(C, row * i64::from(stride) + byte));
                byte += LINE;
            }
        }
    }

    fn emit_k_loop(&self, e: &mut Emitter) {
        let (mut turn, mut tail, mut step, mut done) = (e.label(), e.label(), e.label(), e.label());
        e.test(COUNT);
        e.jump_if_zero(tail);
        e.bind(&mut turn);
        for kk in 0..self.k_s {
            self.emit_step(e, kk, true);
        }
        self.emit_advance(e, self.k_s as i32);
        e.dec(COUNT);
        e.jump_if_not_zero(turn);
        e.bind(&mut tail);
        e.mov_load(COUNT, mem(ARGS, at::K_TAIL));
        e.test(COUNT);
        e.jump_if_zero(done);
        e.bind(&mut step);
        self.emit_step(e, 0, false);
        self.emit_advance(e, 1);
        e.dec(COUNT);
        e.jump_if_not_zero(step);
        e.bind(&mut done);
    }

    fn emit_advance(&self, e: &mut Emitter, steps: i32) {
        e.add_imm(V, steps * self.v_k);
        e.add_imm(S, steps * self.s_k);
        if self.gathered != Gathered::None {
            e.add_imm(TABLE, steps * size_of::<i64>() as i32);
        }
        if self.copy_v {
            e.add_imm(PACKED, steps * self.copied_step());
        }
    }

    /// Bytes between steps of k in the copy of the panel.
    fn copied_step(&self) -> i32 {
        (self.vecs * self.vector.width.bytes()) as i32
    }

    /// One step of k: loads, broadcasts, multiply-adds. The smaller side is held in registers.
    fn emit_step(&self, e: &mut Emitter, kk: usize, main: bool) {
        if main {
            self.emit_prefetch_step(e, kk);
        }
        self.emit_place(e, kk);
        let set = kk % self.k_l;
        if self.vecs <= self.s {
            for i in 0..self.vecs {
                self.emit_load_v(e, self.free(i), kk, i);
            }
            let rotate = self.free_count() - self.vecs;
            for j in 0..self.s {
                let b = self.free(self.vecs + j % rotate);
                self.emit_broadcast_s(e, b, kk, j);
                for i in 0..self.vecs {
                    e.fma(self.acc(set, j, i), self.free(i), b);
                }
            }
        } else {
            for j in 0..self.s {
                self.emit_broadcast_s(e, self.free(j), kk, j);
            }
            let rotate = self.free_count() - self.s;
            for i in 0..self.vecs {
                let a = self.free(self.s + i % rotate);
                self.emit_load_v(e, a, kk, i);
                for j in 0..self.s {
                    e.fma(self.acc(set, j, i), self.free(j), a);
                }
            }
        }
    }

    /// Goes to where the gathered operand has this step.
    fn emit_place(&self, e: &mut Emitter, kk: usize) {
        let (pointer, base) = match self.gathered {
            Gathered::None => return,
            Gathered::V => (V, V_BASE),
            Gathered::S => (S, S_BASE),
        };
        e.mov(pointer, base);
        e.add_load(pointer, mem(TABLE, (kk * size_of::<i64>()) as i64));
    }

    fn emit_load_v(&self, e: &mut Emitter, to: Register, kk: usize, i: usize) {
        let disp = kk as i64 * i64::from(self.v_k) + (i * self.vector.width.bytes()) as i64;
        if self.v_masked && self.is_tail(i) {
            e.load_masked(to, mem(V, disp), to);
        } else {
            e.load(to, mem(V, disp));
        }
        if self.copy_v {
            let copy = kk as i64 * i64::from(self.copied_step()) + (i * self.vector.width.bytes()) as i64;
            e.op2_store(self.vector.store(), mem(PACKED, copy), to);
        }
    }

    fn emit_broadcast_s(&self, e: &mut Emitter, to: Register, kk: usize, j: usize) {
        let disp = kk as i64 * i64::from(self.s_k) + j as i64 * i64::from(self.s_s);
        e.broadcast(to, mem(S, disp));
    }

    fn emit_prefetch_step(&self, e: &mut Emitter, kk: usize) {
        let p = self.prefetch;
        let v_at = kk as i64 * i64::from(self.v_k);
        let v_bytes = (self.vecs * self.vector.width.bytes()) as i64;
        if p.v_steps != 0 {
            for byte in (0..v_bytes).step_by(LINE as usize) {
                e.prefetch(mem(V, v_at + i64::from(p.v_steps) * i64::from(self.v_k) + byte));
            }
        }
        let es = self.vector.float.bytes() as i64;
        let rows_along_k = i64::from(self.s_k) == es;
        if p.next == Next::S && !rows_along_k {
            for byte in (0..self.s as i64 * es).step_by(LINE as usize) {
                e.prefetch(mem_index(S, AHEAD, kk as i64 * i64::from(self.s_k) + byte));
            }
        }
        if kk != 0 {
            return;
        }
        if let Next::V(march) = p.next {
            emit_march(e, march, NEXT, at::NEXT_LAST);
        }
        if let Some(march) = p.far {
            emit_march(e, march, FAR, at::FAR_LAST);
        }
        if let Some(walk) = p.walk {
            emit_walk(e, walk);
        }
        for j in 0..self.s as i64 {
            let row = j * i64::from(self.s_s);
            if p.next == Next::S && rows_along_k {
                e.prefetch(mem_index(S, AHEAD, row));
            }
            if p.s_bytes != 0 {
                e.prefetch(mem(S, row + i64::from(p.s_bytes)));
            }
        }
    }

    /// Adds the accumulator sets pairwise into set 0.
    fn emit_sum_of_sets(&self, e: &mut Emitter) {
        let add = self.vector.add();
        let mut sets = self.k_l;
        while sets > 1 {
            let half = sets.div_ceil(2);
            for set in half..sets {
                for j in 0..self.s {
                    for i in 0..self.vecs {
                        let to = self.acc(set - half, j, i);
                        e.op3(add, to, to, self.acc(set, j, i));
                    }
                }
            }
            sets = half;
        }
    }

    /// Multiplies every accumulator by alpha, when alpha is not 1.
    pub(super) fn emit_alpha(&self, e: &mut Emitter, scratch: Register) {
        if self.alpha == ScalarClass::One {
            return;
        }
        e.broadcast(scratch, mem(ARGS, at::ALPHA));
        let mul = self.vector.mul();
        for j in 0..self.s {
            for i in 0..self.vecs {
                let acc = self.acc(0, j, i);
                e.op3(mul, acc, acc, scratch);
            }
        }
    }
}

/// Prefetches one turn's share and moves on.
fn emit_walk(e: &mut Emitter, walk: Walk) {
    for strip in 0..i64::from(walk.strips) {
        for line in 0..i64::from(walk.lines) {
            e.prefetch_l2(mem(WALK, strip * i64::from(walk.stride) + line * LINE));
        }
    }
    e.add_imm(WALK, walk.turn);
}

/// Prefetches one turn's share and moves on, not beyond the last step of k.
fn emit_march(e: &mut Emitter, march: March, pointer: Register, last: i64) {
    let stride = i64::from(march.stride);
    for column in 0..i64::from(march.columns) {
        for line in 0..i64::from(march.lines) {
            e.prefetch(mem(pointer, column * stride + line * LINE));
        }
    }
    e.advance_within(pointer, SCRATCH, i64::from(march.columns) * stride, mem(ARGS, last));
}
