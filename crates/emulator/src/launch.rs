//! Launching a kernel.

use crate::behaviour::Behaviour;
use crate::counts::{Class, Counter, Counts, Footprint, Site};
use crate::finding::{Fault, Finding, Findings, Sighting, Spot};
use crate::kernel::Kernel;
use crate::machine::{Fences, Footprints, MAX_THREADS, Marks, Setting, Worker, coordinates};
use crate::memory::{BufferId, Memory, MemoryError};
use crate::module::{LoadError, Module};
use crate::sample::Order;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// An argument of a kernel; its length must be that of the parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// The address of a byte of a buffer.
    Buffer(BufferId, u64),
    /// 32 bits.
    U32(u32),
    /// 64 bits.
    U64(u64),
    /// binary32.
    F32(f32),
    /// binary64.
    F64(f64),
    /// Anything else: a structure, or bits of a shorter type.
    Bytes(Vec<u8>),
}

impl Argument {
    /// The address of a buffer's first byte.
    pub fn buffer(id: BufferId) -> Self {
        Self::Buffer(id, 0)
    }

    fn bytes(&self, memory: &Memory) -> Vec<u8> {
        match self {
            Self::Buffer(id, offset) => memory.address(*id).wrapping_add(*offset).to_le_bytes().to_vec(),
            Self::U32(x) => x.to_le_bytes().to_vec(),
            Self::U64(x) => x.to_le_bytes().to_vec(),
            Self::F32(x) => x.to_le_bytes().to_vec(),
            Self::F64(x) => x.to_le_bytes().to_vec(),
            Self::Bytes(bytes) => bytes.clone(),
        }
    }
}

/// What the device allows, and what the emulator does beside running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Static and dynamic shared memory of a block, in bytes. Static memory alone never exceeds 48 KiB.
    pub shared_bytes: u64,
    /// Warp instructions of one block, after which it counts as hung.
    pub block_instructions: u64,
    /// Warp instructions of all blocks together, after which no more blocks begin. Starting a block counts as 64.
    pub launch_instructions: u64,
    /// Different findings in the report.
    pub findings: usize,
    /// Run a part of the blocks alone.
    pub sample: Option<Sample>,
    /// Whether to report [`Footprint`]s: which bytes instructions touch is then kept for the whole launch.
    pub footprints: bool,
}

/// Static shared memory that every device has.
const STATIC_SHARED: u64 = 48 << 10;

impl Default for Limits {
    fn default() -> Self {
        Self {
            shared_bytes: STATIC_SHARED,
            block_instructions: 1 << 30,
            launch_instructions: 1 << 34,
            findings: 100,
            sample: None,
            footprints: false,
        }
    }
}

/// Which blocks of a grid run: corners if they are asked for, and then some that a seed chooses, until about so many thread
/// instructions were executed. They depend on the kernel, the grid and these numbers alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Thread instructions after which no more blocks are added. The first block runs in any case.
    pub thread_instructions: u64,
    /// Blocks after which no more are added.
    pub blocks: u64,
    /// What the choice of blocks depends on.
    pub seed: u64,
    /// Whether the first, the last and the other corners come before all others: where faults are, and not what most blocks do.
    pub corners: bool,
}

/// Which kernel, on how many threads, with what arguments.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The kernel's name.
    pub entry: &'a str,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// In the order of the parameters.
    pub args: &'a [Argument],
    /// Whether its blocks begin while the launch before it on the same memory still runs: threads then wait by
    /// `griddepcontrol.wait` before they touch a buffer that that one uses.
    pub overlaps: bool,
    /// What is allowed.
    pub limits: Limits,
    /// What hardware may choose.
    pub behaviour: Behaviour,
    /// The linear numbers of the blocks that run, rising, where not all do or a sample. Parts of one grid count as launches of their own.
    pub only: Option<&'a [u64]>,
}

impl<'a> Launch<'a> {
    /// A launch without dynamic shared memory.
    pub fn new(entry: &'a str, grid: [u32; 3], block: [u32; 3], args: &'a [Argument]) -> Self {
        Self {
            entry,
            grid,
            block,
            shared_bytes: 0,
            args,
            overlaps: false,
            limits: Limits::default(),
            behaviour: Behaviour::default(),
            only: None,
        }
    }
}

