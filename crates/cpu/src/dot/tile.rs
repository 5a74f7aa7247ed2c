//! Generated code: a row of register tiles of dot products.

use crate::codegen::abi::at;
use crate::codegen::across::move_codes;
use crate::codegen::emitter::{Emitter, LINE, mem};
use crate::codegen::vector::{Vector, Width};
use crate::scalar::Float;
use iced_x86::{Code, IcedError, Instruction, Register};
use tilewright_ops::gemm::ScalarClass;

const ARGS: Register = Register::RDI;
const A: Register = Register::RAX;
const B: Register = Register::RDX;
const COUNT: Register = Register::RCX;
const A_BASE: Register = Register::R8;
const B_BASE: Register = Register::R9;
const C: Register = Register::R10;
const TILES: Register = Register::R11;
const NEXT: Register = Register::RSI;

/// Everything that the code of a tile depends on. Its arguments are those of panels (`PanelArgs`): A is `v`, B is `s`, and `k_main` and
/// `k_tail` count vectors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DotTile {
    pub(super) vector: Vector,
    /// Rows and columns of C.
    pub(super) m: usize,
    pub(super) n: usize,
    /// Vectors of a turn of the loop over k, a multiple of `k_l`.
    pub(super) k_s: usize,
    /// Independent sets of sums.
    pub(super) k_l: usize,
    /// Valid lanes of the last vector along k; 0 means that there is none that is not whole.
    pub(super) tail: usize,
    /// Bytes between rows of A, columns of B and columns of C.
    pub(super) a_row: i32,
    pub(super) b_column: i32,
    pub(super) c_column: i32,
    /// The rows or columns that are prefetched.
    pub(super) prefetch: Ahead,
    pub(super) alpha: ScalarClass,
    pub(super) beta: ScalarClass,
}

/// What is prefetched. A processor's own prefetch ends with a row: what the next tile reads is asked for by this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ahead {
    None,
    /// What the next tile reads of A, which streams past.
    A,
    /// The same of B.
    B,
    /// So many rows or columns, at this distance in bytes, of those that stay next: each tile that streams past asks for its share.
    Stays {
        count: usize,
        stride: i32,
    },
}

/// Registers that hold no sums. Sums across vectors are formed with VEX encodings, which reach the first 16 registers only.
pub(super) const fn free(width: Width) -> usize {
    match width {
        Width::Z => 8,
        Width::X | Width::Y => 5,
    }
}

impl DotTile {
    fn sum(&self, set: usize, i: usize, j: usize) -> Register {
        self.vector.reg(free(self.vector.width) + (set * self.n + j) * self.m + i)
    }

    /// Machine code of the routine.
    ///
    /// # Errors
    /// The encoder's; a tile that fits the registers and whose rows, those that it prefetches too, lie within 31 bits gives none.
    pub(super) fn assemble(&self) -> Result<Vec<u8>, IcedError> {
        let mut e = Emitter::new(self.vector)?;
        e.mov_load(A_BASE, mem(ARGS, at::V));
        e.mov_load(B_BASE, mem(ARGS, at::S));
        e.mov_load(C, mem(ARGS, at::C));
        e.mov_load(TILES, mem(ARGS, at::TILES));
        if self.tail != 0 {
            e.set_mask(self.tail);
        }
        let mut next = e.label();
        e.bind(&mut next);
        e.mov(A, A_BASE);
        e.mov(B, B_BASE);
        if self.stays().is_some() {
            e.mov_load(NEXT, mem(ARGS, at::NEXT));
        }
        let sums = self.m * self.n * self.k_l;
        (0..sums).for_each(|i| e.zero(self.vector.reg(free(self.vector.width) + i)));
        self.emit_loop(&mut e, at::K_MAIN, self.k_s);
        self.emit_loop(&mut e, at::K_TAIL, 1);
        if self.tail != 0 {
            self.emit_step(&mut e, 0, true);
        }
        self.emit_sets(&mut e);
        self.emit_store(&mut e);
        if let Some((count, stride)) = self.stays() {
            e.mov_load(NEXT, mem(ARGS, at::NEXT));
            e.add_imm(NEXT, count as i32 * stride);
            e.mov_store(mem(ARGS, at::NEXT), NEXT);
        }
        e.add_load(A_BASE, mem(ARGS, at::V_STEP));
        e.add_load(B_BASE, mem(ARGS, at::S_STEP));
        e.add_load(C, mem(ARGS, at::C_STEP));
        e.dec(TILES);
        e.jump_if_not_zero(next);
        e.ret();
        e.finish()
    }

