//! Runs blocks of a kernel: warps in lock-step, one block at a time on a thread of the host.

// One index over several arrays of a fixed length is what becomes vector code.
#![allow(clippy::needless_range_loop)]

mod access;
mod again;
mod atomic;
mod barrier;
mod clock;
mod copy;
pub(crate) mod exchange;
mod fences;
mod flight;
mod footprint;
mod matrix;
mod rivals;
mod schedule;
mod shadow;
mod special;
mod survey;
mod taint;
mod tensor;
mod warp;
mod words;

use crate::behaviour::Behaviour;
use crate::counts::Counter;
use crate::finding::{Fault, Findings, Sighting};
use crate::kernel::{Constant, Data, Kernel, Run};
use crate::lanes::{FULL, WARP};
use crate::memory::Memory;
use barrier::BarrierState;
use clock::Clocks;
pub(crate) use exchange::ExchangeFn;
pub(crate) use fences::Fences;
use fences::Lessons;
pub(crate) use footprint::{Footprints, Marks};
pub(crate) use rivals::{LAUNCHES, Traces};
use shadow::{MAX_WARPS, Seen, Shadow};
pub(crate) use special::Special;
use special::Thread;
use std::collections::BTreeMap;
use survey::Pattern;
use taint::Origin;
use warp::{State, Warp};

/// Threads of a block, at most.
pub(crate) const MAX_THREADS: u64 = (MAX_WARPS * WARP) as u64;

/// What all blocks of a launch have in common.
pub(crate) struct Setting<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) memory: &'a Memory,
    /// The number of the launch, from one.
    pub(crate) launch: u64,
    pub(crate) fences: Fences,
    pub(crate) behaviour: Behaviour,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared: u32,
    /// Arguments, as words.
    pub(crate) params: &'a [u32],
    /// Addresses of the module's variables.
    pub(crate) variables: &'a [u64],
    /// Warp instructions that a block may take.
    pub(crate) limit: u64,
    /// Whether to take note of the bytes that instructions touch.
    pub(crate) footprints: bool,
    /// Whether it begins before the launch before it has ended.
    pub(crate) overlaps: bool,
}

impl Setting<'_> {
    /// Blocks of the grid.
    pub(crate) fn blocks(&self) -> u64 {
        self.grid.iter().map(|n| u64::from(*n)).product()
    }

    fn threads(&self) -> usize {
        self.block.iter().map(|n| *n as usize).product()
    }

    fn shared_bytes(&self) -> usize {
        self.kernel.shared_bytes as usize + self.dynamic_shared as usize
    }
}