/// A launch that cannot begin.
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// There is no such kernel.
    #[error("no kernel {name:?}: the module has {}", entries.join(", "))]
    NoEntry { name: String, entries: Vec<String> },
    /// The kernel has instructions that the emulator does not run.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The number of arguments differs from that of the parameters.
    #[error("{found} arguments for {expected} parameters of {kernel}")]
    ArgumentCount { kernel: String, expected: usize, found: usize },
    /// An argument has another length than its parameter.
    #[error("an argument of {found} bytes for parameter {name:?} of {expected}")]
    ArgumentSize { name: String, expected: usize, found: usize },
    /// A block has no threads, too many, or not those that the kernel was written for.
    #[error("a block of {block:?} threads: {rule}")]
    Block { block: [u32; 3], rule: String },
    /// A grid without blocks, or longer than the hardware's.
    #[error("a grid of {grid:?} blocks: at least 1 and at most {limit:?} are possible")]
    Grid { grid: [u32; 3], limit: [u32; 3] },
    /// Shared memory does not fit.
    #[error(
        "{need} bytes of shared memory ({statically} of them static): {have} are there, at most {STATIC_SHARED} static"
    )]
    SharedMemory { need: u64, statically: u64, have: u64 },
    /// There is no memory for the module's variables.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// What a launch did, apart from what it wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Exact counts.
    pub counts: Counts,
    /// What is wrong with the kernel: one entry per instruction and kind, in the order of blocks and instructions.
    pub findings: Vec<Finding>,
    /// Lanes of findings that were left out.
    pub dropped: u64,
    /// What of each buffer was touched, by instruction and then by direction; empty unless [`Limits::footprints`] is set.
    pub footprints: Vec<Footprint>,
    /// What hardware may choose, as the launch had it.
    pub behaviour: Behaviour,
    /// Blocks of the grid.
    pub blocks: u64,
    /// Those of them that were left out, because of [`Limits::sample`] or [`Launch::only`].
    pub left_out: u64,
}

/// The hardware's limit of a grid, by axis.
const GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// The hardware's limit of a block, by axis.
const BLOCK: [u32; 3] = [1024, 1024, 64];

impl Module {
    /// Runs a kernel to its end: blocks in parallel on rayon's current pool. Blocks begin in the order of their linear
    /// numbers, so that a block may wait for one with a lower number.
    ///
    /// Faults of the kernel are findings of the report, and it runs on: a bad load gives NaN, a bad store does nothing.
    ///
    /// # Errors
    /// A launch that cannot begin; nothing has run then.
    pub fn launch(&self, launch: &Launch<'_>, memory: &mut Memory) -> Result<Report, LaunchError> {
        let kernel = self.find(launch.entry)?;
        check(kernel, launch)?;
        let params = parameters(kernel, launch.args, memory)?;
        let variables = memory.variables(self)?;
        let variables: Vec<u64> = variables.into_iter().map(|id| memory.address(id)).collect();
        let number = memory.begin_launch(kernel.global_cell_bytes, launch.overlaps);
        let setting = Setting {
            kernel,
            memory,
            launch: number,
            fences: Fences::default(),
            behaviour: launch.behaviour,
            grid: launch.grid,
            block: launch.block,
            dynamic_shared: launch.shared_bytes,
            params: &params,
            variables: &variables,
            limit: launch.limits.block_instructions.min(launch.limits.launch_instructions),
            footprints: launch.limits.footprints,
            overlaps: launch.overlaps,
        };
        let (most, blocks) = (launch.limits.launch_instructions, setting.blocks());
        let (sum, left_out) = match (launch.only, launch.limits.sample) {
            (Some(only), _) => {
                let number = |at: u64| usize::try_from(at).ok().and_then(|at| only.get(at)).copied().unwrap_or(0);
                let there = only.partition_point(|block| *block < blocks) as u64;
                (run(&setting, most, 0..there, number), blocks - there)
            }
            (None, Some(sample)) => run_sample(&setting, most, sample),
            (None, None) => (run(&setting, most, 0..blocks, |at| at), 0),
        };
        let mut report = report(kernel, launch, &sum.counters, sum.findings);
        report.footprints = footprints(kernel, memory, &sum.footprints);
        (report.blocks, report.left_out, report.behaviour) = (blocks, left_out, launch.behaviour);
        Ok(report)
    }

    fn find(&self, entry: &str) -> Result<&Kernel, LaunchError> {
        match self.kernels.get(entry) {
            Some(Ok(kernel)) => Ok(kernel),
            Some(Err(error)) => Err(error.clone().into()),
            None => {
                Err(LaunchError::NoEntry { name: entry.into(), entries: self.entries().map(str::to_owned).collect() })
            }
        }
    }
}