    /// A loop of so many vectors a turn.
    fn emit_loop(&self, e: &mut Emitter, turns: i64, vectors: usize) {
        let (mut turn, mut done) = (e.label(), e.label());
        e.mov_load(COUNT, mem(ARGS, turns));
        e.test(COUNT);
        e.jump_if_zero(done);
        e.bind(&mut turn);
        (0..vectors).for_each(|kk| self.emit_step(e, kk, false));
        let bytes = (vectors * self.vector.width.bytes()) as i32;
        e.add_imm(A, bytes);
        e.add_imm(B, bytes);
        if self.stays().is_some() {
            e.add_imm(NEXT, bytes);
        }
        e.dec(COUNT);
        e.jump_if_not_zero(turn);
        e.bind(&mut done);
    }

    /// A vector of k: the smaller side is held in registers.
    fn emit_step(&self, e: &mut Emitter, kk: usize, masked: bool) {
        let disp = (kk * self.vector.width.bytes()) as i64;
        let load = |e: &mut Emitter, to: usize, from: Register, stride: i32, at: usize| {
            let (to, from) = (self.vector.reg(to), mem(from, disp + at as i64 * i64::from(stride)));
            if masked { e.load_masked(to, from, to) } else { e.load(to, from) }
        };
        let set = kk % self.k_l;
        let (a, b) = ((A, self.a_row, self.m), (B, self.b_column, self.n));
        let (held, other) = if self.m <= self.n { (a, b) } else { (b, a) };
        let ahead = match self.prefetch {
            Ahead::None => None,
            Ahead::A => Some((a.0, a.1, self.m..2 * self.m)),
            Ahead::B => Some((b.0, b.1, self.n..2 * self.n)),
            Ahead::Stays { count, stride } => Some((NEXT, stride, 0..count)),
        };
        if let Some((from, stride, rows)) = ahead.filter(|_| self.starts_a_line(kk)) {
            rows.for_each(|at| e.prefetch(mem(from, disp + at as i64 * i64::from(stride))));
        }
        (0..held.2).for_each(|i| load(e, i, held.0, held.1, i));
        for j in 0..other.2 {
            load(e, held.2, other.0, other.1, j);
            for i in 0..held.2 {
                let sum = if self.m <= self.n { self.sum(set, i, j) } else { self.sum(set, j, i) };
                e.fma(sum, self.vector.reg(i), self.vector.reg(held.2));
            }
        }
    }

    fn stays(&self) -> Option<(usize, i32)> {
        match self.prefetch {
            Ahead::Stays { count, stride } => Some((count, stride)),
            _ => None,
        }
    }

    /// Whether a vector of a turn is the first of its cache line, where rows start at one.
    fn starts_a_line(&self, kk: usize) -> bool {
        (kk * self.vector.width.bytes()).is_multiple_of(LINE as usize)
    }

    /// Adds the sets of sums pairwise into the first.
    fn emit_sets(&self, e: &mut Emitter) {
        let mut sets = self.k_l;
        while sets > 1 {
            let half = sets.div_ceil(2);
            for (set, i, j) in all(half..sets, self.m, self.n) {
                let to = self.sum(set - half, i, j);
                e.op3(self.vector.add(), to, to, self.sum(set, i, j));
            }
            sets = half;
        }
    }

