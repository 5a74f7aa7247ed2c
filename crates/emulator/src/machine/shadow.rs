//! Who touched shared memory last, and whether a barrier lies between.
//!
//! Every warp has a clock, a stamp of its last barrier, and knows of every other warp the latest stamp that a barrier has
//! ordered before it (a vector clock). An access is ordered after another one if its warp knows the other's stamp.
//! Stamps grow over all blocks that a worker runs, so that memory need not be cleared between blocks: what is older than
//! the block's first stamp was never written.

use crate::finding::{Fault, Hazard};
use crate::types::Space;

/// Warps of a block, at most.
pub(super) const MAX_WARPS: usize = 32;

/// No single warp: atomic operations of several.
const MANY: u8 = u8::MAX;

/// What is known of a few bytes of shared memory.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    /// Stamp of the last write.
    written: u32,
    /// Latest stamp of the reads since then that are not ordered before each other.
    read: u32,
    /// The warps of those reads.
    readers: u32,
    writer: u8,
    /// The last write was an atomic or strong one.
    atomic: bool,
    /// Asynchronous copies under way.
    flying: u8,
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    Read,
    Write,
    /// Reads and writes as one, or is volatile: does not race with its like.
    Atomic,
    /// An asynchronous copy begins to write.
    Launch,
    /// An asynchronous copy ends.
    Land,
}

/// What is wrong with an access.
pub(super) struct Seen {
    /// The first fault, and where it is.
    pub(super) fault: Fault,
    pub(super) at: u64,
    /// Faulty bytes.
    pub(super) bytes: u64,
}

/// Watches the shared memory of one block at a time.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    cells: Vec<Cell>,
    cell_shift: u32,
    /// The warps of the block.
    all: u32,
    /// The first stamp of the block.
    start: u32,
    now: u32,
    /// The stamp before the last barrier that the whole block passed: what was written then is ordered before everything.
    settled: u32,
    own: [u32; MAX_WARPS],
    /// `known[w][v]`: the latest stamp of warp v that is ordered before warp w.
    known: [[u32; MAX_WARPS]; MAX_WARPS],
}

impl Shadow {
    pub(super) fn new(bytes: usize, cell_bytes: u32, all: u32) -> Self {
        let cell_shift = cell_bytes.trailing_zeros();
        Self { cells: vec![Cell::default(); bytes.div_ceil(cell_bytes as usize)], cell_shift, all, ..Self::default() }
    }

    /// Forgets the last block.
    pub(super) fn begin_block(&mut self) {
        if self.now > u32::MAX / 2 {
            self.cells.fill(Cell::default());
            self.now = 0;
        }
        self.now += 1;
        self.start = self.now;
        self.settled = self.now - 1;
        self.own = [self.now; MAX_WARPS];
        // Everything before the block is ordered before it, nothing within it is.
        self.known = [[self.now - 1; MAX_WARPS]; MAX_WARPS];
        for cell in self.cells.iter_mut().filter(|c| c.flying > 0) {
            cell.flying = 0;
        }
    }

    /// A barrier opens: all of `arrived` are ordered before what `released` do from now on. Both are masks of warps.
    pub(super) fn join(&mut self, arrived: u32, released: u32) {
        let mut all = [0; MAX_WARPS];
        for w in warps(arrived) {
            for (v, known) in all.iter_mut().enumerate() {
                *known = (*known).max(self.known[w][v]);
            }
            all[w] = all[w].max(self.own[w]);
        }
        self.now += 1;
        for w in warps(released) {
            for (v, known) in all.iter().enumerate() {
                self.known[w][v] = self.known[w][v].max(*known);
            }
        }
        for w in warps(arrived | released) {
            self.own[w] = self.now;
        }
        if arrived == self.all && released == self.all {
            self.settled = self.now - 1;
        }
    }

    /// Records an access of `bytes` at an offset within bounds; what is wrong with it, if anything is.
    #[inline]
    pub(super) fn touch(&mut self, warp: usize, offset: u64, bytes: u64, touch: Touch) -> Option<Seen> {
        let first = (offset >> self.cell_shift) as usize;
        let last = ((offset + bytes - 1) >> self.cell_shift) as usize;
        let mut found: Option<Seen> = None;
        for at in first..=last {
            let fault = match touch {
                Touch::Read if self.read_again(warp, at) => None,
                Touch::Read => self.read(warp, at),
                _ => self.write(warp, at, touch),
            };
            if let Some(fault) = fault {
                let first = Seen { fault, at: (at as u64) << self.cell_shift, bytes: 0 };
                found.get_or_insert(first).bytes += 1 << self.cell_shift;
            }
        }
        found
    }