fn check(kernel: &Kernel, launch: &Launch<'_>) -> Result<(), LaunchError> {
    if launch.grid.iter().zip(GRID).any(|(n, most)| *n == 0 || *n > most) {
        return Err(LaunchError::Grid { grid: launch.grid, limit: GRID });
    }
    let threads: u64 = launch.block.iter().map(|n| u64::from(*n)).product();
    let rule = if launch.block.iter().zip(BLOCK).any(|(n, most)| *n == 0 || *n > most) || threads > MAX_THREADS {
        Some(format!("from 1 to {BLOCK:?} by axis and {MAX_THREADS} in all are possible"))
    } else if kernel.max_threads.is_some_and(|most| threads > most) {
        kernel.max_threads.map(|most| format!("the kernel was written for at most {most} (.maxntid)"))
    } else {
        let required = kernel.required_block.filter(|r| *r != launch.block.map(u64::from));
        required.map(|r| format!("the kernel was written for {r:?} (.reqntid)"))
    };
    if let Some(rule) = rule {
        return Err(LaunchError::Block { block: launch.block, rule });
    }
    let statically = u64::from(kernel.shared_bytes);
    let need = statically + u64::from(launch.shared_bytes);
    let have = launch.limits.shared_bytes;
    if need > have || statically > STATIC_SHARED {
        return Err(LaunchError::SharedMemory { need, statically, have });
    }
    Ok(())
}

/// The parameter buffer, as words.
fn parameters(kernel: &Kernel, args: &[Argument], memory: &Memory) -> Result<Vec<u32>, LaunchError> {
    if args.len() != kernel.params.len() {
        let expected = kernel.params.len();
        return Err(LaunchError::ArgumentCount { kernel: kernel.name.clone(), expected, found: args.len() });
    }
    let mut buffer = vec![0u8; kernel.param_bytes.next_multiple_of(4) as usize];
    for (param, arg) in kernel.params.iter().zip(args) {
        let bytes = arg.bytes(memory);
        if bytes.len() != param.bytes as usize {
            let (name, expected) = (param.name.clone(), param.bytes as usize);
            return Err(LaunchError::ArgumentSize { name, expected, found: bytes.len() });
        }
        buffer[param.offset as usize..][..bytes.len()].copy_from_slice(&bytes);
    }
    Ok(buffer.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect())
}

/// What all workers saw.
#[derive(Default)]
struct Sum {
    counters: Vec<Counter>,
    findings: Findings,
    footprints: Footprints,
}

/// Warp instructions that starting a block counts as.
const BLOCK_COST: u64 = 64;

impl Sum {
    fn merge(&mut self, other: Self) {
        self.counters.resize(other.counters.len(), Counter::default());
        for (to, from) in self.counters.iter_mut().zip(&other.counters) {
            to.add(from);
        }
        self.findings.merge(other.findings);
        for (key, marks) in &other.footprints {
            self.footprints.entry(*key).or_default().merge(marks);
        }
    }

    fn threads(&self) -> u64 {
        self.counters.iter().map(|c| c.tally.threads).sum()
    }
}

/// Runs blocks in rounds, each as long as the blocks before it let expect. Also returns how many were left out.
fn run_sample(setting: &Setting<'_>, budget: u64, sample: Sample) -> (Sum, u64) {
    let order = Order::new(setting.grid, sample.seed, sample.corners);
    let (mut sum, mut done) = (Sum::default(), 0);
    while done < order.blocks {
        let spent = sum.threads();
        let left = sample.thread_instructions.saturating_sub(spent);
        let next = match done {
            0 => 1,
            _ if left == 0 || done >= sample.blocks => break,
            // The corners may be shorter than what lies between: they say little of how many blocks will be enough.
            _ if done <= order.corners() => done + 1,
            _ => (done + (left / (spent / done).max(1)).max(1)).min(2 * done),
        };
        let next = next.min(order.blocks).min(sample.blocks.max(1));
        sum.merge(run(setting, budget, done..next, |at| order.block(at)));
        done = next;
    }
    (sum, order.blocks - done)
}

