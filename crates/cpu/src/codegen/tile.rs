//! The register tile: a panel routine that computes a row of `v x s` tiles by outer products.
//!
//! Vectors run along `v`, elements of the other operand are broadcast along `s`. Per step of k a tile
//! needs `vecs` vector loads, `s` broadcasts and `vecs * s` fused multiply-adds.

use iced_x86::{Code, IcedError, Register};

use super::abi::at;
use super::emitter::{Emitter, mem};
pub(crate) use super::prefetch::{March, Next, TilePrefetch, Walk};
use super::vector::{Vector, Width};
use super::{across, along, complex, rounded, three_m, widened};
use crate::scalar::Numbers;
use tilewright_ops::gemm::ScalarClass;

pub(super) const ARGS: Register = Register::RDI;
pub(super) const C: Register = Register::R10;
pub(super) const V: Register = Register::RAX;
pub(super) const S: Register = Register::RDX;
const COUNT: Register = Register::RCX;
const V_BASE: Register = Register::R8;
const S_BASE: Register = Register::R9;
const TILES: Register = Register::R11;
pub(super) const AHEAD: Register = Register::RSI;
pub(super) const NEXT: Register = Register::RSI;
/// A tile with a gathered operand prefetches no panel that comes next.
const TABLE: Register = Register::RSI;
const PACKED: Register = Register::RBX;
pub(super) const SCRATCH: Register = Register::R12;
pub(super) const FAR: Register = Register::R13;
pub(super) const WALK: Register = Register::R14;

/// Registers that the transposition of a tile needs beside the accumulators.
const SCRATCH_ACROSS: usize = 4;

/// How the tile lies in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TileStore {
    /// `v` is contiguous; consecutive `s` are `s_stride` bytes apart.
    Along { s_stride: i32 },
    /// The same of numbers that are rounded to bfloat16 as they are stored.
    Rounded { s_stride: i32 },
    /// `s` is contiguous; consecutive `v` are `v_stride` bytes apart. Transposed in registers.
    Across { v_stride: i32 },
}

/// What becomes of vectors as they are loaded from where the caller has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Loaded {
    #[default]
    AsIs,
    /// Woven of two steps of 16-bit numbers.
    Woven,
    /// Binary32 of bfloat16.
    Widened,
    /// Binary32 of binary16.
    Converted,
}

/// The operand whose steps of k lie where a table says, and not at equal distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Gathered {
    #[default]
    None,
    V,
    S,
}

