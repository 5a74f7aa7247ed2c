//! Prefetches of a batch: while a product is computed, the next one's operands are fetched from the same places, a distance further.
//!
//! Each is asked for where the product at hand loads its own, once: `v` in the first tiles along `s`, `s` in the first tiles along `v`.

use iced_x86::Register;

use super::routine::{Generator, VTile};
use super::tile::place;
use crate::codegen::emitter::{LINE, mem};

/// Which operands the tile at hand fetches for the next product.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ahead {
    pub(super) v: bool,
    pub(super) s: bool,
}

impl Generator<'_> {
    /// The vectors of a step, from where they lie.
    pub(super) fn prefetch_v(&mut self, v: &VTile, (base, disp): (Register, i64)) {
        if !self.ahead.v || self.b.packs() {
            return;
        }
        for piece in &v.pieces {
            let at = disp + piece.start as i64 * self.b.es() + self.b.strides[0];
            self.e.prefetch(mem(base, at));
        }
    }

    /// The elements of a step: rows along k once a line, else the lines of the step.
    pub(super) fn prefetch_s(&mut self, wide: usize, (base, disp): (Register, i64), kk: usize) {
        if !self.ahead.s {
            return;
        }
        let (es, disp) = (self.b.es(), disp + self.b.strides[1]);
        if self.b.s_step == es {
            if kk as i64 * es % LINE == 0 {
                (0..wide as i64).for_each(|j| self.e.prefetch(mem(base, disp + j * self.b.s_along)));
            }
            return;
        }
        for byte in (0..wide as i64 * es).step_by(LINE as usize) {
            self.e.prefetch(mem(base, disp + byte));
        }
    }

    /// A row along k of the operand that is transposed.
    pub(super) fn prefetch_row(&mut self, (base, disp): (Register, i64), first: usize) {
        if self.b.config.prefetch && first as i64 * self.b.es() % LINE == 0 {
            self.e.prefetch(mem(base, disp + self.b.strides[0]));
        }
    }

    /// What a store writes, a product further.
    pub(super) fn prefetch_c(&mut self, disp: i64) {
        if self.b.config.prefetch {
            self.e.prefetch_write(place(disp + self.b.strides[2]));
        }
    }
}
