//! Prefetches of what comes next: of a batch the next product's operands, which lie at the same places, a distance further; of a single
//! product the tile of C that lies behind the one at hand, across vectors.
//!
//! An operand of the next product is asked for where the product at hand loads its own, once: `v` in the first tiles along `s`, `s` in the
//! first tiles along `v`.

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
        if self.b.fetches_product() && first as i64 * self.b.es() % LINE == 0 {
            self.e.prefetch(mem(base, disp + self.b.strides[0]));
        }
    }

    /// What a store writes of a tile so many elements wide, a product further, or a tile further in a single product: a processor foresees
    /// one column of C or a few, not those of a tile beside each other.
    pub(super) fn prefetch_c(&mut self, disp: i64, wide: usize) {
        if self.b.config.prefetch {
            let ahead = if self.b.fetches_product() { self.b.strides[2] } else { wide as i64 * self.b.c_s };
            self.e.prefetch_write(place(disp + ahead));
        }
    }
}
