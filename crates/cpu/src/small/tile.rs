//! A register tile of a small product: the steps of k, straight or in turns.

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::isa::reg;
use super::routine::{C, Generator, PANEL, S, S_AT, TURNS, TURNS_LOW, V, V_AT, VTile};
use crate::codegen::emitter::mem;
use crate::codegen::vector::Width;

/// Where the operands of a tile are: registers, and bytes from them to its first elements.
#[derive(Clone, Copy)]
struct Places {
    v: (Register, i64),
    s: (Register, i64),
    /// Bytes between steps of `v`, and between its neighbours.
    v_step: i64,
    v_along: i64,
}

/// Registers of a tile.
pub(super) struct Registers {
    pub(super) vecs: usize,
    pub(super) s: usize,
}

impl Registers {
    /// Number of the accumulator of vector `i` and broadcast `j` in set `set`.
    pub(super) fn acc(&self, set: usize, j: usize, i: usize) -> usize {
        (set * self.s + j) * self.vecs + i
    }
}

impl Generator<'_> {
    /// Computes the tile of `wide` elements along `s` from `start` on.
    pub(super) fn tile(&mut self, v: &VTile, start: usize, wide: usize) {
        let (b, regs) = (self.b, Registers { vecs: v.pieces.len(), s: wide });
        let along = start as i64 * b.s_along - self.moved.s;
        let places = if b.packs() {
            Places { v: (PANEL, 0), s: (S, along), v_step: b.pitch(), v_along: b.es() }
        } else {
            let from = v.start as i64 * b.v_along - self.moved.v;
            Places { v: (V, from), s: (S, along), v_step: b.v_step, v_along: b.v_along }
        };
        self.steps(v, &regs, places);
        self.sum_of_sets(v, &regs);
        let c = v.start as i64 * b.c_v + start as i64 * b.c_s - self.moved.c;
        if b.stores_along() {
            self.store_along(v, &regs, c);
        } else {
            self.store_across(v, &regs, c);
        }
    }

    /// All steps of k: those that make no whole turn first, so that accumulators begin as products where there are any.
    fn steps(&mut self, v: &VTile, regs: &Registers, mut places: Places) {
        let (k, k_s, sets) = (self.b.k, self.b.config.k_s, self.b.config.k_l);
        let (mut turns, mut straight) = (k / k_s, k % k_s);
        if turns == 1 {
            (turns, straight) = (0, k);
        }
        for set in straight.min(sets)..sets {
            self.clear(v, regs, set);
        }
        for kk in 0..straight {
            self.one_step(v, regs, places, kk, kk < sets);
        }
        if turns == 0 {
            return;
        }
        let (v_at, s_at) = (places.v.1 + straight as i64 * places.v_step, places.s.1 + straight as i64 * self.b.s_step);
        self.e.push(Instruction::with2(Code::Lea_r64_m, V_AT, mem(places.v.0, v_at)));
        self.e.push(Instruction::with2(Code::Lea_r64_m, S_AT, mem(places.s.0, s_at)));
        self.e.push(Instruction::with2(Code::Mov_r32_imm32, TURNS_LOW, turns as i32));
        (places.v, places.s) = ((V_AT, 0), (S_AT, 0));
        let mut turn = self.e.label();
        self.e.bind(&mut turn);
        for kk in 0..k_s {
            self.one_step(v, regs, places, kk, false);
        }
        self.e.add_imm(V_AT, (k_s as i64 * places.v_step) as i32);
        self.e.add_imm(S_AT, (k_s as i64 * self.b.s_step) as i32);
        self.e.dec(TURNS);
        self.e.jump_if_not_zero(turn);
    }

    fn clear(&mut self, v: &VTile, regs: &Registers, set: usize) {
        for j in 0..regs.s {
            for (i, piece) in v.pieces.iter().enumerate() {
                let acc = reg(piece.width, regs.acc(set, j, i));
                self.op3(self.isa.xor(piece.width), acc, acc, acc);
            }
        }
    }

    /// One step of k: the smaller side is held in registers.
    fn one_step(&mut self, v: &VTile, regs: &Registers, at: Places, kk: usize, first: bool) {
        let (sets, free) = (self.b.config.k_l, regs.vecs * regs.s * self.b.config.k_l);
        let (set, count) = (kk % sets, self.isa.registers() - free);
        let from = |i: usize| {
            let along = v.pieces[i].start as i64 * at.v_along;
            mem(at.v.0, at.v.1 + kk as i64 * at.v_step + along)
        };
        let s_along = self.b.s_along;
        let s_step = self.b.s_step;
        let element = |j: usize| (at.s.0, at.s.1 + kk as i64 * s_step + j as i64 * s_along);
        let widest = v.pieces.first().map_or(Width::X, |p| p.width);
        self.prefetch_v(v, (at.v.0, at.v.1 + kk as i64 * at.v_step));
        self.prefetch_s(regs.s, element(0), kk);
        if regs.vecs == 1 && self.isa.evex {
            // Each element is used once: the multiply-add broadcasts it.
            let a = free + kk % count;
            self.load_piece(&v.pieces[0], a, from(0));
            for j in 0..regs.s {
                self.multiply_broadcast(widest, regs.acc(set, j, 0), a, element(j), first);
            }
        } else if regs.vecs <= regs.s {
            for (i, piece) in v.pieces.iter().enumerate() {
                self.load_piece(piece, free + i, from(i));
            }
            let rotate = count - regs.vecs;
            for j in 0..regs.s {
                let one = free + regs.vecs + j % rotate;
                self.broadcast(widest, one, element(j));
                for (i, piece) in v.pieces.iter().enumerate() {
                    self.multiply(piece.width, regs.acc(set, j, i), free + i, one, first);
                }
            }
        } else {
            for j in 0..regs.s {
                self.broadcast(widest, free + j, element(j));
            }
            let rotate = count - regs.s;
            for (i, piece) in v.pieces.iter().enumerate() {
                let a = free + regs.s + i % rotate;
                self.load_piece(piece, a, from(i));
                for j in 0..regs.s {
                    self.multiply(piece.width, regs.acc(set, j, i), free + j, a, first);
                }
            }
        }
    }

    fn broadcast(&mut self, width: Width, to: usize, (base, disp): (Register, i64)) {
        self.op2_load(self.isa.broadcast(width), reg(width, to), mem(base, disp));
    }

    fn multiply(&mut self, width: Width, acc: usize, a: usize, b: usize, first: bool) {
        let code = if first { self.isa.mul(width) } else { self.isa.fma(width) };
        self.op3(code, reg(width, acc), reg(width, a), reg(width, b));
    }

    fn multiply_broadcast(&mut self, width: Width, acc: usize, a: usize, at: (Register, i64), first: bool) {
        let code = if first { self.isa.mul(width) } else { self.isa.fma(width) };
        let from = MemoryOperand::new(at.0, Register::None, 1, at.1, 1, true, Register::None);
        self.e.op3_load(code, reg(width, acc), reg(width, a), from);
    }

    /// Adds the accumulator sets pairwise into set 0.
    fn sum_of_sets(&mut self, v: &VTile, regs: &Registers) {
        let mut sets = self.b.config.k_l;
        while sets > 1 {
            let half = sets.div_ceil(2);
            for set in half..sets {
                for j in 0..regs.s {
                    for (i, piece) in v.pieces.iter().enumerate() {
                        let [to, from] = [set - half, set].map(|set| reg(piece.width, regs.acc(set, j, i)));
                        self.op3(self.isa.add(piece.width), to, to, from);
                    }
                }
            }
            sets = half;
        }
    }
}

/// Where C is, beyond what the pointer has moved.
pub(super) fn place(disp: i64) -> MemoryOperand {
    mem(C, disp)
}
