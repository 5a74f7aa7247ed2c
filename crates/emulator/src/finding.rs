//! What is wrong with a kernel that ran.

use crate::text::Place;
use crate::types::Space;
use serde::Serialize;
use std::fmt;

/// A fault of a kernel. Numbers are bytes where nothing else is said.
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, thiserror::Error)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// An access that is not within one buffer, or beyond shared, local or parameter memory.
    #[error("{bytes} bytes out of bounds in {space} memory{}", buffer.iter().map(|b| format!(", nearest {b}")).collect::<String>())]
    OutOfBounds { space: Space, bytes: u64, buffer: Option<String> },
    /// An address that is no multiple of the access.
    #[error("misaligned access of {bytes} bytes to {space}")]
    Misaligned { space: Space, bytes: u64 },
    /// A store to memory that is only read.
    #[error("store to {buffer}, which is only read")]
    ReadOnly { buffer: String },
    /// A load of bytes that nobody has written.
    #[error("load of {space} memory that nobody has written")]
    Unwritten { space: Space },
    /// An access to shared memory that an asynchronous copy has not finished writing: a wait is missing.
    #[error("access to shared memory that an asynchronous copy is still writing")]
    InFlight,
    /// Two warps of a block access the same shared memory, one of them writes, and no barrier lies between.
    #[error("race in shared memory with warp {first_warp}: {}", second.what())]
    Race { second: Hazard, first_warp: u8 },
    /// Not all threads of a warp, or fewer than all of the block, arrive at a barrier that wants them all.
    #[error("barrier that not all threads reach together")]
    DivergentBarrier,
    /// A barrier number above 15, or a thread count that is no multiple of 32.
    #[error("barrier with a number above 15 or a partial warp")]
    BadBarrier,
    /// All warps that still run wait at barriers that cannot open.
    #[error("deadlock at a barrier: {arrived} of {expected} threads arrived")]
    Deadlock { arrived: u32, expected: u32 },
    /// The block ran longer than its limit of warp instructions.
    #[error("stopped after {limit} warp instructions of one block")]
    Hang { limit: u64 },
    /// All blocks together ran longer than the launch's limit of warp instructions; blocks that had not begun did not run.
    #[error("the launch stopped after {limit} warp instructions")]
    Budget { limit: u64 },
    /// A lane reads a register of a lane that takes no part, or is not in the member mask it names.
    #[error("exchange with a lane that takes no part")]
    InactiveLane,
    /// `trap`, or code that ran past its end.
    #[error("trap")]
    Trap,
}

/// The second access of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hazard {
    /// It reads what the first wrote.
    ReadAfterWrite,
    /// It overwrites what the first read.
    WriteAfterRead,
    /// It overwrites what the first wrote.
    WriteAfterWrite,
}

impl Hazard {
    fn what(self) -> &'static str {
        match self {
            Self::ReadAfterWrite => "reads what it wrote",
            Self::WriteAfterRead => "overwrites what it read",
            Self::WriteAfterWrite => "overwrites what it wrote",
        }
    }
}

impl Fault {
    /// A short stable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::OutOfBounds { .. } => "out_of_bounds",
            Self::Misaligned { .. } => "misaligned",
            Self::ReadOnly { .. } => "read_only",
            Self::Unwritten { .. } => "unwritten",
            Self::InFlight => "in_flight",
            Self::Race { .. } => "race",
            Self::DivergentBarrier => "divergent_barrier",
            Self::BadBarrier => "bad_barrier",
            Self::Deadlock { .. } => "deadlock",
            Self::Hang { .. } => "hang",
            Self::Budget { .. } => "budget",
            Self::InactiveLane => "inactive_lane",
            Self::Trap => "trap",
        }
    }
}

/// A fault, where it happened first and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub fault: Fault,
    /// The kernel.
    pub kernel: String,
    /// The instruction.
    pub place: Place,
    /// The instruction's name.
    pub opcode: String,
    /// The block where it happened first, in the order of linear block numbers.
    pub block: [u32; 3],
    /// The first thread in it.
    pub thread: [u32; 3],
    /// The address, for faults of memory.
    pub address: Option<u64>,
    /// How many lanes of all blocks it happened to; lanes at one shared address count once.
    pub count: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (b, t) = (self.block, self.thread);
        write!(f, "{}: {}: {}: {}", self.kernel, self.place, self.opcode, self.fault)?;
        if let Some(address) = self.address {
            write!(f, " at {address:#x}")?;
        }
        write!(f, ", block ({}, {}, {}), thread ({}, {}, {})", b[0], b[1], b[2], t[0], t[1], t[2])?;
        if self.count > 1 { write!(f, ", {} times", self.count) } else { Ok(()) }
    }
}

/// A fault before it is reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting {
    pub(crate) block: u64,
    pub(crate) thread: u32,
    pub(crate) address: Option<u64>,
    pub(crate) count: u64,
}

/// Faults of one worker, at most one entry per instruction and kind.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) seen: Vec<(u32, Fault, Sighting)>,
    /// Faults that no longer fitted.
    pub(crate) dropped: u64,
}

/// Entries that a worker keeps.
const KEPT: usize = 1024;

impl Findings {
    pub(crate) fn add(&mut self, pc: u32, fault: Fault, sighting: Sighting) {
        self.take(pc, fault, sighting, KEPT);
    }

    /// Takes in what another worker saw.
    pub(crate) fn merge(&mut self, other: Self) {
        self.dropped += other.dropped;
        other.seen.into_iter().for_each(|(pc, fault, sighting)| self.take(pc, fault, sighting, usize::MAX));
    }

    /// Of two sightings of one fault, that in the earlier block stays.
    fn take(&mut self, pc: u32, fault: Fault, sighting: Sighting, most: usize) {
        match self.seen.iter().position(|(at, f, _)| *at == pc && same(f, &fault)) {
            Some(known) => {
                let (_, old_fault, old) = &mut self.seen[known];
                let count = old.count + sighting.count;
                if sighting.block < old.block {
                    (*old_fault, *old) = (fault, sighting);
                }
                old.count = count;
            }
            None if self.seen.len() < most => self.seen.push((pc, fault, sighting)),
            None => self.dropped += sighting.count,
        }
    }
}

/// Whether two faults are one entry: which warp came first depends on the block, and one entry is enough.
fn same(a: &Fault, b: &Fault) -> bool {
    match (a, b) {
        (Fault::Race { second: a, .. }, Fault::Race { second: b, .. }) => a == b,
        _ => a == b,
    }
}
