//! The routine of a whole product, or of a batch of them: all register tiles in sequence, at distances that are part of the
//! instructions.
//!
//! Nothing runs between tiles but the moves of three pointers, and those only where tiles of one kind are looped over. Outside are the
//! tiles along vectors, whose panel is transposed once; or those across, so that columns of C are written from end to end.

use std::mem::offset_of;

use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

use super::blueprint::{Blueprint, Piece};
use super::isa::{Isa, reg};
use super::prefetch::Ahead;
use crate::codegen::emitter::{Emitter, mem};
use crate::codegen::vector::{Vector, Width};

/// What a routine reads beside the operands: scalars in the element type, in the low bytes, and the mask of AVX's encodings.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Constants {
    pub(super) alpha: u64,
    pub(super) beta: u64,
    /// Sign bits count.
    pub(super) mask: [u32; 8],
}

pub(super) const ALPHA: i64 = offset_of!(Constants, alpha) as i64;
pub(super) const BETA: i64 = offset_of!(Constants, beta) as i64;
const V_MASK: i64 = offset_of!(Constants, mask) as i64;

/// Signature of a routine: `v`, `s`, `C`, how many products, the constants, memory for a panel.
#[cfg(target_arch = "x86_64")]
pub(super) type Routine = unsafe extern "sysv64" fn(*const u8, *const u8, *mut u8, usize, *const Constants, *mut u8);

/// The six arguments in the order of the System V calling convention.
pub(super) const V: Register = Register::RDI;
pub(super) const S: Register = Register::RSI;
pub(super) const C: Register = Register::RDX;
const COUNT: Register = Register::RCX;
pub(super) const CONSTANTS: Register = Register::R8;
pub(super) const PANEL: Register = Register::R9;
/// Pointers that move along k, and the turns that are left.
pub(super) const V_AT: Register = Register::RAX;
pub(super) const S_AT: Register = Register::R10;
pub(super) const TURNS: Register = Register::R11;
pub(super) const TURNS_LOW: Register = Register::R11D;
/// Tiles that are left along `v` and `s`.
const V_LEFT: Register = Register::RBX;
const S_LEFT: Register = Register::R12;

/// The mask of the last vector.
const MASK: Register = Register::K1;

/// By how many bytes the pointers are beyond those of the product.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved {
    pub(super) v: i64,
    pub(super) s: i64,
    pub(super) c: i64,
}

/// What is known while code is emitted.
pub(super) struct Generator<'b> {
    pub(super) b: &'b Blueprint,
    pub(super) isa: Isa,
    pub(super) e: Emitter,
    pub(super) moved: Moved,
    pub(super) ahead: Ahead,
}

/// The sides of C.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    V,
    S,
}

/// A tile along `v`.
pub(super) struct VTile {
    /// Its first element.
    pub(super) start: usize,
    pub(super) pieces: Vec<Piece>,
}

/// Machine code of the product.
///
/// # Errors
/// The encoder's; a legal plan gives none.
pub(super) fn assemble(b: &Blueprint) -> Result<Vec<u8>, IcedError> {
    let width = Width::from_bytes(b.config.vec).unwrap_or(Width::X);
    let e = Emitter::new(Vector { width, float: b.isa.float })?;
    let mut generator = Generator { b, isa: b.isa, e, moved: Moved::default(), ahead: Ahead::default() };
    generator.batch();
    generator.e.finish()
}

impl<'b> Generator<'b> {
    fn batch(&mut self) {
        let loops = self.b.config.loops;
        if loops {
            self.e.push_register(V_LEFT);
            self.e.push_register(S_LEFT);
        }
        self.set_mask();
        let mut next = self.e.label();
        self.e.bind(&mut next);
        self.product();
        if let Some(edge) = self.b.edge.as_deref() {
            self.turned(edge);
        }
        // A single product has no distances: whoever calls its code has one.
        if self.b.input.batch.count > 1 {
            let [v, s, c] = self.b.strides;
            self.step(V, v - self.moved.v);
            self.step(S, s - self.moved.s);
            self.step(C, c - self.moved.c);
            self.e.dec(COUNT);
            self.e.jump_if_not_zero(next);
        }
        if loops {
            self.e.pop_register(S_LEFT);
            self.e.pop_register(V_LEFT);
        }
        self.e.ret();
    }

    fn set_mask(&mut self) {
        let lanes = self.b.masked();
        if self.isa.evex && lanes > 0 {
            let bits = (1i32 << lanes) - 1;
            self.e.push(Instruction::with2(Code::Mov_r32_imm32, Register::EAX, bits));
            self.e.push(Instruction::with2(Code::VEX_Kmovw_kr_r32, MASK, Register::EAX));
        }
    }

    /// `register += bytes`.
    fn step(&mut self, register: Register, bytes: i64) {
        match i32::try_from(bytes) {
            Ok(bytes) => self.e.add_imm(register, bytes),
            Err(_) => {
                self.e.push(Instruction::with2(Code::Mov_r64_imm64, V_AT, bytes as u64));
                self.e.push(Instruction::with2(Code::Add_r64_rm64, register, V_AT));
            }
        }
    }

