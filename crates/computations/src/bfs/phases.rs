//! What one thread does with its share of a frontier (Merrill, Garland and Grimshaw; Beamer for the direction).

use super::{Graph, UNREACHED};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// What a search knows: labels, and bits of visited vertices where a variant uses them.
pub(super) struct State {
    pub(super) graph: Arc<Graph>,
    /// The parameter of [`Direction`].
    pub(super) share: usize,
    pub(super) labels: Vec<AtomicU32>,
    pub(super) visited: Vec<AtomicU64>,
}

/// What is known before a level: the same for all threads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Level {
    /// The label of what is found now.
    pub(super) label: u32,
    /// Which phase of the level.
    pub(super) phase: usize,
    /// Elements of the frontier.
    pub(super) frontier: usize,
    /// Whether vertices look for the frontier, and not the other way.
    pub(super) upwards: bool,
}

/// A way to search, in phases that map one frontier to the next.
pub(super) trait Phases: Copy + Send + Sync + 'static {
    /// Phases a level.
    const PER_LEVEL: usize;
    /// Whether [`State::visited`] is used.
    const BITS: bool = false;
    /// The label that the first phase gives: 0 where the source itself is yet to be visited.
    const FIRST: u32;

    /// Whether this level goes upwards.
    fn upwards(_: &State, _: Level, _was: bool) -> bool {
        false
    }

    /// Maps a share of the frontier, or with `upwards` a share of all vertices.
    fn map(state: &State, level: Level, share: &[u32], own: Range<usize>, out: &mut Vec<u32>);
}

/// Expands vertices and at once drops neighbours that were visited.
#[derive(Clone, Copy)]
pub(super) struct ExpandContract;

#[inline(always)]
fn expand_contract(state: &State, label: u32, share: &[u32], out: &mut Vec<u32>) {
    for &vertex in share {
        for &other in state.graph.neighbours(vertex) {
            let slot = &state.labels[other as usize];
            // Looking first is much cheaper than claiming what was claimed already.
            if slot.load(Relaxed) == UNREACHED && slot.compare_exchange(UNREACHED, label, Relaxed, Relaxed).is_ok() {
                out.push(other);
            }
        }
    }
}

impl Phases for ExpandContract {
    const PER_LEVEL: usize = 1;
    const FIRST: u32 = 1;

    #[inline(always)]
    fn map(state: &State, level: Level, share: &[u32], _: Range<usize>, out: &mut Vec<u32>) {
        expand_contract(state, level.label, share, out);
    }
}

/// Drops what was visited from a frontier of edges' ends, then copies the neighbours of the rest.
#[derive(Clone, Copy)]
pub(super) struct ContractExpand;

impl Phases for ContractExpand {
    const PER_LEVEL: usize = 1;
    const FIRST: u32 = 0;

    #[inline(always)]
    fn map(state: &State, level: Level, share: &[u32], _: Range<usize>, out: &mut Vec<u32>) {
        for &vertex in share {
            let slot = &state.labels[vertex as usize];
            // Two threads may both find it unvisited: then it is expanded twice, with the same labels.
            if slot.load(Relaxed) == UNREACHED {
                slot.store(level.label, Relaxed);
                out.extend_from_slice(state.graph.neighbours(vertex));
            }
        }
    }
}

/// First copies neighbours, then drops what was visited: both frontiers go through memory.
#[derive(Clone, Copy)]
pub(super) struct TwoPhase;

impl Phases for TwoPhase {
    const PER_LEVEL: usize = 2;
    const BITS: bool = true;
    const FIRST: u32 = 1;

    #[inline(always)]
    fn map(state: &State, level: Level, share: &[u32], _: Range<usize>, out: &mut Vec<u32>) {
        if level.phase == 0 {
            for &vertex in share {
                out.extend_from_slice(state.graph.neighbours(vertex));
            }
            return;
        }
        for &vertex in share {
            let (word, bit) = (&state.visited[vertex as usize / 64], 1 << (vertex % 64));
            if word.load(Relaxed) & bit == 0 && word.fetch_or(bit, Relaxed) & bit == 0 {
                state.labels[vertex as usize].store(level.label, Relaxed);
                out.push(vertex);
            }
        }
    }
}

/// Expands while the frontier is small; while it is more than one over `share` of all vertices (Beamer), every unvisited vertex looks
/// for a neighbour in it.
#[derive(Clone, Copy)]
pub(super) struct Direction;

impl Phases for Direction {
    const PER_LEVEL: usize = 1;
    const FIRST: u32 = 1;

    fn upwards(state: &State, level: Level, _: bool) -> bool {
        level.frontier * state.share > state.labels.len()
    }

    #[inline(always)]
    fn map(state: &State, level: Level, share: &[u32], own: Range<usize>, out: &mut Vec<u32>) {
        if !level.upwards {
            return expand_contract(state, level.label, share, out);
        }
        for vertex in own {
            if state.labels[vertex].load(Relaxed) != UNREACHED {
                continue;
            }
            let neighbours = state.graph.neighbours(vertex as u32);
            let above = |&other: &u32| state.labels[other as usize].load(Relaxed) == level.label - 1;
            if neighbours.iter().any(above) {
                state.labels[vertex].store(level.label, Relaxed);
                out.push(vertex as u32);
            }
        }
    }
}
