//! Barriers of a block.

use super::Worker;
use super::shadow::warps;
use super::warp::{State, Warp};
use crate::finding::Fault;
use crate::kernel::{Barrier, BarrierKind};
use crate::lanes::{FULL, WARP, store};

/// Who has come to a barrier.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BarrierState {
    /// Warps that arrived, and those of them that wait.
    arrived: u32,
    waiting: u32,
    /// Threads that it waits for; `None` for the whole block.
    expected: Option<u32>,
    /// Threads whose predicate held, and whether all did.
    true_threads: u32,
    some_false: bool,
    /// The instruction of the last arrival.
    pc: u32,
}

impl Worker<'_> {
    pub(super) fn arrive(&mut self, w: usize, warp: &mut Warp, mask: u32, barrier: &Barrier) {
        let lane = mask.trailing_zeros() as usize;
        let value = |slot: u16| warp.registers.words[usize::from(slot)].0[lane];
        let id = value(barrier.id);
        let expected = barrier.threads.map(value);
        if id > 15 || expected.is_some_and(|n| n == 0 || !(n as usize).is_multiple_of(WARP)) {
            return self.stop(w, warp, Fault::BadBarrier);
        }
        // Lanes on another path are missing. Those that have exited count as arrived since sm_70 (CUDA programming guide,
        // independent thread scheduling).
        let kernel = self.setting.kernel;
        if mask != warp.born && (kernel.in_step || mask | warp.gone(&kernel.code) != warp.born) {
            self.fault(w, warp.pc, lane, None, Fault::DivergentBarrier);
        }
        let state = self.barriers[id as usize];
        // `__syncthreads` must be the same one for all threads (CUDA programming guide, synchronization functions). Barriers
        // that name their number of threads may meet others.
        if expected.is_none() && state.arrived != 0 && state.expected.is_none() && state.pc != warp.pc {
            self.fault_after(w, warp.pc, lane, Fault::DivergentBarrier, state.pc);
        }
        let state = &mut self.barriers[id as usize];
        state.arrived |= 1 << w;
        state.expected = expected;
        state.pc = warp.pc;
        if barrier.kind != BarrierKind::Arrive {
            state.waiting |= 1 << w;
            warp.state = State::Waiting(id as u8);
        }
        if !matches!(barrier.kind, BarrierKind::Sync | BarrierKind::Arrive) {
            let holds = warp.registers.predicate(barrier.from) & mask;
            state.true_threads += holds.count_ones();
            state.some_false |= holds != mask;
            warp.reduction = Some((barrier.kind, barrier.to, mask));
        }
        self.open(id as usize, Some((w, warp)));
    }

    /// After a warp has ended: those that wait for the whole block wait for one less.
    pub(super) fn open_barriers(&mut self) {
        for id in 0..self.barriers.len() {
            if self.barriers[id].arrived != 0 {
                self.open(id, None);
            }
        }
    }

    /// Opens a barrier if all have come. `current` is the warp that runs, which is not in its place.
    fn open(&mut self, id: usize, current: Option<(usize, &mut Warp)>) {
        let state = self.barriers[id];
        let running = current.as_ref().map(|(w, _)| *w);
        let ended = |(w, warp): &(usize, &Warp)| Some(*w) != running && warp.state == State::Done;
        let ended = self.warps.iter().enumerate().filter(ended).fold(0u32, |mask, (w, _)| mask | 1 << w);
        let all = FULL >> (WARP - self.warps.len());
        let complete = match state.expected {
            Some(threads) => state.arrived.count_ones() * WARP as u32 >= threads,
            None => state.arrived | ended == all,
        };
        if !complete {
            return;
        }
        if state.expected.is_none() && ended & !state.arrived != 0 && self.setting.kernel.in_step {
            let missing = (ended & !state.arrived).trailing_zeros() as usize;
            self.fault(missing, state.pc, 0, None, Fault::DivergentBarrier);
        }
        let arrived = if state.expected.is_none() { all } else { state.arrived };
        self.shadow.clocks.join(arrived, state.waiting);
        self.barriers[id] = BarrierState::default();
        for w in warps(state.waiting) {
            if Some(w) != running {
                release(&mut self.warps[w], &state);
            }
        }
        if let Some((_, warp)) = current.filter(|(w, _)| state.waiting >> w & 1 != 0) {
            release(warp, &state);
        }
    }

    /// No warp can go on: either all have ended, or they wait for each other.
    pub(super) fn report_deadlock(&mut self) {
        let first_waiting = |id: usize| self.warps.iter().position(|w| w.state == State::Waiting(id as u8));
        for id in 0..self.barriers.len() {
            let state = self.barriers[id];
            let Some(w) = first_waiting(id) else { continue };
            let block = self.warps.iter().map(|w| w.born.count_ones()).sum();
            let arrived = state.arrived.count_ones() * WARP as u32;
            let fault = Fault::Deadlock { arrived, expected: state.expected.unwrap_or(block) };
            self.findings.add(
                state.pc,
                fault,
                crate::finding::Sighting {
                    block: self.block,
                    thread: (w * WARP) as u32,
                    address: None,
                    count: 1,
                    first: None,
                },
            );
        }
    }
}

fn release(warp: &mut Warp, state: &BarrierState) {
    warp.state = State::Ready;
    let Some((kind, to, mask)) = warp.reduction.take() else { return };
    let holds = match kind {
        BarrierKind::CountTrue => return store(&mut warp.registers, to, [state.true_threads; WARP], mask),
        BarrierKind::AllTrue => !state.some_false,
        _ => state.true_threads > 0,
    };
    warp.registers.set_predicate(to, if holds { FULL } else { 0 }, mask);
}
