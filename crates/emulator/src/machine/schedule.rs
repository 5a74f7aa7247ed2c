//! Which warp of a block runs next, and for how many instructions.

use super::Worker;
use super::warp::State;
use crate::behaviour::Schedule;
use crate::finding::Fault;
use crate::sample::mixed;

/// Warp instructions after which another warp of the block gets its turn, so that a warp may wait for another one in a
/// loop.
const TURN: u64 = 50_000;

/// A drawn turn is a power of two of instructions below this one: short turns interleave what is close together, long ones
/// let a warp run far ahead.
const DRAWN_TURNS: u64 = 10;

impl Worker<'_> {
    /// Runs all warps of the block to their ends, or until none can go on.
    pub(super) fn run_warps(&mut self) {
        match self.setting.behaviour.schedule {
            Schedule::Lockstep => self.in_turns(),
            Schedule::Random(seed) => self.at_random(seed),
        }
    }

    fn in_turns(&mut self) {
        while !self.stopped {
            let mut progress = false;
            for w in 0..self.warps.len() {
                if self.warps[w].state == State::Ready && !self.stopped {
                    progress = true;
                    self.run_warp(w, TURN);
                }
            }
            if !progress {
                return self.report_deadlock();
            }
        }
    }

    /// Draws depend on the seed and the block alone, so that threads of the host change nothing.
    fn at_random(&mut self, seed: u64) {
        let mut state = seed;
        state = mixed(&mut state) ^ self.block;
        let mut ready = Vec::with_capacity(self.warps.len());
        while !self.stopped {
            ready.clear();
            ready.extend((0..self.warps.len()).filter(|w| self.warps[*w].state == State::Ready));
            if ready.is_empty() {
                return self.report_deadlock();
            }
            let drawn = mixed(&mut state);
            let w = ready[((drawn >> 32) as usize) % ready.len()];
            self.run_warp(w, 1 << (drawn % DRAWN_TURNS));
        }
    }

    /// Runs a warp for at most so many instructions.
    fn run_warp(&mut self, w: usize, most: u64) {
        let mut warp = std::mem::take(&mut self.warps[w]);
        self.turn(w, &mut warp, most);
        if self.steps > self.setting.limit && warp.state != State::Done {
            self.stop(w, &warp, Fault::Hang { limit: self.setting.limit });
        }
        let done = warp.state == State::Done;
        self.warps[w] = warp;
        if done {
            self.open_barriers();
        }
    }
}
