//! Transposes the operand that is loaded as vectors into a panel, where its neighbours do not lie together.
//!
//! Lanes of 128 bits are put together from runs along k, and transposed within: inserting a lane from memory needs no shuffle.

use iced_x86::Instruction;

use super::blueprint::Piece;
use super::isa::reg;
use super::routine::{Generator, PANEL, V, VTile};
use crate::codegen::emitter::mem;
use crate::codegen::vector::Width;
use crate::scalar::Float;

impl Generator<'_> {
    /// Writes all steps of a tile's vectors side by side.
    pub(super) fn pack(&mut self, v: &VTile) {
        let (k, per_lane) = (self.b.k, 16 / self.isa.float.bytes());
        for piece in &v.pieces {
            let from = (v.start + piece.start) as i64 * self.b.v_along - self.moved.v;
            let to = piece.start as i64 * self.b.es();
            if k < per_lane {
                self.pack_singly(piece, from, to);
                continue;
            }
            // The last steps once more with some before them where they are not as many as a lane has elements.
            let whole = (0..k / per_lane).map(|i| i * per_lane);
            let rest = (k % per_lane > 0).then_some(k - per_lane);
            for first in whole.chain(rest) {
                self.pack_steps(piece, first, from, to);
            }
        }
    }

    /// As many steps as a lane of 128 bits has elements.
    fn pack_steps(&mut self, piece: &Piece, first: usize, from: i64, to: i64) {
        let (es, width) = (self.isa.float.bytes(), piece.width);
        let per_lane = 16 / es;
        let r: Vec<usize> = (0..per_lane).collect();
        for &q in &r {
            for lane in 0..width.bytes() / 16 {
                let row = lane * per_lane + q;
                let at = mem(V, from + row as i64 * self.b.v_along + (first * es) as i64);
                let to = reg(width, q);
                if row < piece.valid {
                    self.prefetch_row((V, from + row as i64 * self.b.v_along + (first * es) as i64), first);
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
            let at = mem(PANEL, to + (first + q) as i64 * self.b.pitch());
            self.e.op2_store(self.isa.store(width), at, reg(width, from));
        }
    }

    /// Element by element, where there are fewer steps than a lane has elements.
    fn pack_singly(&mut self, piece: &Piece, from: i64, to: i64) {
        let es = self.b.es();
        let (load, store) = self.isa.moves(es as usize);
        for step in 0..self.b.k as i64 {
            for row in 0..piece.valid as i64 {
                let xmm = reg(Width::X, row as usize % 4);
                self.op2_load(load, xmm, mem(V, from + row * self.b.v_along + step * es));
                self.e.op2_store(store, mem(PANEL, to + step * self.b.pitch() + row * es), xmm);
            }
        }
    }
}
