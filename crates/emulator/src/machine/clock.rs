//! What barriers order.
//!
//! Every warp has a clock, a stamp of its last barrier, and knows of every other warp the latest stamp that a barrier has
//! ordered before it (a vector clock). An access is ordered after another one if its warp knows the other's stamp; within
//! a warp, if it is later than the stamp. Stamps grow over all blocks that a worker runs, so that memory need not be
//! cleared between blocks: what is older than the block's first stamp was never written.

use super::shadow::{MAX_WARPS, warps};

/// The clocks of a block's warps.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// The warps of the block.
    all: u32,
    /// The first stamp of the block.
    pub(super) start: u32,
    now: u32,
    /// The stamp before the last barrier that the whole block passed: what was done then is ordered before everything.
    pub(super) settled: u32,
    pub(super) own: [u32; MAX_WARPS],
    /// `known[w][v]`: the latest stamp of warp v that is ordered before warp w.
    pub(super) known: [[u32; MAX_WARPS]; MAX_WARPS],
}

impl Clocks {
    pub(super) fn new(all: u32) -> Self {
        Self { all, ..Self::default() }
    }

    /// Forgets the last block; whether stamps begin anew.
    pub(super) fn begin_block(&mut self) -> bool {
        let anew = self.now > u32::MAX / 2;
        if anew {
            self.now = 0;
        }
        self.now += 1;
        self.start = self.now;
        self.settled = self.now - 1;
        self.own = [self.now; MAX_WARPS];
        // Everything before the block is ordered before it, nothing within it is.
        self.known = [[self.now - 1; MAX_WARPS]; MAX_WARPS];
        anew
    }

    /// A barrier opens: all of `arrived` are ordered before what `released` do from now on. Both are masks of warps.
    pub(super) fn join(&mut self, arrived: u32, released: u32) {
        let mut all = [0; MAX_WARPS];
        for w in warps(arrived) {
            for (v, known) in all.iter_mut().enumerate() {
                *known = (*known).max(self.known[w][v]);
            }
        }
        // All that the arrived warps have done bears a stamp up to now.
        for w in warps(arrived) {
            all[w] = self.now;
        }
        self.now += 1;
        for w in warps(released) {
            for (v, known) in all.iter().enumerate() {
                self.known[w][v] = self.known[w][v].max(*known);
            }
        }
        for w in warps(arrived | released) {
            self.own[w] = self.now;
        }
        if arrived == self.all && released == self.all {
            self.settled = self.now - 1;
        }
    }

    /// The lanes of a warp wait for each other (`__syncwarp`).
    pub(super) fn join_lanes(&mut self, warp: usize) {
        // Stamps must not run out within a block; a block that uses them up is beyond its limit of instructions.
        if let Some(now) = self.now.checked_add(1) {
            self.now = now;
            self.own[warp] = now;
        }
    }

    /// Whether what warp `first` did at a stamp is ordered before what `warp` does now, as far as warps go.
    #[inline(always)]
    pub(super) fn after(&self, warp: usize, first: u8, stamp: u32) -> bool {
        if usize::from(first) == warp {
            return true;
        }
        match self.known[warp].get(usize::from(first)) {
            Some(known) => *known >= stamp,
            // Several warps. One whose stamp is older has not written at that one.
            None => (0..MAX_WARPS).all(|v| v == warp || self.own[v] < stamp || self.known[warp][v] >= stamp),
        }
    }
}