/// One thread of the host, with room for one block.
pub(crate) struct Worker<'a> {
    setting: &'a Setting<'a>,
    warps: Vec<Warp>,
    shared: Vec<u32>,
    shared_bytes: u64,
    shadow: Shadow,
    local: Vec<u32>,
    /// Of each word of local memory, the block that wrote it, counted from one.
    local_written: Vec<u64>,
    /// Blocks that have run here.
    blocks: u64,
    params: Vec<u32>,
    barriers: [BarrierState; 16],
    /// The last access of each instruction, and then the last destination of each copy.
    patterns: Vec<Option<Box<Pattern>>>,
    pub(crate) counters: Vec<Counter>,
    pub(crate) findings: Findings,
    /// What of global memory was touched, where that is asked for.
    pub(crate) footprints: Option<Footprints>,
    /// Unwritten memory that a load has come to: the lane and what is known of it.
    unwritten: Vec<(usize, Origin)>,
    /// Stores of values that nobody has written to shared memory, by their instruction.
    passed_on: BTreeMap<u32, Origin>,
    /// The same of words of local memory.
    passed_locally: BTreeMap<usize, Origin>,
    /// What a store writes, while it is checked.
    stored: Vec<[u64; WARP]>,
    /// What the block has learned at places where blocks meet.
    lessons: Lessons,
    /// Of each warp the threads before which all launches that this one overlaps with have ended.
    waited: [u32; MAX_WARPS],
    block: u64,
    index: [u32; 3],
    steps: u64,
    /// The block cannot go on.
    stopped: bool,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(setting: &'a Setting<'a>) -> Self {
        let kernel = setting.kernel;
        let count = setting.threads().div_ceil(WARP);
        let value = |constant| match constant {
            Constant::Bits(bits) => bits,
            Constant::Variable(i, offset) => setting.variables.get(i).copied().unwrap_or(0).wrapping_add(offset as u64),
            Constant::DynamicShared(offset) => u64::from(kernel.shared_bytes).wrapping_add(offset as u64),
        };
        let mut warp = Warp::new(kernel);
        warp.set_constants(kernel, value);
        let bytes = setting.shared_bytes();
        let clocks = Clocks::new(FULL >> (WARP - count), kernel.has_fences);
        Self {
            setting,
            warps: vec![warp; count],
            shared: vec![0; bytes.div_ceil(4)],
            shared_bytes: bytes as u64,
            shadow: Shadow::new(bytes, kernel.cell_bytes, clocks, !kernel.in_step),
            local: vec![crate::memory::UNWRITTEN; kernel.local_bytes as usize / 4 * count * WARP],
            local_written: vec![0; kernel.local_bytes as usize / 4 * count * WARP],
            blocks: 0,
            params: setting.params.to_vec(),
            barriers: Default::default(),
            patterns: vec![None; 2 * kernel.code.len()],
            counters: vec![Counter::default(); kernel.code.len()],
            findings: Findings::default(),
            footprints: setting.footprints.then(Footprints::default),
            unwritten: Vec::new(),
            passed_on: BTreeMap::new(),
            passed_locally: BTreeMap::new(),
            stored: Vec::new(),
            lessons: Lessons::default(),
            waited: [0; MAX_WARPS],
            block: 0,
            index: [0; 3],
            steps: 0,
            stopped: false,
        }
    }

    /// Plain loads that race with atomic operations and are meant to.
    pub(crate) fn guesses(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.shadow.guesses)
    }

    /// Runs one block to its end; how many warp instructions that took.
    pub(crate) fn run_block(&mut self, block: u64) -> u64 {
        self.begin(block);
        self.run_warps();
        self.steps
    }

    fn begin(&mut self, block: u64) {
        self.block = block;
        self.blocks += 1;
        self.passed_locally.clear();
        self.index = coordinates(block, self.setting.grid);
        (self.steps, self.stopped) = (0, false);
        self.lessons.clear();
        self.waited = [if self.setting.overlaps { 0 } else { FULL }; MAX_WARPS];
        self.shadow.begin_block();
        self.barriers = Default::default();
        self.shared.fill(crate::memory::UNWRITTEN);
        let (setting, index) = (self.setting, self.index);
        let threads = setting.threads();
        for (w, warp) in self.warps.iter_mut().enumerate() {
            let left = threads - w * WARP;
            let lanes = if left >= WARP { FULL } else { (1 << left) - 1 };
            warp.begin_block(setting.kernel, lanes, |which, lane| {
                which.value(&Thread { setting, index, warp: w, lane })
            });
        }
    }

    /// Runs a warp until it waits, ends, or has run so many instructions.
    fn turn(&mut self, w: usize, warp: &mut Warp, most: u64) {
        let kernel = self.setting.kernel;
        let left = self.setting.limit.saturating_sub(self.steps).saturating_add(1);
        for _ in 0..left.min(most) {
            let pc = warp.pc as usize;
            // The last instruction of every kernel is an exit, and targets lie within the code.
            let Some(inst) = kernel.code.get(pc) else { return self.stop(w, warp, Fault::Trap) };
            let mask = warp.active & (warp.registers.predicates[usize::from(inst.guard)] ^ inst.flip);
            let tally = &mut self.counters[pc].tally;
            let lanes = count(mask);
            tally.issued += 1;
            tally.threads += lanes;
            tally.predicated_off += count(warp.active) - lanes;
            self.steps += 1;
            if warp.taints.any() {
                self.spread(w, warp, mask, pc);
            }
            if let Run::Lanes(run, slots) = &inst.run {
                if mask != 0 {
                    run.0(&mut warp.registers, slots, mask);
                }
                warp.pc += 1;
            } else {
                self.step(w, warp, mask, &inst.run);
            }
            if warp.pc == warp.join || warp.active == 0 {
                warp.settle();
            }
            if warp.state != State::Ready || self.stopped {
                return;
            }
        }
    }

    /// All instructions that are more than lanes on their own.
    fn step(&mut self, w: usize, warp: &mut Warp, mask: u32, run: &Run) {
        match run {
            Run::Branch { target, join } => return branch(warp, mask, *target, *join),
            Run::Table { index, targets, join } => {
                if mask != 0 {
                    return table(warp, mask, *index, targets, *join);
                }
            }
            Run::Exit if mask != 0 => {
                warp.exit(mask);
            }
            _ if mask == 0 => {}
            Run::Load(access) | Run::Store(access) => {
                let is_store = matches!(run, Run::Store(_));
                if !self.again(w, warp, mask, access, is_store) {
                    self.access(w, warp, mask, access, is_store);
                }
            }
            Run::Atomic(atomic) => self.atomic(w, warp, mask, atomic),
            Run::Matrix(matrix) => self.move_matrix(w, warp, mask, matrix),
            Run::Multiply(multiply) => self.multiply(w, warp, mask, multiply),
            Run::Exchange(exchange) => self.exchange(w, warp, mask, exchange),
            Run::Barrier(barrier) => self.arrive(w, warp, mask, barrier),
            Run::Copy(copy) => self.begin_copy(w, warp, mask, copy),
            Run::Commit => warp.flights.commit(mask),
            Run::Wait(keep) => self.land(w, warp, mask, *keep),
            Run::Clock { to, wide, step } => {
                let data = Data { slot: *to, bytes: if *wide { 8 } else { 4 } };
                access::put(&mut warp.registers, data, [self.steps.wrapping_mul(*step); WARP], mask);
            }
            Run::Trap => self.stop(w, warp, Fault::Trap),
            Run::Assert => self.stop(w, warp, Fault::Assertion),
            Run::Fence(scope) => self.shadow.clocks.fence(w, *scope),
            Run::GridWait => self.waited[w] |= mask,
            Run::Lanes(..) | Run::Skip | Run::Exit => {}
        }
        warp.pc += 1;
    }

    /// Ends the block with a fault.
    fn stop(&mut self, w: usize, warp: &Warp, fault: Fault) {
        let lane = warp.active.trailing_zeros().min(31) as usize;
        self.fault(w, warp.pc, lane, None, fault);
        self.stopped = true;
    }

    fn fault(&mut self, w: usize, pc: u32, lane: usize, address: Option<u64>, fault: Fault) {
        let thread = (w * WARP + lane) as u32;
        self.findings.add(pc, fault, Sighting { block: self.block, thread, address, count: 1, first: None });
    }

    /// A fault that another instruction has a part in.
    fn fault_after(&mut self, w: usize, pc: u32, lane: usize, fault: Fault, first: u32) {
        let thread = (w * WARP + lane) as u32;
        let sighting = Sighting { block: self.block, thread, address: None, count: 1, first: Some(first) };
        self.findings.add(pc, fault, sighting);
    }

    /// A fault of shared memory, with the instruction of a race's first access.
    fn seen(&mut self, w: usize, pc: u32, lane: usize, seen: Seen) {
        let (thread, address) = ((w * WARP + lane) as u32, Some(seen.at));
        let sighting = Sighting { block: self.block, thread, address, count: 1, first: seen.first };
        self.findings.add(pc, seen.fault, sighting);
    }
}