/// The blocks at some places of an order.
fn run(setting: &Setting<'_>, budget: u64, places: Range<u64>, block_at: impl Fn(u64) -> u64 + Sync) -> Sum {
    let blocks = places.end;
    let workers = (rayon::current_num_threads() as u64).min(blocks - places.start);
    let (next, spent) = (AtomicU64::new(places.start), AtomicU64::new(0));
    let sum = Mutex::new(Sum {
        counters: vec![Counter::default(); setting.kernel.code.len()],
        findings: Findings::default(),
        footprints: Footprints::new(),
    });
    let work = || {
        let mut worker = Worker::new(setting);
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= blocks {
                break;
            }
            let block = block_at(place);
            let steps = worker.run_block(block) + BLOCK_COST;
            let before = spent.fetch_add(steps, Ordering::Relaxed);
            if before.saturating_add(steps) > budget && place + 1 < blocks {
                let sighting = Sighting { block, thread: 0, address: None, count: 1, first: None };
                worker.findings.add(0, Fault::Budget { limit: budget }, sighting);
                break;
            }
        }
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        for (to, from) in sum.counters.iter_mut().zip(&worker.counters) {
            to.add(from);
        }
        worker.findings.guesses = worker.guesses();
        sum.findings.merge(worker.findings);
        for (key, marks) in worker.footprints.iter().flatten() {
            sum.footprints.entry(*key).or_default().merge(marks);
        }
    };
    if workers == 1 {
        work();
    } else {
        rayon::scope(|scope| (0..workers).for_each(|_| scope.spawn(|_| work())));
    }
    sum.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn report(kernel: &Kernel, launch: &Launch<'_>, counters: &[Counter], mut findings: Findings) -> Report {
    let mut sites = Vec::new();
    for (note, counter) in kernel.notes.iter().zip(counters) {
        let Some(class) = note.class else { continue };
        sites.push(Site {
            place: note.place,
            opcode: note.opcode.clone(),
            class,
            tally: counter.tally,
            traffic: class.moves_memory().then_some(counter.traffic),
        });
    }
    findings.without_guesses();
    let mut seen = findings.seen;
    seen.sort_by(|a, b| (a.2.block, a.0, &a.1).cmp(&(b.2.block, b.0, &b.1)));
    let kept = seen.len().min(launch.limits.findings);
    let dropped = findings.dropped + seen.drain(kept..).map(|(_, _, s)| s.count).sum::<u64>();
    let findings = seen.into_iter().map(|(pc, fault, sighting)| {
        let spot = spot(kernel, pc);
        Finding {
            fault,
            kernel: kernel.name.clone(),
            place: spot.place,
            opcode: spot.opcode,
            source: spot.source,
            first: sighting.first.map(|pc| self::spot(kernel, pc)),
            block: coordinates(sighting.block, launch.grid),
            thread: coordinates(u64::from(sighting.thread), launch.block),
            address: sighting.address,
            count: sighting.count,
        }
    });
    Report { counts: Counts { sites }, findings: findings.collect(), dropped, ..Report::default() }
}

fn spot(kernel: &Kernel, pc: u32) -> Spot {
    let Some(note) = kernel.notes.get(pc as usize) else { return Spot::default() };
    Spot {
        place: note.place,
        opcode: note.opcode.clone(),
        source: note.line.and_then(|line| kernel.lines.origin(line)),
    }
}

/// Footprints by instruction, and then of all loads and of all stores of each buffer.
fn footprints(kernel: &Kernel, memory: &Memory, found: &Footprints) -> Vec<Footprint> {
    let name = |buffer: usize| memory.regions.get(buffer).map(|r| r.name.clone()).unwrap_or_default();
    let footprint = |site, buffer, is_store, marks: &Marks| Footprint {
        site,
        buffer: name(buffer),
        is_store,
        used: marks.used.len(),
        spanned: marks.spanned.len(),
    };
    let mut arrays: BTreeMap<(usize, bool), Marks> = BTreeMap::new();
    let mut out = Vec::new();
    for (&(pc, buffer), marks) in found {
        let before = kernel.notes.iter().take(pc as usize).filter(|n| n.class.is_some()).count();
        let class = kernel.notes.get(pc as usize).and_then(|n| n.class);
        let is_store = matches!(class, Some(Class::Store(..) | Class::Atomic(..)));
        out.push(footprint(Some(before), buffer, is_store, marks));
        arrays.entry((buffer, is_store)).or_default().merge(marks);
    }
    out.extend(arrays.iter().map(|((buffer, is_store), marks)| footprint(None, *buffer, *is_store, marks)));
    out
}
