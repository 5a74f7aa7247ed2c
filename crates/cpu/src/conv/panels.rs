//! Filters in the order in which register tiles read them.
//!
//! For every block of the reduction and every tile of outputs a panel: step after step, the tile's outputs side by side.

use crate::exec::pack::{Block, Packed, SLACK};
use crate::geometry::Operand;
use crate::split::Split;
use tilewright_ops::conv::Correlation;

/// Where panels lie.
#[derive(Clone, Debug)]
pub(crate) struct Panels {
    outs: Split,
    depth: Split,
    /// Steps of the reduction that follow each other at equal distances: the first, and how many; within one block each.
    runs: Vec<Vec<Run>>,
    /// Elements between outputs of the filter.
    out: usize,
}

/// Steps at equal distances.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The first, within its block, and how many.
    first: usize,
    count: usize,
    /// The element of the first, and how far it is to the next.
    at: usize,
    stride: usize,
}

impl Panels {
    pub(crate) fn new(of: &Correlation, outs: Split, depth: Split) -> Self {
        let taps = of.taps.len().max(1);
        let element = |k: usize| k / taps * of.filter_channel + of.taps[k % taps].filter;
        let block = |k: usize| runs(depth.start(k), depth.size(k), element);
        let tiles = if of.depth() == 0 { 0 } else { depth.tiles() };
        Self { outs, depth, runs: (0..tiles).map(block).collect(), out: of.outs.stride }
    }

    /// Elements of all panels of one group.
    pub(crate) fn len(&self) -> usize {
        self.at(self.runs.len(), 0)
    }

    /// Where the panel of a tile begins.
    pub(crate) fn at(&self, k_block: usize, tile: usize) -> usize {
        let before = if k_block < self.depth.tiles() { self.depth.start(k_block) } else { self.depth.extent };
        let depth = if k_block < self.depth.tiles() { self.depth.size(k_block) } else { 0 };
        let panels = k_block * self.outs.tiles() + tile;
        before * self.outs.start(self.outs.tiles()) + self.outs.start(tile) * depth + panels * SLACK
    }

    /// Elements from the panel of a tile that is so many units wide to the next.
    pub(crate) fn step(&self, k_block: usize, units: usize) -> usize {
        units * self.outs.unit * self.depth.size(k_block) + SLACK
    }

    /// How many panels there are: each can be packed alone.
    pub(crate) fn count(&self) -> usize {
        self.runs.len() * self.outs.tiles()
    }

    /// Packs one of them.
    ///
    /// # Safety
    /// The group's filters must be readable at `from`, and the panel and [`SLACK`] elements behind it writable. `simd` may be set
    /// only on a host with AVX2.
    pub(crate) unsafe fn pack<T: Packed>(&self, number: usize, from: *const T, to: *mut T, simd: bool) {
        let (k_block, tile) = (number / self.outs.tiles(), number % self.outs.tiles());
        let width = self.outs.start(tile + 1) - self.outs.start(tile);
        let to = to.wrapping_add(self.at(k_block, tile));
        for run in &self.runs[k_block] {
            let operand = Operand { along: self.out, step: run.stride };
            let source = from.wrapping_add(run.at).cast();
            let block = Block { source, operand, split: &self.outs, tiles: tile..tile + 1, depth: run.count };
            // SAFETY: the caller's contract. A run's overrun lies in the next one's part, or in the slack.
            unsafe { block.pack(to.wrapping_add(run.first * width), simd) };
        }
    }
}

/// Steps `from..from + count` in runs.
fn runs(from: usize, count: usize, element: impl Fn(usize) -> usize) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for step in 0..count {
        let at = element(from + step);
        if let Some(run) = out.last_mut() {
            let distance = at.wrapping_sub(run.at + (run.count - 1) * run.stride);
            if at > run.at && (run.count == 1 || distance == run.stride) {
                (run.stride, run.count) = (distance, run.count + 1);
                continue;
            }
        }
        out.push(Run { first: step, count: 1, at, stride: 1 });
    }
    out
}