    /// The common read: of what another access since the last barrier has found in order.
    #[inline(always)]
    fn read_again(&mut self, warp: usize, at: usize) -> bool {
        let own = self.own[warp];
        let Some(cell) = self.cells.get_mut(at) else { return true };
        // Written before the block's last barrier, which all warps have passed: `known` is at least that for every warp.
        let settled = cell.written >= self.start && cell.written <= self.settled && cell.flying == 0;
        if settled && cell.read == own {
            cell.readers |= 1 << warp;
        }
        settled && cell.read == own
    }

    /// Whether the cell's last write is ordered before what the warp does now.
    #[inline(always)]
    fn after_write(&self, warp: usize, cell: &Cell) -> bool {
        if usize::from(cell.writer) == warp {
            return true;
        }
        match self.known[warp].get(usize::from(cell.writer)) {
            Some(known) => *known >= cell.written,
            // A warp whose stamp is older has not written at that one.
            None => {
                (0..MAX_WARPS).all(|v| v == warp || self.own[v] < cell.written || self.known[warp][v] >= cell.written)
            }
        }
    }

    fn read(&mut self, warp: usize, at: usize) -> Option<Fault> {
        let cell = *self.cells.get(at)?;
        let fault = if cell.flying > 0 {
            Some(Fault::InFlight)
        } else if cell.written < self.start {
            Some(Fault::Unwritten { space: Space::Shared })
        } else if !self.after_write(warp, &cell) {
            Some(Fault::Race { second: Hazard::ReadAfterWrite, first_warp: cell.writer })
        } else {
            None
        };
        let own = self.own[warp];
        let bit = 1 << warp;
        let cell = &mut self.cells[at];
        if cell.read == own {
            cell.readers |= bit;
        } else {
            // Reads that are ordered before this one need no watching any more.
            let known = &self.known[warp];
            let still = warps(cell.readers).filter(|v| *v != warp && known[*v] < cell.read);
            cell.readers = still.fold(bit, |mask, v| mask | 1 << v);
            cell.read = if cell.readers == bit { own } else { cell.read.max(own) };
        }
        fault
    }

    fn write(&mut self, warp: usize, at: usize, touch: Touch) -> Option<Fault> {
        let cell = *self.cells.get(at)?;
        let atomic = touch == Touch::Atomic;
        let in_block = cell.written >= self.start;
        let known = &self.known[warp];
        let reader = warps(cell.readers).find(|v| *v != warp && cell.read >= self.start && known[*v] < cell.read);
        let fault = if cell.flying > 0 && touch != Touch::Land {
            Some(Fault::InFlight)
        } else if atomic && !in_block {
            Some(Fault::Unwritten { space: Space::Shared })
        } else if in_block && !(atomic && cell.atomic) && !self.after_write(warp, &cell) {
            let second = if atomic { Hazard::ReadAfterWrite } else { Hazard::WriteAfterWrite };
            Some(Fault::Race { second, first_warp: cell.writer })
        } else {
            reader.map(|v| Fault::Race { second: Hazard::WriteAfterRead, first_warp: v as u8 })
        };
        let own = self.own[warp];
        let cell = &mut self.cells[at];
        let unseen = in_block && cell.written == own;
        let shared = atomic && cell.atomic && in_block && usize::from(cell.writer) != warp && cell.written == own;
        cell.writer = if shared { MANY } else { warp as u8 };
        cell.written = own;
        // A plain write that nobody else has seen yet stays one.
        cell.atomic = atomic && (cell.atomic || !unseen);
        if !atomic {
            cell.readers = 0;
        }
        match touch {
            Touch::Launch => cell.flying = cell.flying.saturating_add(1),
            Touch::Land => cell.flying = cell.flying.saturating_sub(1),
            _ => {}
        }
        fault
    }
}

/// The set bits of a mask.
pub(super) fn warps(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = mask.trailing_zeros();
        (mask != 0).then(|| {
            mask &= mask - 1;
            next as usize
        })
    })
}
