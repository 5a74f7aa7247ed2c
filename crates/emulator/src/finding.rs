//! What is wrong with a kernel that ran.

use crate::text::Place;
use crate::types::Space;
use serde::Serialize;
use std::fmt;

/// A fault of a kernel. Numbers are bytes where nothing else is said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// An access that is not within one buffer, or beyond shared, local or parameter memory.
    OutOfBounds {
        /// Where.
        space: Space,
        /// Length of the access.
        bytes: u64,
        /// The buffer that the address is closest to, with its length, if any.
        buffer: Option<String>,
    },
    /// An address that is no multiple of the access.
    Misaligned {
        /// Where.
        space: Space,
        /// Length of the access.
        bytes: u64,
    },
    /// A store to memory that is only read.
    ReadOnly {
        /// The buffer.
        buffer: String,
    },
    /// A load of bytes that nobody has written.
    Unwritten {
        /// Where.
        space: Space,
    },
    /// An access to shared memory that an asynchronous copy has not finished writing: a wait is missing.
    InFlight,
    /// Two warps of a block access the same shared memory, one of them writes, and no barrier lies between.
    Race {
        /// Which access came second.
        second: Hazard,
        /// The warp that was first.
        first_warp: u8,
    },
    /// Not all threads of a warp, or fewer than all of the block, arrive at a barrier that wants them all.
    DivergentBarrier,
    /// A barrier number above 15, or a thread count that is no multiple of 32.
    BadBarrier,
    /// All warps that still run wait at barriers that cannot open.
    Deadlock {
        /// Threads that arrived.
        arrived: u32,
        /// Threads that the barrier waits for.
        expected: u32,
    },
    /// The block ran longer than its limit of warp instructions.
    Hang {
        /// The limit.
        limit: u64,
    },
    /// All blocks together ran longer than the launch's limit of warp instructions; blocks that had not begun did not run.
    Budget {
        /// The limit.
        limit: u64,
    },
    /// A lane reads a register of a lane that takes no part, or is not in the member mask it names.
    InactiveLane,
    /// `trap`, or code that ran past its end.
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

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfBounds { space, bytes, buffer } => {
                write!(f, "{bytes} bytes out of bounds in {space} memory")?;
                buffer.as_ref().map_or(Ok(()), |b| write!(f, ", nearest {b}"))
            }
            Self::Misaligned { space, bytes } => write!(f, "misaligned access of {bytes} bytes to {space}"),
            Self::ReadOnly { buffer } => write!(f, "store to {buffer}, which is only read"),
            Self::Unwritten { space } => write!(f, "load of {space} memory that nobody has written"),
            Self::InFlight => f.write_str("access to shared memory that an asynchronous copy is still writing"),
            Self::Race { second, first_warp } => {
                let what = match second {
                    Hazard::ReadAfterWrite => "reads what it wrote",
                    Hazard::WriteAfterRead => "overwrites what it read",
                    Hazard::WriteAfterWrite => "overwrites what it wrote",
                };
                write!(f, "race in shared memory with warp {first_warp}: {what}")
            }
            Self::DivergentBarrier => f.write_str("barrier that not all threads reach together"),
            Self::BadBarrier => f.write_str("barrier with a number above 15 or a partial warp"),
            Self::Deadlock { arrived, expected } => {
                write!(f, "deadlock at a barrier: {arrived} of {expected} threads arrived")
            }
            Self::Hang { limit } => write!(f, "stopped after {limit} warp instructions of one block"),
            Self::Budget { limit } => write!(f, "the launch stopped after {limit} warp instructions"),
            Self::InactiveLane => f.write_str("exchange with a lane that takes no part"),
            Self::Trap => f.write_str("trap"),
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
        if let Some((_, _, old)) = self.seen.iter_mut().find(|(at, f, _)| *at == pc && same(f, &fault)) {
            old.count += sighting.count;
        } else if self.seen.len() < KEPT {
            self.seen.push((pc, fault, sighting));
        } else {
            self.dropped += sighting.count;
        }
    }

    /// Takes in what another worker saw; of two sightings of one fault, that in the earlier block stays.
    pub(crate) fn merge(&mut self, other: Self) {
        self.dropped += other.dropped;
        for (pc, fault, sighting) in other.seen {
            match self.seen.iter_mut().find(|(at, f, _)| *at == pc && same(f, &fault)) {
                Some((_, old_fault, old)) => {
                    let count = old.count + sighting.count;
                    if sighting.block < old.block {
                        (*old_fault, *old) = (fault, sighting);
                    }
                    old.count = count;
                }
                None => self.seen.push((pc, fault, sighting)),
            }
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