    /// Sums of up to 16 bytes that are neighbours in C at a time.
    fn emit_store(&self, e: &mut Emitter) {
        let es = self.vector.float.bytes();
        for j in 0..self.n {
            let mut i = 0;
            while i < self.m {
                let group = match (self.vector.float, self.m - i) {
                    (Float::F32, 4..) => 4,
                    (_, 2..) => 2,
                    _ => 1,
                };
                let sums: Vec<Register> = (i..i + group).map(|i| self.sum(0, i, j)).collect();
                self.emit_across(e, &sums);
                self.emit_finish(e, j as i64 * i64::from(self.c_column) + (i * es) as i64, group * es);
                i += group;
            }
        }
    }

    /// The sums over the lanes of one, two or four registers, side by side in the first register.
    fn emit_across(&self, e: &mut Emitter, sums: &[Register]) {
        let float = self.vector.float;
        // Halves of the widest vectors are added first; what is left has encodings for the low registers.
        let width = if self.vector.width == Width::Z { Width::Y } else { self.vector.width };
        let narrow = Vector { width, float };
        for (q, &sum) in sums.iter().enumerate() {
            let (to, low) = (narrow.reg(q), narrow.reg(0) + (sum.number() as u32));
            if self.vector.width == Width::Z {
                e.push(Instruction::with3(Code::EVEX_Vextractf64x4_ymmm256_k1z_zmm_imm8, to, sum, 1));
                let add = match float {
                    Float::F32 => Code::EVEX_Vaddps_ymm_k1z_ymm_ymmm256b32,
                    Float::F64 => Code::EVEX_Vaddpd_ymm_k1z_ymm_ymmm256b64,
                };
                e.op3(add, to, to, low);
            } else {
                e.op2_move(narrow, to, low);
            }
        }
        let hadd = narrow.add_pairs();
        let r = |i: usize| narrow.reg(i);
        match (float, sums.len()) {
            (Float::F32, 4) => {
                e.op3(hadd, r(0), r(0), r(1));
                e.op3(hadd, r(2), r(2), r(3));
                e.op3(hadd, r(0), r(0), r(2));
            }
            (Float::F32, count) => {
                e.op3(hadd, r(0), r(0), r(count - 1));
                e.op3(hadd, r(0), r(0), r(0));
            }
            (Float::F64, count) => e.op3(hadd, r(0), r(0), r(count - 1)),
        }
        if width == Width::Y {
            let low = Vector { width: Width::X, float };
            e.push(Instruction::with3(Code::VEX_Vextractf128_xmmm128_ymm_imm8, low.reg(1), r(0), 1));
            e.op3(low.add(), low.reg(0), low.reg(0), low.reg(1));
        }
    }

    /// Stores what the first register has of so many bytes, by alpha, with beta times what was there.
    fn emit_finish(&self, e: &mut Emitter, disp: i64, bytes: usize) {
        let low = Vector { width: Width::X, float: self.vector.float };
        let (sum, factor, old) = (low.reg(0), low.reg(1), low.reg(2));
        let (load, store) = move_codes(bytes);
        if self.alpha != ScalarClass::One {
            e.op2_load(low.broadcast(), factor, mem(ARGS, at::ALPHA));
            e.op3(low.mul(), sum, sum, factor);
        }
        if self.beta != ScalarClass::Zero {
            e.op2_load(load, old, mem(C, disp));
            if self.beta == ScalarClass::Other {
                e.op2_load(low.broadcast(), factor, mem(ARGS, at::BETA));
                e.op3(low.mul(), old, old, factor);
            }
            e.op3(low.add(), sum, sum, old);
        }
        e.op2_store(store, mem(C, disp), sum);
    }
}

fn all(sets: std::ops::Range<usize>, m: usize, n: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    sets.flat_map(move |set| (0..n).flat_map(move |j| (0..m).map(move |i| (set, i, j))))
}
