//! What is wrong with a kernel that ran.

use crate::lines::Origin;
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
    /// An access to what an earlier launch uses, which this one overlaps with and has not waited for (`griddepcontrol.wait`).
    #[error("access to {buffer}, which the launch before may still use: a wait is missing")]
    Early { buffer: String },
    /// Two threads access the same memory, one of them writes another value, and nothing orders them.
    #[error("race in {space} memory: {} {first}", second.what())]
    Race { space: Space, second: Hazard, first: Racer },
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
    /// An operand that no instruction on any way here has written: a variable without a value.
    #[error("use of a variable that never got a value")]
    Undefined,
    /// An assertion that does not hold.
    #[error("assertion failed")]
    Assertion,
    /// `trap`, or code that ran past its end.
    #[error("trap")]
    Trap,
}

/// Who made the first access of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Racer {
    /// Another warp of the block; no barrier lies between.
    Warp(u8),
    /// Another lane of the same warp, and no `__syncwarp` lies between.
    Lane(u8),
    /// Several lanes of the same warp.
    Lanes,
    /// Several threads, or several atomic operations.
    Several,
    /// A thread of another block: in grids of more than 2^21 the last bits of its number.
    Block(u32),
}

impl fmt::Display for Racer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Warp(warp) => write!(f, "warp {warp}"),
            Self::Lane(lane) => write!(f, "lane {lane} of its own warp"),
            Self::Lanes => f.write_str("other lanes of its own warp"),
            Self::Several => f.write_str("several others"),
            Self::Block(block) => write!(f, "block {block}"),
        }
    }
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
            Self::ReadAfterWrite => "reads a value written by",
            Self::WriteAfterRead => "overwrites a value read by",
            Self::WriteAfterWrite => "overwrites a value written by",
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
            Self::Early { .. } => "early",
            Self::Race { .. } => "race",
            Self::DivergentBarrier => "divergent_barrier",
            Self::BadBarrier => "bad_barrier",
            Self::Deadlock { .. } => "deadlock",
            Self::Hang { .. } => "hang",
            Self::Budget { .. } => "budget",
            Self::InactiveLane => "inactive_lane",
            Self::Undefined => "undefined",
            Self::Assertion => "assertion",
            Self::Trap => "trap",
        }
    }
}

/// An instruction, in the text and in the source that the text was compiled from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spot {
    /// Where it stands in the text.
    pub place: Place,
    /// Its name.
    pub opcode: String,
    /// The line of the source, if the text says it (`.loc`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
}

/// A fault, where it happened first and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub fault: Fault,
    /// The kernel.
    pub kernel: String,
    /// The instruction, in the text.
    pub place: Place,
    /// The instruction's name.
    pub opcode: String,
    /// The instruction's line in the source that the text was compiled from, if the text says it (`.loc`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
    /// The instruction of the first access of a race, or of the warps at another barrier, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Spot>,
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
        match &self.source {
            Some(source) => write!(f, "{}: {source}: {} ({} of the PTX)", self.kernel, self.opcode, self.place)?,
            None => write!(f, "{}: {}: {}", self.kernel, self.place, self.opcode)?,
        }
        write!(f, ": {}", self.fault)?;
        if let Some(first) = &self.first {
            let whole = first.source.as_ref().map_or_else(|| first.place.to_string(), ToString::to_string);
            write!(f, " ({whole})")?;
        }
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
    /// The instruction of the first access of a race.
    pub(crate) first: Option<u32>,
}

/// Faults of one worker, at most one entry per instruction and kind.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) seen: Vec<(u32, Fault, Sighting)>,
    /// Faults that no longer fitted.
    pub(crate) dropped: u64,
    /// Plain loads that race with atomic operations and are meant to.
    pub(crate) guesses: Vec<u32>,
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
        self.guesses.extend(other.guesses);
        other.seen.into_iter().for_each(|(pc, fault, sighting)| self.take(pc, fault, sighting, usize::MAX));
    }

    /// Leaves out races of plain loads with the atomic operations that they are the first guess of.
    pub(crate) fn without_guesses(&mut self) {
        let guesses = std::mem::take(&mut self.guesses);
        self.seen.retain(|(pc, fault, sighting)| match fault {
            Fault::Race { space: Space::Shared, second: Hazard::ReadAfterWrite, .. } => !guesses.contains(pc),
            Fault::Race { space: Space::Shared, second: Hazard::WriteAfterRead, .. } => {
                !sighting.first.is_some_and(|first| guesses.contains(&first))
            }
            _ => true,
        });
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
        (Fault::Race { space: s, second: a, .. }, Fault::Race { space: t, second: b, .. }) => (s, a) == (t, b),
        _ => a == b,
    }
}
