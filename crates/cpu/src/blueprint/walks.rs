//! What is prefetched for packing while the panel of `s` stays: its next panel, and at the end of a block of `v` the next block.
//!
//! Packing reads the caller's memory once. Without a prefetch it waits for that memory: some 4% of a large product.

use super::{ALIGN, Blueprint};
use crate::codegen::tile::Walk;
use crate::geometry::Operand;
use crate::split::{Split, fewest_of};

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
        let (strips, _) = strips(self.frame.v, self.fewest().0 * self.v.big_units * self.v.unit, self.deepest_source());
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
        let of = |tiles: usize, threads: usize, block: usize| fewest_of(tiles / threads.max(1), block).max(1);
        let of_split = |split: &Split, threads, block| of(split.tiles(), threads, block);
        (of_split(&self.v, self.v_threads, self.v_block), of_split(&self.s, self.s_threads, self.s_block))
    }

    /// Bytes between strips of an operand: what is contiguous is one strip.
    fn strip_stride(&self, operand: Operand) -> usize {
        (if operand.along == 1 { operand.step } else { operand.along }) * self.source_es()
    }

    /// A walk over `wide` neighbours of a block of k within so many tiles.
    fn walk(&self, operand: Operand, wide: usize, tiles: usize) -> Option<Walk> {
        let turns = (self.deepest() / self.k.unit).max(1);
        let (count, elements) = strips(operand, wide, self.deepest_source());
        let (bytes, stride) = (elements * self.source_es(), self.strip_stride(operand));
        let in_a_tile = count.div_ceil(tiles);
        let walk = if bytes >= 4 * ALIGN {
            // Along strips that are long: each line is met at least once.
            let turn = bytes.div_ceil(turns);
            (in_a_tile, turn.div_ceil(ALIGN), turn)
        } else {
            // From strip to strip.
            let at_once = in_a_tile.div_ceil(turns);
            // A strip that is not aligned may begin at the end of a line.
            let before =
                if bytes.is_multiple_of(ALIGN) && stride.is_multiple_of(ALIGN) { 0 } else { ALIGN - self.source_es() };
            (at_once, (bytes + before).div_ceil(ALIGN), at_once * stride)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::GemmConfig;
    use crate::kernel::CpuGemm;
    use crate::proofs::device;
    use crate::scalar::Kind;
    use std::collections::HashSet;
    use std::sync::Arc;
    use tilewright_core::dtype::DType;
    use tilewright_core::problem::{Bound, Problem};
    use tilewright_core::space::Config;
    use tilewright_ops::gemm::{GemmInput, Layout};

    fn blueprint(input: &GemmInput, words: &str) -> Blueprint {
        let kind = Kind::of(input.dtype());
        let kernel = if kind == Kind::Narrow { CpuGemm::narrow() } else { CpuGemm::new() };
        let problem = Bound::new(Arc::new(kernel), Arc::new(device(64, 1)), input.clone()).unwrap();
        let default = problem.default_point().unwrap();
        let point = Config::parse(words).unwrap().to_point(problem.space().params(), Some(&default.0)).unwrap();
        let at = problem.space().check(&point).unwrap();
        Blueprint::new(input.clone(), GemmConfig::of(&at, kind).unwrap(), 2, (kind, kind == Kind::Narrow))
    }

    /// Lines that so many tiles prefetch from a place on.
    fn walked(walk: Walk, tiles: usize, turns: usize) -> HashSet<usize> {
        let mut lines = HashSet::new();
        for (tile, turn) in (0..tiles).flat_map(|tile| (0..turns).map(move |turn| (tile, turn))) {
            let from = tile * walk.tile as usize + turn * walk.turn as usize;
            for (strip, line) in (0..walk.strips).flat_map(|strip| (0..walk.lines).map(move |line| (strip, line))) {
                lines.insert((from + strip as usize * walk.stride as usize) / ALIGN + line as usize);
            }
        }
        lines
    }

    /// Lines of so many neighbours of a block of k, from its first element on.
    fn needed(b: &Blueprint, operand: Operand, wide: usize) -> HashSet<usize> {
        let all = (0..wide).flat_map(|i| (0..b.deepest_source()).map(move |p| (i, p)));
        all.map(|(i, p)| (i * operand.along + p * operand.step) * b.source_es() / ALIGN).collect()
    }

    #[test]
    fn walks_meet_what_is_packed_next() {
        let words = "order=broadcast,pack_a=1,pack_b=1,m_s=32,n_s=12,u=256,m_l=128,n_l=512,k_s=4,prefetch=8";
        let all = Layout::ALL.into_iter().flat_map(|layout| [1024, 1000].map(|size| (layout, size)));
        for ((layout, size), dtype) in all.flat_map(|at| [DType::F32, DType::Bf16, DType::I8].map(|dtype| (at, dtype)))
        {
            let input = GemmInput::new(size, size, size, dtype, layout);
            let b = blueprint(&input, words);
            let turns = b.deepest() / b.k.unit;
            let panel = b.walk_panel().unwrap();
            let met = walked(panel, b.run_tiles(), turns);
            let panel_lines = needed(&b, b.frame.s, b.s.big_units);
            assert!(
                panel_lines.difference(&met).count() * 20 <= panel_lines.len(),
                "{dtype} {layout} {size} {panel:?}"
            );
            let block = b.walk_block().unwrap();
            let panels = b.block_panels(block);
            assert!(panels <= b.panels(), "{dtype} {layout} {size}: {panels} of {}", b.panels());
            let met = walked(block, panels * b.run_tiles(), turns);
            let block_lines = needed(&b, b.frame.v, b.fewest().0 * b.v.big_units * b.v.unit);
            assert!(
                block_lines.difference(&met).count() * 20 <= block_lines.len(),
                "{dtype} {layout} {size} {block:?}"
            );
            // Not many times as much as is needed.
            assert!(met.len() <= 2 * block_lines.len(), "{dtype} {layout} {size} {block:?}");
        }
    }

    #[test]
    fn nothing_is_walked_where_nothing_is_packed() {
        let input = GemmInput::new(512, 512, 512, DType::F32, Layout::Nn);
        let b = blueprint(&input, "order=broadcast,pack_a=0,pack_b=0,m_s=32,n_s=12,u=256,m_l=128,n_l=512,prefetch=8");
        assert_eq!((b.walk_panel(), b.walk_block()), (None, None));
        let b = blueprint(&input, "order=broadcast,pack_a=1,pack_b=1,m_s=32,n_s=12,u=256,m_l=128,n_l=512,prefetch=0");
        assert_eq!((b.walk_panel(), b.walk_block()), (None, None));
    }
}