/// What a linear number stands for, the first axis first.
pub(crate) fn coordinates(linear: u64, of: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = of.map(u64::from);
    [(linear % x) as u32, (linear / x % y) as u32, (linear / x / y) as u32]
}

/// Lanes of a mask; nearly always all.
#[inline(always)]
fn count(mask: u32) -> u64 {
    if mask == FULL { WARP as u64 } else { u64::from(mask.count_ones()) }
}

fn branch(warp: &mut Warp, taken: u32, target: u32, join: u32) {
    let next = warp.pc + 1;
    let stay = warp.active & !taken;
    match (taken, stay) {
        (0, _) => warp.pc = next,
        (_, 0) => warp.pc = target,
        _ => warp.split(&[(target, taken), (next, stay)], join),
    }
}

fn table(warp: &mut Warp, mask: u32, index: u16, targets: &[u32], join: u32) {
    let lanes = warp.registers.words[usize::from(index)].0;
    let last = targets.len().saturating_sub(1);
    let mut groups: Vec<(u32, u32)> = Vec::new();
    let mut add = |target: u32, lane: u32| match groups.iter_mut().find(|(t, _)| *t == target) {
        Some((_, mask)) => *mask |= lane,
        None => groups.push((target, lane)),
    };
    for lane in shadow::warps(mask) {
        if let Some(target) = targets.get((lanes[lane] as usize).min(last)) {
            add(*target, 1 << lane);
        }
    }
    for lane in shadow::warps(warp.active & !mask) {
        add(warp.pc + 1, 1 << lane);
    }
    warp.split(&groups, join);
}
