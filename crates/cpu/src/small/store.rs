//! Writes a tile to C: along vectors, or transposed in registers where C has its neighbours across them.

use iced_x86::{Instruction, Register};

use super::blueprint::Piece;
use super::isa::reg;
use super::routine::{ALPHA, BETA, CONSTANTS, Generator, VTile};
use super::tile::{Registers, place};
use crate::codegen::emitter::mem;
use crate::codegen::vector::Width;
use crate::scalar::Float;
use tilewright_ops::gemm::ScalarClass;

/// A run of C of 16, 8 or 4 bytes that is held in a lane of 128 bits.
#[derive(Clone, Copy)]
struct Run {
    from: usize,
    width: Width,
    lane: usize,
    /// Element of the lane (4 bytes) or half (8 bytes); 0 for whole lanes.
    part: usize,
    bytes: usize,
}

impl Generator<'_> {
    /// The first register that holds no accumulator of a tile.
    fn free(&self, regs: &Registers) -> usize {
        regs.vecs * regs.s * self.b.config.k_l
    }

    /// Multiplies every accumulator by alpha, when alpha is not 1.
    fn scale(&mut self, v: &VTile, regs: &Registers, scratch: usize) {
        if self.b.input.alpha != ScalarClass::Other {
            return;
        }
        let widest = v.pieces.first().map_or(Width::X, |p| p.width);
        self.op2_load(self.isa.broadcast(widest), reg(widest, scratch), mem(CONSTANTS, ALPHA));
        for j in 0..regs.s {
            for (i, piece) in v.pieces.iter().enumerate() {
                let acc = reg(piece.width, regs.acc(0, j, i));
                self.op3(self.isa.mul(piece.width), acc, acc, reg(piece.width, scratch));
            }
        }
    }

    /// Adds what C held to all accumulators before any is written: part of a vector that is loaded behind the store of the column before,
    /// in whose vector it lies, waits until that has left for the cache.
    fn add_along(&mut self, v: &VTile, regs: &Registers, disp: i64) {
        let (free, beta) = (self.free(regs), self.b.input.beta);
        let [factor, loaded] = [free, free + 2];
        let widest = v.pieces.first().map_or(Width::X, |p| p.width);
        if beta == ScalarClass::Other {
            self.op2_load(self.isa.broadcast(widest), reg(widest, factor), mem(CONSTANTS, BETA));
        }
        for j in 0..regs.s {
            for (i, piece) in v.pieces.iter().enumerate() {
                let (width, acc) = (piece.width, reg(piece.width, regs.acc(0, j, i)));
                let at = place(self.along(piece, disp, j));
                let whole = piece.valid == self.isa.lanes(width);
                match beta {
                    ScalarClass::One if whole => self.e.op3_load(self.isa.add(width), acc, acc, at),
                    ScalarClass::Other if whole => self.e.op3_load(self.isa.fma(width), acc, reg(width, factor), at),
                    beta => {
                        self.load_piece(piece, loaded, at);
                        let old = reg(width, loaded);
                        if beta == ScalarClass::One {
                            self.op3(self.isa.add(width), acc, acc, old);
                        } else {
                            self.op3(self.isa.fma(width), acc, reg(width, factor), old);
                        }
                    }
                }
            }
        }
    }

    /// Where column `j` of a piece of a tile lies.
    fn along(&self, piece: &Piece, disp: i64, j: usize) -> i64 {
        disp + j as i64 * self.b.c_s + piece.start as i64 * self.b.es()
    }

    pub(super) fn store_along(&mut self, v: &VTile, regs: &Registers, disp: i64) {
        let free = self.free(regs);
        let [factor, mask] = [free, free + 1];
        self.scale(v, regs, factor);
        if self.b.input.beta != ScalarClass::Zero {
            self.add_along(v, regs, disp);
        }
        for j in 0..regs.s {
            for (i, piece) in v.pieces.iter().enumerate() {
                let at = self.along(piece, disp, j);
                self.store_piece(piece, place(at), regs.acc(0, j, i), mask);
                self.prefetch_c(at, regs.s);
            }
        }
    }

    pub(super) fn store_across(&mut self, v: &VTile, regs: &Registers, disp: i64) {
        let free = self.free(regs);
        self.scale(v, regs, free);
        for (i, piece) in v.pieces.iter().enumerate() {
            for lane in 0..piece.valid as i64 {
                self.prefetch_c(disp + (piece.start as i64 + lane) * self.b.c_v, regs.s);
            }
            let mut j = 0;
            while j < regs.s {
                let group = match (self.isa.float, regs.s - j) {
                    (Float::F32, 4..) => 4,
                    (_, 2..) => 2,
                    _ => 1,
                };
                let r: Vec<usize> = (j..j + group).map(|j| regs.acc(0, j, i)).collect();
                let at = disp + piece.start as i64 * self.b.c_v + j as i64 * self.b.es();
                self.group(piece, &r, free, at);
                j += group;
            }
        }
    }

    /// Transposes a group of accumulators and writes its runs.
    fn group(&mut self, piece: &Piece, r: &[usize], free: usize, disp: i64) {
        let (width, es) = (piece.width, self.isa.float.bytes());
        let (sources, parts) = match *r {
            [a, b, c, d] => {
                self.transpose(width, [a, b, c, d], free);
                (r.to_vec(), 1)
            }
            [a, b] => {
                self.unpack(width, es, true, free + 1, a, b);
                self.unpack(width, es, false, a, a, b);
                (vec![a, free + 1], 8 / es)
            }
            _ => (r.to_vec(), 16 / es),
        };
        // The transposition of four is over with its scratch registers, that of two keeps one.
        let [run, old, factor] = [free, free + 2, free + 3];
        if self.b.input.beta == ScalarClass::Other {
            self.op2_load(self.isa.broadcast(Width::X), reg(Width::X, factor), mem(CONSTANTS, BETA));
        }
        let per_lane = 16 / es;
        for lane in 0..width.bytes() / 16 {
            for (o, &from) in sources.iter().enumerate() {
                for part in 0..parts {
                    let element = lane * per_lane + o * parts + part;
                    if element < piece.valid {
                        let of = Run { from, width, lane, part, bytes: 16 / parts };
                        self.run(of, disp + element as i64 * self.b.c_v, [run, old, factor]);
                    }
                }
            }
        }
    }

    pub(super) fn unpack(&mut self, width: Width, bytes: usize, high: bool, to: usize, a: usize, b: usize) {
        self.op3(self.isa.unpack(width, bytes, high), reg(width, to), reg(width, a), reg(width, b));
    }

    /// Transposes 4 x 4 elements of 4 bytes in each lane of 128 bits, in place, by way of four registers.
    pub(super) fn transpose(&mut self, width: Width, r: [usize; 4], free: usize) {
        let t = [free, free + 1, free + 2, free + 3];
        self.unpack(width, 4, false, t[0], r[0], r[1]);
        self.unpack(width, 4, true, t[1], r[0], r[1]);
        self.unpack(width, 4, false, t[2], r[2], r[3]);
        self.unpack(width, 4, true, t[3], r[2], r[3]);
        self.unpack(width, 8, false, r[0], t[0], t[2]);
        self.unpack(width, 8, true, r[1], t[0], t[2]);
        self.unpack(width, 8, false, r[2], t[1], t[3]);
        self.unpack(width, 8, true, r[3], t[1], t[3]);
    }

    fn run(&mut self, of: Run, disp: i64, [run, old, factor]: [usize; 3]) {
        let xmm = |n: usize| reg(Width::X, n);
        let beta = self.b.input.beta;
        if beta == ScalarClass::Zero && of.bytes == 16 && of.lane > 0 {
            let code = self.isa.extract(of.width);
            return self.e.push(Instruction::with3(code, place(disp), reg(of.width, of.from), of.lane as i32));
        }
        let mut now = self.extract(of, run);
        if beta != ScalarClass::Zero {
            let (load, _) = self.isa.moves(of.bytes);
            self.op2_load(load, xmm(old), place(disp));
            if beta == ScalarClass::Other {
                self.op3(self.isa.mul(Width::X), xmm(old), xmm(old), xmm(factor));
            }
            self.op3(self.isa.add(Width::X), xmm(run), now, xmm(old));
            now = xmm(run);
        }
        let (_, store) = self.isa.moves(of.bytes);
        self.e.op2_store(store, place(disp), now);
    }

    /// Brings the run to the low end of a register of 16 bytes: `to`, or the source itself when it is there.
    fn extract(&mut self, of: Run, to: usize) -> Register {
        let (low, to) = (reg(Width::X, of.from), reg(Width::X, to));
        let whole = if of.lane == 0 {
            low
        } else {
            let code = self.isa.extract(of.width);
            self.e.push(Instruction::with3(code, to, reg(of.width, of.from), of.lane as i32));
            to
        };
        if of.part == 0 {
            return whole;
        }
        if of.bytes == 8 {
            self.op3(self.isa.unpack(Width::X, 8, true), to, whole, whole);
        } else {
            self.e.push(Instruction::with3(self.isa.permute(), to, whole, of.part as i32));
        }
        to
    }
}
