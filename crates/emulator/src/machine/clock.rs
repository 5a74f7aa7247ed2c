//! What barriers order.
//!
//! Every warp has a clock, a stamp of its last barrier, and knows of every other warp the latest stamp that a barrier has
//! ordered before it (a vector clock). An access is ordered after another one if its warp knows the other's stamp; within
//! a warp, if it is later than the stamp. Stamps grow over all blocks that a worker runs, so that memory need not be
//! cleared between blocks: what is older than the block's first stamp was never written.
//!
//! Fences have stamps of their own, which tell what came before one from what comes after it where a barrier does not.

use super::shadow::{MAX_WARPS, warps};
use crate::kernel::Scope;

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
    /// The stamps of the warps' last barriers or fences.
    pub(super) fine: [u32; MAX_WARPS],
    /// `fenced[w][s][v]`: what warp v did before this stamp came before a fence that is ordered before warp w: one of any
    /// scope, or one that other blocks see. Empty where the kernel has no fences.
    fenced: Vec<[[u32; MAX_WARPS]; 2]>,
}

impl Clocks {
    pub(super) fn new(all: u32, has_fences: bool) -> Self {
        let fenced = vec![[[0; MAX_WARPS]; 2]; if has_fences { MAX_WARPS } else { 0 }];
        Self { all, fenced, ..Self::default() }
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
        self.fine = self.own;
        self.fenced.fill([[self.now; MAX_WARPS]; 2]);
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
            self.fine[w] = self.now;
        }
        if !self.fenced.is_empty() {
            self.join_fences(arrived, released);
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
            self.fine[warp] = now;
        }
    }

    /// What came before fences of `arrived` has come before fences for `released` too.
    fn join_fences(&mut self, arrived: u32, released: u32) {
        let mut all = [[0; MAX_WARPS]; 2];
        let raise = |to: &mut [[u32; MAX_WARPS]; 2], from: &[[u32; MAX_WARPS]; 2]| {
            to.iter_mut().flatten().zip(from.iter().flatten()).for_each(|(to, from)| *to = (*to).max(*from));
        };
        warps(arrived).for_each(|w| raise(&mut all, &self.fenced[w]));
        warps(released).for_each(|w| raise(&mut self.fenced[w], &all));
    }

    /// A warp comes to a fence: what is ordered before it is before the fence.
    pub(super) fn fence(&mut self, warp: usize, scope: Scope) {
        let (Some(now), Some(fenced)) = (self.now.checked_add(1), self.fenced.get_mut(warp)) else { return };
        self.now = now;
        self.fine[warp] = now;
        let mut before = self.known[warp].map(|known| known.saturating_add(1));
        before[warp] = now;
        let scopes = usize::from(scope == Scope::Device) + 1;
        for fenced in fenced.iter_mut().take(scopes) {
            fenced.iter_mut().zip(before).for_each(|(fenced, before)| *fenced = before.max(*fenced));
        }
    }

    /// What came before fences that are ordered before a warp, in stamps that count from the block's first.
    pub(super) fn cover(&self, warp: usize) -> [[u32; MAX_WARPS]; 2] {
        let fenced = self.fenced.get(warp).copied().unwrap_or_default();
        fenced.map(|stamps| stamps.map(|stamp| stamp.saturating_sub(self.start)))
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
