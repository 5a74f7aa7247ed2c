//! Everything derived from a correlation and a configuration.

use super::space::Config;
use crate::codegen::tile::{Gathered, Loaded, Tile, TilePrefetch, TileStore};
use crate::codegen::vector::{Vector, Width};
use crate::scalar::{Float, Numbers};
use crate::split::{KINDS, Split, pieces};
use std::ops::Range;
use tilewright_ops::conv::Correlation;
use tilewright_ops::gemm::ScalarClass;

/// Alignment of every part of the workspace, in bytes.
const ALIGN: usize = 64;
/// A tile that nothing needs.
pub(super) const NONE: usize = usize::MAX;

/// Derived values.
#[derive(Clone, Debug)]
pub(crate) struct Blueprint {
    pub(super) of: Correlation,
    pub(super) config: Config,
    pub(super) vector: Vector,
    /// Tiles of an image: rows and columns.
    pub(super) grid: [usize; 2],
    /// Rows of tiles of all images, in blocks.
    pub(super) blocks: Vec<Range<usize>>,
    /// Most tiles of a block.
    pub(super) most: usize,
    pub(super) outs: Split,
    /// How the tiles of a block are cut, by how many they are.
    pub(super) splits: Vec<Split>,
    /// Channels and outputs in whole vectors.
    pub(super) channels: usize,
    pub(super) out_width: usize,
}

impl Blueprint {
    /// Derives the values; the configuration must be legal for the input.
    pub(super) fn new(of: Correlation, config: Config, float: Float) -> Self {
        let vector = Vector { width: Width::from_bytes(config.vec).unwrap_or(Width::X), float };
        let lanes = vector.lanes();
        let grid = of.grid.map(|positions| positions.div_ceil(config.m));
        let rows = of.images.count * grid[0];
        let each = (config.tiles / grid[1].max(1)).max(1);
        let parts = rows.div_ceil(each).next_multiple_of(config.t.div_ceil(of.groups.len())).clamp(1, rows.max(1));
        let blocks: Vec<Range<usize>> = pieces(0..rows, rows.div_ceil(parts)).collect();
        let mut splits: Vec<Split> = Vec::new();
        for block in &blocks {
            let split = Split::new(block.len() * grid[1], 1, config.s_s);
            if !splits.contains(&split) {
                splits.push(split);
            }
        }
        let most = blocks.iter().map(|block| block.len() * grid[1]).max().unwrap_or(0);
        // In whole vectors, so that nothing is masked.
        let out_width = of.outs.count.next_multiple_of(lanes);
        let outs = Split::new(out_width, lanes, (config.v_s / lanes).max(1));
        let channels = of.channels.count.next_multiple_of(lanes);
        Self { of, config, vector, grid, blocks, most, outs, splits, channels, out_width }
    }

    /// Numbers along a tile of inputs.
    pub(super) fn t(&self) -> usize {
        self.config.m + 2
    }

    /// Bytes of an element.
    pub(super) fn es(&self) -> usize {
        self.vector.float.bytes()
    }

    /// The split of a block.
    pub(super) fn split(&self, block: &Range<usize>) -> usize {
        let count = block.len() * self.grid[1];
        self.splits.iter().position(|split| split.extent == count).unwrap_or(0)
    }

    /// Elements of the transformed filters of a group, for one number of the tile.
    pub(super) fn panels(&self) -> usize {
        self.of.channels.count * self.out_width
    }

    /// Elements of the transformed filters of a group.
    pub(super) fn filters(&self) -> usize {
        self.t() * self.t() * self.panels()
    }

    /// Places of a row of tiles' inputs.
    pub(super) fn columns(&self) -> usize {
        self.grid[1] * self.config.m + 2
    }

    /// Elements of a thread's parts: inputs of a row of tiles, transformed inputs, products, outputs of a row of tiles.
    pub(super) fn parts(&self) -> [usize; 4] {
        let numbers = self.t() * self.t() * self.most;
        let m = self.config.m;
        [
            self.t() * self.columns() * self.channels,
            numbers * self.channels,
            numbers * self.out_width,
            m * self.grid[1] * m * self.out_width,
        ]
    }

    pub(super) fn bytes(&self, elements: usize) -> usize {
        (elements * self.es()).next_multiple_of(ALIGN)
    }

    /// Bytes of the transformed filters of all groups.
    pub(super) fn packed_bytes(&self) -> usize {
        self.bytes(self.filters() * self.of.groups.len())
    }

    /// Bytes of one thread.
    pub(super) fn thread_bytes(&self) -> usize {
        self.parts().into_iter().map(|elements| self.bytes(elements)).sum()
    }

    /// Bytes of workspace.
    pub(super) fn workspace(&self) -> usize {
        self.packed_bytes() + self.config.t * self.thread_bytes()
    }

    /// Every tile that is needed, and its position by split, kind of tiles and kind of outputs.
    pub(super) fn tiles(&self) -> (Vec<Tile>, Vec<[[usize; KINDS]; KINDS]>) {
        let (mut tiles, mut positions) = (Vec::new(), vec![[[NONE; KINDS]; KINDS]; self.splits.len()]);
        for (split, at) in self.splits.iter().zip(&mut positions) {
            for (s, v) in (0..KINDS).flat_map(|s| (0..KINDS).map(move |v| (s, v))) {
                if split.has(s) && self.outs.has(v) {
                    at[s][v] = tiles.len();
                    tiles.push(self.tile(split.units(s), self.outs.units(v)));
                }
            }
        }
        (tiles, positions)
    }

    fn tile(&self, s: usize, vecs: usize) -> Tile {
        let bytes = |elements: usize| (elements * self.es()) as i32;
        Tile {
            vector: self.vector,
            vecs,
            tail: 0,
            s,
            numbers: Numbers::Real,
            conjugated: [false; 2],
            k_s: self.config.k_s,
            k_l: 1,
            v_masked: false,
            copy_v: false,
            loaded_v: Loaded::AsIs,
            flips_s: false,
            gathered: Gathered::None,
            v_k: bytes(vecs * self.vector.lanes()),
            s_k: bytes(1),
            s_s: bytes(self.channels),
            store: TileStore::Along { s_stride: bytes(self.out_width) },
            alpha: ScalarClass::One,
            beta: ScalarClass::Zero,
            stream: false,
            prefetch: TilePrefetch { v_steps: self.config.prefetch, ..TilePrefetch::default() },
        }
    }
}