    /// The edge, for which `v` and `s` change places, from their first elements and that of C on.
    fn turned(&mut self, edge: &'b Blueprint) {
        let whole = self.b;
        let start = whole.v.start(whole.v_tiles()) as i64;
        let first = Moved { v: start * whole.v_along, s: 0, c: start * whole.c_v };
        self.go_to(first);
        self.exchange();
        (self.b, self.moved) = (edge, Moved::default());
        self.product();
        self.go_to(Moved::default());
        self.exchange();
        (self.b, self.moved) = (whole, first);
    }

    /// Moves the pointers to these places.
    fn go_to(&mut self, to: Moved) {
        self.step(V, to.v - self.moved.v);
        self.step(S, to.s - self.moved.s);
        self.step(C, to.c - self.moved.c);
        self.moved = to;
    }

    fn exchange(&mut self) {
        self.e.mov(V_AT, V);
        self.e.mov(V, S);
        self.e.mov(S, V_AT);
    }

    /// All tiles: those of one side, and for each of them those of the other.
    fn product(&mut self) {
        let b = self.b;
        let (outer, inner) = if b.config.broadcast { (Side::S, Side::V) } else { (Side::V, Side::S) };
        self.side(outer, &mut |this, o| {
            if outer == Side::V && b.packs() {
                this.pack(&this.v_tile(o));
            }
            let before = this.moved;
            this.side(inner, &mut |this, i| {
                let (v, s) = if outer == Side::V { (o, i) } else { (i, o) };
                this.tile(&this.v_tile(v), b.s.start(s), b.s.size(s));
            });
            this.go_to(before);
        });
    }

    fn v_tile(&self, i: usize) -> VTile {
        VTile { start: self.b.v.start(i), pieces: self.b.pieces(i) }
    }

    /// What each tile of a side needs: code of its own, or code in a loop over tiles of one kind, which moves the pointers.
    fn side(&mut self, side: Side, each: &mut dyn FnMut(&mut Self, usize)) {
        let b = self.b;
        let (split, tiles, left, left_low) = match side {
            Side::V => (&b.v, b.v_tiles(), V_LEFT, Register::EBX),
            Side::S => (&b.s, b.s.tiles(), S_LEFT, Register::R12D),
        };
        for run in split.runs(0..tiles) {
            // Of what another side's tiles share, the first of them fetches the next product's.
            self.fetch(side, b.fetches_product() && run.first == 0);
            if !b.config.loops || run.count == 1 {
                for i in run.first..run.first + run.count {
                    each(self, i);
                    self.fetch(side, false);
                }
                continue;
            }
            let mut turn = self.e.label();
            self.e.push(Instruction::with2(Code::Mov_r32_imm32, left_low, run.count as i32));
            self.e.bind(&mut turn);
            each(self, run.first);
            self.advance(side, (split.start(run.first + 1) - split.start(run.first)) as i64, run.count as i64);
            self.e.dec(left);
            self.e.jump_if_not_zero(turn);
        }
    }

    fn fetch(&mut self, side: Side, ahead: bool) {
        match side {
            Side::V => self.ahead.s = ahead,
            Side::S => self.ahead.v = ahead,
        }
    }

    /// Moves the pointers by a tile of so many elements, as they will have been after so many turns.
    fn advance(&mut self, side: Side, wide: i64, turns: i64) {
        let b = self.b;
        let c = match side {
            Side::V => {
                self.step(V, wide * b.v_along);
                self.moved.v += wide * b.v_along * turns;
                wide * b.c_v
            }
            Side::S => {
                self.step(S, wide * b.s_along);
                self.moved.s += wide * b.s_along * turns;
                wide * b.c_s
            }
        };
        self.step(C, c);
        self.moved.c += c * turns;
    }

    pub(super) fn op2_load(&mut self, code: Code, to: Register, from: MemoryOperand) {
        self.e.op2_load(code, to, from);
    }

    pub(super) fn op3(&mut self, code: Code, to: Register, a: Register, b: Register) {
        self.e.op3(code, to, a, b);
    }

    /// Loads the lanes of a vector that are elements; the others become zero.
    pub(super) fn load_piece(&mut self, piece: &Piece, to: usize, from: MemoryOperand) {
        let (width, to) = (piece.width, reg(piece.width, to));
        let load = self.isa.load(width);
        if piece.valid == self.isa.lanes(width) {
            return self.e.op2_load(load, to, from);
        }
        match self.isa.mask_load(width) {
            Some(masked) => {
                self.e.op2_load(load, to, mem(CONSTANTS, V_MASK));
                self.e.op3_load(masked, to, to, from);
            }
            None => self.e.push(Instruction::with2(load, to, from).map(|mut i| {
                i.set_op_mask(MASK);
                i.set_zeroing_masking(true);
                i
            })),
        }
    }

    /// Stores the lanes that are elements.
    pub(super) fn store_piece(&mut self, piece: &Piece, at: MemoryOperand, from: usize, scratch: usize) {
        let (width, from) = (piece.width, reg(piece.width, from));
        let store = self.isa.store(width);
        if piece.valid == self.isa.lanes(width) {
            return self.e.op2_store(store, at, from);
        }
        if self.isa.evex {
            self.e.push(Instruction::with2(store, at, from).map(|mut i| {
                i.set_op_mask(MASK);
                i
            }));
        } else {
            self.e.store_parts(at, from, piece.valid * self.isa.float.bytes(), reg(width, scratch));
        }
    }
}
