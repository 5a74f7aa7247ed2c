//! Transposes the operand that is loaded as vectors into a panel, where its neighbours do not lie together.
//!
//! Lanes of 128 bits are put together from runs along k, and transposed within: inserting a lane from memory needs no shuffle.

use iced_x86::{Code, Instruction, Register};

use super::blueprint::Piece;
use super::isa::reg;
use super::routine::{Generator, PANEL, S_AT, TURNS, TURNS_LOW, V, V_AT, VTile};
use crate::codegen::emitter::{LINE, mem};
use crate::codegen::vector::Width;
use crate::scalar::Float;

/// Where a step of a panel is read and written: registers, and displacements for the first step.
#[derive(Clone, Copy)]
struct Places {
    from: (Register, i64),
    to: (Register, i64),
}

impl Generator<'_> {
    /// Writes all steps of a tile's vectors side by side.
    pub(super) fn pack(&mut self, v: &VTile) {
        let (k, per_lane) = (self.b.k, 16 / self.isa.float.bytes());
        for piece in &v.pieces {
            let from = (V, (v.start + piece.start) as i64 * self.b.v_along - self.moved.v);
            let places = Places { from, to: (PANEL, piece.start as i64 * self.b.es()) };
            if k < per_lane {
                self.pack_singly(piece, places);
                continue;
            }
            let looped = self.pack_lines(piece, places);
            // The last steps once more with some before them where they are not as many as a lane has elements.
            let whole = (looped..k / per_lane * per_lane).step_by(per_lane);
            let rest = (k % per_lane > 0).then_some(k - per_lane);
            for first in whole.chain(rest) {
                self.pack_steps(piece, first, places);
            }
        }
    }

    /// Whole cache lines of steps in a loop, where there are several: code for each would leave the first caches of instructions. How many
    /// steps that were.
    fn pack_lines(&mut self, piece: &Piece, places: Places) -> usize {
        let (es, per_lane) = (self.isa.float.bytes(), 16 / self.isa.float.bytes());
        let line = LINE as usize / es;
        let turns = self.b.k / line;
        if turns < 2 {
            return 0;
        }
        self.e.push(Instruction::with2(Code::Lea_r64_m, V_AT, mem(places.from.0, places.from.1)));
        self.e.push(Instruction::with2(Code::Lea_r64_m, S_AT, mem(places.to.0, places.to.1)));
        self.e.push(Instruction::with2(Code::Mov_r32_imm32, TURNS_LOW, turns as i32));
        let mut turn = self.e.label();
        self.e.bind(&mut turn);
        let moving = Places { from: (V_AT, 0), to: (S_AT, 0) };
        (0..line).step_by(per_lane).for_each(|first| self.pack_steps(piece, first, moving));
        self.e.add_imm(V_AT, LINE as i32);
        self.e.add_imm(S_AT, (line as i64 * self.b.pitch()) as i32);
        self.e.dec(TURNS);
        self.e.jump_if_not_zero(turn);
        turns * line
    }

    /// As many steps as a lane of 128 bits has elements.
    fn pack_steps(&mut self, piece: &Piece, first: usize, places: Places) {
        let (es, width) = (self.isa.float.bytes(), piece.width);
        let per_lane = 16 / es;
        let r: Vec<usize> = (0..per_lane).collect();
        for &q in &r {
            for lane in 0..width.bytes() / 16 {
                let row = lane * per_lane + q;
                let place = (places.from.0, places.from.1 + row as i64 * self.b.v_along + (first * es) as i64);
                let at = mem(place.0, place.1);
                let to = reg(width, q);
                if row < piece.valid {
                    self.prefetch_row(place, first);
                }
                match (row < piece.valid, lane) {
                    (true, 0) => self.op2_load(self.isa.load(Width::X), reg(Width::X, q), at),
                    (false, 0) => self.op3(self.isa.xor(width), to, to, to),
                    (true, _) => self.e.push(Instruction::with4(self.isa.insert(width), to, to, at, lane as i32)),
                    (false, _) => {}
                }
            }
        }
        let packed = match self.isa.float {
            Float::F32 => {
                self.transpose(width, [0, 1, 2, 3], 4);
                r
            }
            Float::F64 => {
                self.unpack(width, 8, false, 2, 0, 1);
                self.unpack(width, 8, true, 3, 0, 1);
                vec![2, 3]
            }
        };
        for (q, from) in packed.into_iter().enumerate() {
            let at = mem(places.to.0, places.to.1 + (first + q) as i64 * self.b.pitch());
            self.e.op2_store(self.isa.store(width), at, reg(width, from));
        }
    }

    /// Element by element, where there are fewer steps than a lane has elements.
    fn pack_singly(&mut self, piece: &Piece, Places { from, to }: Places) {
        let es = self.b.es();
        let (load, store) = self.isa.moves(es as usize);
        for step in 0..self.b.k as i64 {
            for row in 0..piece.valid as i64 {
                let xmm = reg(Width::X, row as usize % 4);
                self.op2_load(load, xmm, mem(from.0, from.1 + row * self.b.v_along + step * es));
                self.e.op2_store(store, mem(to.0, to.1 + step * self.b.pitch() + row * es), xmm);
            }
        }
    }
}
