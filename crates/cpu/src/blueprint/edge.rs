//! The edge of a product along vectors: elements that make no whole vector.
//!
//! A vector of them costs as much as a whole one. Of few of them the edge is *turned*: its vectors run along the other side, whose panels
//! have neighbours side by side too, and its few elements are broadcast. For one row of a panel of 12 columns that is one multiply-add of a
//! vector of 16 numbers, and not 12.

use super::Blueprint;
use crate::codegen::tile::{Gathered, Loaded, Tile, TilePrefetch, TileStore};
use crate::config::Store;
use crate::scalar::{Numbers, Stored};
use crate::split::{KINDS, turns_edge};

/// Most accumulators of a turned tile: of AVX2's 16 registers they leave the four that a transposition of C needs.
const ACCUMULATORS: usize = 12;

/// Steps of the reduction from which on what is spared is more than a tile of its own takes, as measured on an Intel Xeon.
const TURNED_K: usize = 12;

/// The part that an edge takes of the multiply-adds that a whole vector does, in tiles `width` elements wide: 1 where it is not turned.
pub(crate) fn share_of_edge(v_len: usize, lanes: usize, (width, k): (usize, usize)) -> f64 {
    let accumulators = width.div_ceil(lanes) * (v_len % lanes);
    let is_turned = k >= TURNED_K && accumulators <= ACCUMULATORS && turns_edge(v_len, lanes, width);
    if is_turned { accumulators as f64 / width as f64 } else { 1.0 }
}

impl Blueprint {
    /// Whether the edge is turned: where [that pays](turns_edge), and both sides can be read so.
    pub(super) fn turns_edge(&self) -> bool {
        let is_plain = self.numbers == Numbers::Real && self.stored == Stored::Same && !self.copies_v();
        let is_contiguous = self.pack_s || self.frame.s.along == 1;
        is_plain && is_contiguous && self.edge_share() < 1.0
    }

    /// The part of the multiply-adds of a whole vector that the edge of this product takes, if its operands allow that.
    pub(crate) fn edge_share(&self) -> f64 {
        share_of_edge(self.frame.v_len, self.v.unit, (self.s.big_units, self.input.k))
    }

    /// Whether tiles of this kind have their vectors along the other side.
    pub(crate) fn is_turned(&self, v_kind: usize) -> bool {
        self.v.apart && v_kind + 1 == KINDS
    }

    /// Lanes of the last vector of a tile that are elements; 0 means all.
    pub(crate) fn tail(&self, v_kind: usize, s_kind: usize) -> usize {
        match v_kind + 1 {
            KINDS if self.is_turned(v_kind) => self.s.units(s_kind) % self.vector.lanes(),
            KINDS => self.v.tail() * self.numbers.parts(),
            _ => 0,
        }
    }

    /// The same as sign bits of 32-bit words, by which AVX's vectors are masked.
    pub(crate) fn mask(&self, v_kind: usize, s_kind: usize) -> [u32; 8] {
        let words = self.tail(v_kind, s_kind) * self.vector.float.bytes() / 4;
        std::array::from_fn(|i| if i < words { u32::MAX } else { 0 })
    }

    /// The routine of a turned tile, for which `v` and `s` of its arguments change places.
    pub(super) fn turned_tile(&self, s_kind: usize, phase: usize) -> Tile {
        let (rows, width, es) = (self.v.tail(), self.s.units(s_kind), self.es());
        let bytes = |elements: usize| (elements * es) as i32;
        let vecs = width.div_ceil(self.vector.lanes());
        let k_s = self.config.k_s as usize;
        let fits = |sets: &usize| k_s.is_multiple_of(*sets) && sets * vecs * rows <= ACCUMULATORS;
        let (v_k, _) = self.s_strides(width);
        Tile {
            vector: self.vector,
            vecs,
            tail: self.tail(KINDS - 1, s_kind),
            s: rows,
            numbers: self.numbers,
            conjugated: [false; 2],
            k_s,
            k_l: [4, 2].into_iter().find(fits).unwrap_or(1),
            v_masked: true,
            copy_v: false,
            loaded_v: Loaded::AsIs,
            flips_s: false,
            gathered: Gathered::None,
            v_k,
            s_k: if self.pack_v { bytes(self.v.unit) } else { self.step_bytes(self.frame.v) as i32 },
            s_s: bytes(1),
            store: if self.reduces() {
                TileStore::Across { v_stride: bytes(self.slice_stride()) }
            } else if self.frame.swapped {
                TileStore::Along { s_stride: bytes(self.frame.c_v) }
            } else {
                TileStore::Across { v_stride: bytes(self.frame.c_s) }
            },
            alpha: self.input.alpha,
            beta: self.beta(phase),
            stream: false,
            prefetch: TilePrefetch { c: self.config.store == Store::Normal, ..TilePrefetch::default() },
        }
    }
}
