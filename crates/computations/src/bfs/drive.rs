//! Levels after levels: in one call of all threads, or in a call a phase.

use super::phases::{Level, Phases, State};
use super::{Graph, UNREACHED};
use crate::description::{Failure, Routine};
use crate::device::Device;
use crate::isa::Isa;
use crate::isa::on_isa;
use std::hint::spin_loop;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock, RwLockReadGuard};

/// All levels within one call of all threads, which wait for each other after every phase.
pub(super) fn fused<P: Phases>(graph: &Arc<Graph>, params: &[i64]) -> Routine {
    searching::<P>(graph, params, in_one_call::<P>)
}

/// One call of all threads for every phase; their parts of the frontier are put together in between.
pub(super) fn iterative<P: Phases>(graph: &Arc<Graph>, params: &[i64]) -> Routine {
    searching::<P>(graph, params, call_by_call::<P>)
}

fn searching<P: Phases>(graph: &Arc<Graph>, params: &[i64], search: fn(&State, u32, &Device)) -> Routine {
    let vertices = graph.vertices();
    let words = if P::BITS { vertices.div_ceil(64) } else { 0 };
    let state = Mutex::new(State {
        graph: graph.clone(),
        share: params.first().map_or(1, |s| s.unsigned_abs() as usize),
        labels: (0..vertices).map(|_| AtomicU32::new(UNREACHED)).collect(),
        visited: (0..words).map(|_| AtomicU64::new(0)).collect(),
    });
    Box::new(move |device, inputs, output| {
        let state = &mut *state.lock().unwrap_or_else(PoisonError::into_inner);
        let found = output.as_mut_slice::<u32>().chunks_exact_mut(vertices.max(1));
        for (&source, found) in inputs[2].as_slice::<u32>().iter().zip(found) {
            if source as usize >= vertices {
                return Err(Failure::NoVertex { vertex: source });
            }
            state.labels.iter_mut().for_each(|l| *l.get_mut() = UNREACHED);
            state.visited.iter_mut().for_each(|w| *w.get_mut() = 0);
            if P::FIRST > 0 {
                *state.labels[source as usize].get_mut() = 0;
                if let Some(word) = state.visited.get_mut(source as usize / 64) {
                    *word.get_mut() = 1 << (source % 64);
                }
            }
            search(state, source, device);
            found.iter_mut().zip(&mut state.labels).for_each(|(f, l)| *f = *l.get_mut());
        }
        Ok(())
    })
}

/// The level and phase after this one.
fn next<P: Phases>(state: &State, level: Level, frontier: usize) -> Level {
    let mut out = Level { frontier, phase: (level.phase + 1) % P::PER_LEVEL, ..level };
    out.label += u32::from(out.phase == 0);
    out.upwards = P::upwards(state, out, level.upwards);
    out
}

fn call_by_call<P: Phases>(state: &State, source: u32, device: &Device) {
    let isa = device.isa();
    let mut frontier = vec![source];
    let mut level = Level { label: P::FIRST, frontier: 1, ..Level::default() };
    let vertices = device.ranges(state.labels.len(), 64);
    while !frontier.is_empty() {
        let shares = device.ranges(frontier.len(), 1);
        let mut parts = device.spmd(|thread| {
            let mut out = Vec::new();
            let (share, own) = (&frontier[shares[thread].clone()], vertices[thread].clone());
            on_isa!(isa, P::map(state, level, share, own, &mut out));
            out
        });
        frontier = if parts.len() == 1 { parts.remove(0) } else { parts.concat() };
        level = next::<P>(state, level, frontier.len());
    }
}

type Queue = RwLock<Vec<u32>>;

fn read(queue: &Queue) -> RwLockReadGuard<'_, Vec<u32>> {
    queue.read().unwrap_or_else(PoisonError::into_inner)
}

fn in_one_call<P: Phases>(state: &State, source: u32, device: &Device) {
    let threads = device.threads();
    // Queues of all threads for the frontier that is read and the one that is written, in turn.
    let sides: [Vec<Queue>; 2] = [0, 1].map(|side| {
        let first = |thread| if side + thread == 0 { vec![source] } else { Vec::new() };
        (0..threads).map(|thread| RwLock::new(first(thread))).collect()
    });
    let vertices = device.ranges(state.labels.len(), 64);
    let barrier = Barrier::new(threads);
    device.spmd(|thread| {
        let mut level = Level { label: P::FIRST, frontier: 1, ..Level::default() };
        let mut side = 0;
        while level.frontier > 0 {
            {
                let queues: Vec<_> = sides[side].iter().map(read).collect();
                let mut out = sides[1 - side][thread].write().unwrap_or_else(PoisonError::into_inner);
                out.clear();
                share_of::<P>(state, level, &queues, thread, vertices[thread].clone(), device.isa(), &mut out);
            }
            barrier.wait();
            side = 1 - side;
            level = next::<P>(state, level, sides[side].iter().map(|q| read(q).len()).sum());
        }
    });
}

/// Maps the thread's share of what all queues hold together.
fn share_of<P: Phases>(
    state: &State,
    level: Level,
    queues: &[RwLockReadGuard<'_, Vec<u32>>],
    thread: usize,
    own: Range<usize>,
    isa: Isa,
    out: &mut Vec<u32>,
) {
    if level.upwards {
        return on_isa!(isa, P::map(state, level, &[], own, out));
    }
    let share = level.frontier.div_ceil(queues.len());
    let (mut from, mut to) = (thread * share, (thread + 1) * share);
    for queue in queues {
        let range = from.min(queue.len())..to.min(queue.len());
        if !range.is_empty() {
            on_isa!(isa, P::map(state, level, &queue[range], own.clone(), out));
        }
        (from, to) = (from.saturating_sub(queue.len()), to.saturating_sub(queue.len()));
    }
}

/// Rounds of spinning before a thread sleeps: longer than a short level takes where every thread has a core.
const SPINS: u32 = 2000;

/// All threads wait for the last. They spin, since levels are short, and sleep once that takes long, so that a thread without a
/// core can get one.
struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    turn: AtomicUsize,
    sleepers: Mutex<usize>,
    woken: Condvar,
}

impl Barrier {
    fn new(threads: usize) -> Self {
        let (arrived, turn) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { threads, arrived, turn, sleepers: Mutex::new(0), woken: Condvar::new() }
    }

    fn wait(&self) {
        if self.threads == 1 {
            return;
        }
        let turn = self.turn.load(Ordering::Acquire);
        let waits = || self.turn.load(Ordering::Acquire) == turn;
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            let sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
            self.turn.store(turn.wrapping_add(1), Ordering::Release);
            if *sleepers > 0 {
                self.woken.notify_all();
            }
            return;
        }
        for _ in 0..SPINS {
            if !waits() {
                return;
            }
            spin_loop();
        }
        let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        *sleepers += 1;
        while waits() {
            sleepers = self.woken.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
        }
        *sleepers -= 1;
    }
}
