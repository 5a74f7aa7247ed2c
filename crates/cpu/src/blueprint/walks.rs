//! What is prefetched for packing while the panel of `s` stays: its next panel, and at the end of a block of `v` the next block.
//!
//! Packing reads the caller's memory once. Without a prefetch it waits for that memory: some 4% of a large product.

use super::{ALIGN, Blueprint};
use crate::codegen::tile::Walk;
use crate::geometry::Operand;
use crate::split::{Split, pieces};
use std::ops::Range;

/// Most places that a turn prefetches; where more are needed, there is too little work to hide them behind.
const MOST: usize = 8;

impl Blueprint {
    /// Whether panels of `s` are packed one by one, each before its first use, and not a block of them at once: where a panel stays,
    /// it is then in the first-level cache, and the panel that comes next can be prefetched meanwhile.
    pub(crate) fn packs_panels(&self) -> bool {
        self.pack_s && !self.keeps_v()
    }

    /// The walk over the panel of `s` that comes next, by the tiles of the panel that stays.
    pub(crate) fn walk_panel(&self) -> Option<Walk> {
        let applies = self.packs_panels() && self.config.prefetch > 0;
        applies.then(|| self.walk(self.frame.s, self.s.big_units, self.run_tiles())).flatten()
    }

    /// The walk over the block of `v` that comes next, by the tiles of the last panels.
    pub(crate) fn walk_block(&self) -> Option<Walk> {
        let applies = self.packs_panels() && self.pack_v && self.config.prefetch > 0;
        let (v, _) = self.fewest();
        let wide = v * self.v.big_units * self.v.unit;
        applies.then(|| self.walk(self.frame.v, wide, self.run_tiles() * self.panels())).flatten()
    }

    /// How many of the last panels walk over the next block of `v`.
    pub(crate) fn block_panels(&self, walk: Walk) -> usize {
        let (strips, _) = strips(self.frame.v, self.fewest().0 * self.v.big_units * self.v.unit, self.deepest());
        let in_a_tile = (walk.tile as usize / (self.strip_stride(self.frame.v)).max(1)).max(1);
        strips.div_ceil(in_a_tile).div_ceil(self.run_tiles())
    }

    /// Tiles of `v` of the smallest run past a panel of `s`.
    fn run_tiles(&self) -> usize {
        self.fewest().0
    }

    /// Panels of `s` of the smallest block.
    fn panels(&self) -> usize {
        self.fewest().1
    }

    /// Tiles of the smallest blocks of `v` and `s` of any thread.
    fn fewest(&self) -> (usize, usize) {
        let of = |tiles: usize, threads: usize, block: usize| {
            let least = tiles / threads.max(1);
            pieces(0..least, block).map(|piece: Range<usize>| piece.len()).min().unwrap_or(1).max(1)
        };
        let of_split = |split: &Split, threads, block| of(split.tiles(), threads, block);
        (of_split(&self.v, self.v_threads, self.v_block), of_split(&self.s, self.s_threads, self.s_block))
    }

    /// Bytes between strips of an operand: what is contiguous is one strip.
    fn strip_stride(&self, operand: Operand) -> usize {
        (if operand.along == 1 { operand.step } else { operand.along }) * self.es()
    }

    /// A walk over `wide` neighbours of a block of k within so many tiles.
    fn walk(&self, operand: Operand, wide: usize, tiles: usize) -> Option<Walk> {
        let turns = (self.deepest() / self.k.unit).max(1);
        let (count, elements) = strips(operand, wide, self.deepest());
        let (bytes, stride) = (elements * self.es(), self.strip_stride(operand));
        let in_a_tile = count.div_ceil(tiles);
        let walk = if bytes >= 4 * ALIGN {
            // Along strips that are long: each line is met at least once.
            let turn = bytes.div_ceil(turns);
            (in_a_tile, turn.div_ceil(ALIGN), turn)
        } else {
            // From strip to strip.
            let at_once = in_a_tile.div_ceil(turns);
            (at_once, bytes.div_ceil(ALIGN), at_once * stride)
        };
        let (strips, lines, turn) = walk;
        let tile = i32::try_from(in_a_tile * stride).ok()?;
        let fits = |x: usize| i32::try_from(x).ok();
        (strips * lines <= MOST).then_some(Walk {
            strips: strips as u32,
            stride: fits(stride)?,
            lines: lines as u32,
            turn: fits(turn)?,
            tile,
        })
    }
}

/// How many contiguous strips hold `wide` neighbours of `deep` steps of k, and the elements of each.
fn strips(operand: Operand, wide: usize, deep: usize) -> (usize, usize) {
    if operand.along == 1 { (deep, wide) } else { (wide, deep) }
}