/// Everything that the code of a tile depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tile {
    pub(crate) vector: Vector,
    /// Vectors along `v`.
    pub(crate) vecs: usize,
    /// Valid lanes of the last vector; 0 means all.
    pub(crate) tail: usize,
    /// Numbers that are broadcast along `s`; of three products without the sums of parts, which lie behind them.
    pub(crate) s: usize,
    /// What elements are made of: of complex ones lanes hold the components by turns, and so do the numbers along `s`.
    pub(crate) numbers: Numbers,
    /// Whether vectors are conjugated, and what is broadcast: of three products alone, where that is a matter of code.
    pub(crate) conjugated: [bool; 2],
    /// Unroll of the loop over k, a multiple of `k_l`.
    pub(crate) k_s: usize,
    /// Independent accumulator sets.
    pub(crate) k_l: usize,
    /// Whether reads of the last vector along `v` must be masked (not packed).
    pub(crate) v_masked: bool,
    /// Whether the panel of `v` is copied on the way, for the tiles that follow.
    pub(crate) copy_v: bool,
    /// What vectors become as they are loaded (not packed).
    pub(crate) loaded_v: Loaded,
    /// Whether what is broadcast goes through an exclusive or: with the bits that are to change, or with 0 where packing has changed them.
    pub(crate) flips_s: bool,
    /// Which operand is gathered.
    pub(crate) gathered: Gathered,
    /// Bytes between steps of k, in `v` and in `s`; 0 in one that is gathered.
    pub(crate) v_k: i32,
    pub(crate) s_k: i32,
    /// Bytes between neighbouring elements along `s` in the broadcast operand.
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
        self.set() * self.k_l
    }

    /// Accumulator registers of a set.
    const fn set(&self) -> usize {
        match self.numbers {
            Numbers::ThreeM => self.outs() * self.three_m_accumulators(),
            _ => self.vecs * self.s,
        }
    }

    /// Bytes of an element.
    pub(crate) const fn element(&self) -> usize {
        self.numbers.parts() * self.vector.float.bytes()
    }

    /// Elements of C along `s`.
    pub(crate) const fn outs(&self) -> usize {
        self.s / self.numbers.parts()
    }

    /// Bytes from the first number along `s` to the one at `j`.
    pub(crate) const fn s_at(&self, j: usize) -> i64 {
        let parts = self.numbers.parts();
        (j / parts) as i64 * self.s_s as i64 + (j % parts * self.vector.float.bytes()) as i64
    }

    /// What is stored of vector `i` at element `j` along `s`, once it is finished.
    pub(super) fn out(&self, j: usize, i: usize) -> Register {
        if self.numbers == Numbers::ThreeM { self.direct(0, j, i) } else { self.acc(0, self.numbers.parts() * j, i) }
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
        self.accumulator(set, j * self.vecs + i)
    }

    /// Accumulator number `at` of a set.
    pub(super) fn accumulator(&self, set: usize, at: usize) -> Register {
        self.vector.reg(self.first() + set * self.set() + at)
    }

    /// Register number `i` of those that hold no accumulator.
    pub(super) fn free(&self, i: usize) -> Register {
        if i < self.first() { self.vector.reg(i) } else { self.vector.reg(self.accumulators() + i) }
    }

    /// How many registers hold no accumulator.
    pub(super) fn free_count(&self) -> usize {
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
            TileStore::Rounded { s_stride } => rounded::emit_store(self, &mut e, s_stride),
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
        let head = self.numbers.head();
        for i in 0..self.accumulators() {
            let accumulator = self.vector.reg(self.first() + i);
            if head > 0 && i < self.vecs * self.s {
                e.load(accumulator, mem(V, (i % self.vecs * self.vector.width.bytes()) as i64));
            } else {
                e.zero(accumulator);
            }
        }
        if head > 0 {
            e.add_imm(V, head as i32 * self.v_k);
        }
        if self.flips_s {
            e.broadcast(self.reserve(0), mem(ARGS, at::FLIP));
        }
        if self.loaded_v == Loaded::Woven {
            e.load(self.reserve(0), mem(ARGS, at::WEAVE));
        }
        if self.prefetch.c {
            self.emit_prefetch_c(e);
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
        if self.numbers == Numbers::ThreeM {
            return three_m::emit_step(self, e, kk);
        }
        let set = kk % self.k_l;
        if self.vecs <= self.s {
            for i in 0..self.vecs {
                self.emit_load_v(e, self.free(i), kk, i);
            }
            let rotate = self.free_count() - self.vecs - self.reserved();
            for j in 0..self.s {
                if let Some(code) = self.embeds() {
                    e.op3_broadcast(code, self.acc(set, j, 0), self.free(0), mem(S, self.s_disp(kk, j)));
                    continue;
                }
                let b = self.free(self.vecs + j % rotate);
                self.emit_broadcast_s(e, b, kk, j);
                for i in 0..self.vecs {
                    self.emit_product(e, self.acc(set, j, i), self.free(i), b);
                }
            }
        } else {
            for j in 0..self.s {
                self.emit_broadcast_s(e, self.free(j), kk, j);
            }
            let rotate = self.free_count() - self.s - self.reserved();
            for i in 0..self.vecs {
                let a = self.free(self.s + i % rotate);
                self.emit_load_v(e, a, kk, i);
                for j in 0..self.s {
                    self.emit_product(e, self.acc(set, j, i), a, self.free(j));
                }
            }
        }
    }

    /// Registers for what a product is before it is added, for bits to change, or for what weaves and the second of two steps: the last of
    /// those that hold no accumulator.
    fn reserved(&self) -> usize {
        if self.loaded_v == Loaded::Woven { 2 } else { usize::from(self.numbers == Numbers::Pairs || self.flips_s) }
    }

    pub(super) fn reserve(&self, i: usize) -> Register {
        self.free(self.free_count() - 1 - i)
    }

    /// Adds the product of what lies along vectors and what is broadcast across them.
    fn emit_product(&self, e: &mut Emitter, acc: Register, v: Register, s: Register) {
        match self.numbers {
            Numbers::Real | Numbers::Complex | Numbers::ThreeM => e.fma(acc, v, s),
            Numbers::Halves => e.op3(Code::EVEX_Vdpbf16ps_zmm_k1z_zmm_zmmm512b32, acc, v, s),
            // The first factors have no signs.
            Numbers::Quads => e.op3(Code::EVEX_Vpdpbusd_zmm_k1z_zmm_zmmm512b32, acc, s, v),
            Numbers::Pairs => {
                let product = self.reserve(0);
                e.op3(self.vector.multiply_pairs(), product, v, s);
                e.op3(self.vector.add_integers(), acc, acc, product);
            }
        }
    }

    /// The code that adds vectors of sums, of this width.
    pub(super) fn add(&self, vector: Vector) -> Code {
        if self.numbers.are_integers() { vector.add_integers() } else { vector.add() }
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

    pub(super) fn emit_load_v(&self, e: &mut Emitter, to: Register, kk: usize, i: usize) {
        match self.loaded_v {
            Loaded::AsIs => {}
            Loaded::Woven => return widened::emit_woven(self, e, to, (kk, i)),
            Loaded::Widened | Loaded::Converted => return widened::emit_load(self, e, to, (kk, i)),
        }
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

    /// The multiply-add that broadcasts what it reads: of a number that is used once, a broadcast of its own costs as much as that.
    fn embeds(&self) -> Option<Code> {
        match self.numbers {
            _ if self.vecs > 1 || self.vector.width != Width::Z => None,
            Numbers::Real | Numbers::Complex => Some(self.vector.fma()),
            Numbers::Halves => Some(Code::EVEX_Vdpbf16ps_zmm_k1z_zmm_zmmm512b32),
            // What has no sign is in a register.
            Numbers::Quads | Numbers::Pairs | Numbers::ThreeM => None,
        }
    }

    /// Bytes from where S points to number `j` of a step.
    pub(super) fn s_disp(&self, kk: usize, j: usize) -> i64 {
        kk as i64 * i64::from(self.s_k) + self.s_at(j)
    }

    fn emit_broadcast_s(&self, e: &mut Emitter, to: Register, kk: usize, j: usize) {
        let at = mem(S, self.s_disp(kk, j));
        if self.flips_s {
            e.op3_broadcast(self.vector.xor(), to, self.reserve(0), at);
        } else {
            e.broadcast(to, at);
        }
    }

    /// Adds the accumulator sets pairwise into set 0.
    fn emit_sum_of_sets(&self, e: &mut Emitter) {
        let add = self.add(self.vector);
        let mut sets = self.k_l;
        while sets > 1 {
            let half = sets.div_ceil(2);
            for set in half..sets {
                for at in 0..self.set() {
                    let to = self.accumulator(set - half, at);
                    e.op3(add, to, to, self.accumulator(set, at));
                }
            }
            sets = half;
        }
    }

    /// Makes of accumulators what alpha and the kind of numbers ask for, with two free registers.
    pub(super) fn emit_finished(&self, e: &mut Emitter, scratch: [Register; 2]) {
        match self.numbers {
            Numbers::Real | Numbers::Pairs | Numbers::Quads | Numbers::Halves => self.emit_alpha(e, scratch[0]),
            Numbers::Complex => complex::emit_combined(self, e, scratch),
            Numbers::ThreeM => three_m::emit_combined(self, e, [scratch[0], scratch[1], self.free(2)]),
        }
    }

    /// Whether sums are multiplied by alpha.
    pub(super) fn scales(&self) -> bool {
        self.alpha != ScalarClass::One
    }

    /// Multiplies every accumulator by alpha, when alpha is not 1.
    fn emit_alpha(&self, e: &mut Emitter, scratch: Register) {
        if !self.scales() {
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
