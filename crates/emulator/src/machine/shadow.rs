//! Who touched shared memory last, and whether a barrier lies between.
//!
//! Every warp has a clock, a stamp of its last barrier, and knows of every other warp the latest stamp that a barrier has
//! ordered before it (a vector clock). An access is ordered after another one if its warp knows the other's stamp.
//! Stamps grow over all blocks that a worker runs, so that memory need not be cleared between blocks: what is older than
//! the block's first stamp was never written.

use crate::finding::{Fault, Hazard};
use crate::types::Space;
use std::ops::Range;

/// Warps of a block, at most.
pub(super) const MAX_WARPS: usize = 32;

/// No single warp: atomic operations of several.
const MANY: u8 = u8::MAX;

/// The last write was an atomic or strong one.
const ATOMIC: u32 = 1 << 8;
/// One asynchronous copy under way; more of them count upwards.
const FLYING: u32 = 1 << 16;

/// What is known of a few bytes of shared memory.
#[derive(Clone, Copy)]
struct Cell {
    /// Stamp of the last write.
    written: u32,
    /// Latest stamp of the reads since then that are not ordered before each other.
    read: u32,
    /// The warps of those reads.
    readers: u32,
    /// The warp that wrote last, [`ATOMIC`], and [`FLYING`] times the asynchronous copies under way.
    tag: u32,
}

impl Cell {
    fn writer(self) -> u8 {
        self.tag as u8
    }
}

/// Cells, an array for each field: checking a range of them is vector code.
#[derive(Debug, Default)]
struct Cells {
    written: Vec<u32>,
    read: Vec<u32>,
    readers: Vec<u32>,
    tags: Vec<u32>,
}

impl Cells {
    fn new(count: usize) -> Self {
        let zeros = || vec![0; count];
        Self { written: zeros(), read: zeros(), readers: zeros(), tags: zeros() }
    }

    fn get(&self, at: usize) -> Option<Cell> {
        Some(Cell {
            written: *self.written.get(at)?,
            read: *self.read.get(at)?,
            readers: *self.readers.get(at)?,
            tag: *self.tags.get(at)?,
        })
    }

    fn set(&mut self, at: usize, cell: Cell) {
        self.written[at] = cell.written;
        self.read[at] = cell.read;
        self.readers[at] = cell.readers;
        self.tags[at] = cell.tag;
    }
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
    cells: Cells,
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
        Self { cells: Cells::new(bytes.div_ceil(cell_bytes as usize)), cell_shift, all, ..Self::default() }
    }

    /// Forgets the last block.
    pub(super) fn begin_block(&mut self) {
        if self.now > u32::MAX / 2 {
            self.cells = Cells::new(self.cells.written.len());
            self.now = 0;
        }
        self.now += 1;
        self.start = self.now;
        self.settled = self.now - 1;
        self.own = [self.now; MAX_WARPS];
        // Everything before the block is ordered before it, nothing within it is.
        self.known = [[self.now - 1; MAX_WARPS]; MAX_WARPS];
        for tag in &mut self.cells.tags {
            *tag &= FLYING - 1;
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
        if self.touch_in_order(warp, offset, bytes, touch) {
            return None;
        }
        let first = (offset >> self.cell_shift) as usize;
        let last = ((offset + bytes - 1) >> self.cell_shift) as usize;
        let mut found: Option<Seen> = None;
        for at in first..=last {
            let fault = match touch {
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

    /// The common access of a range: nothing in it is wrong, and nobody needs to look closer. False where that is not
    /// certain; then nothing has changed.
    #[inline]
    pub(super) fn touch_in_order(&mut self, warp: usize, offset: u64, bytes: u64, touch: Touch) -> bool {
        let first = (offset >> self.cell_shift) as usize;
        let end = ((offset + bytes - 1) >> self.cell_shift) as usize + 1;
        let by_warp = warp as u32;
        match touch {
            Touch::Read => self.read_in_order(warp, first..end),
            Touch::Write => self.write_in_order(warp, first..end, 0..FLYING, by_warp),
            Touch::Launch => self.write_in_order(warp, first..end, 0..FLYING, by_warp | FLYING),
            // The copy of this warp, and no other.
            Touch::Land => self.write_in_order(warp, first..end, by_warp | FLYING..(by_warp | FLYING) + 1, by_warp),
            Touch::Atomic => false,
        }
    }

    /// Cells that were written before the block's last barrier, and read before it or since this warp's last one.
    fn read_in_order(&mut self, warp: usize, range: Range<usize>) -> bool {
        let (start, settled, own, bit) = (self.start, self.settled, self.own[warp], 1 << warp);
        let cells = &mut self.cells;
        let (Some(written), Some(tags)) = (cells.written.get(range.clone()), cells.tags.get(range.clone())) else {
            return false;
        };
        let (Some(read), Some(readers)) = (cells.read.get_mut(range.clone()), cells.readers.get_mut(range)) else {
            return false;
        };
        let mut good = true;
        for ((written, tag), read) in written.iter().zip(tags).zip(&*read) {
            // What the whole block's barrier has ordered is known to every warp.
            let is_written = (*written >= start) & (*written <= settled) & (*tag < FLYING);
            good &= is_written & ((*read == own) | (*read <= settled));
        }
        if good {
            for (read, readers) in read.iter_mut().zip(readers) {
                *readers = if *read == own { *readers | bit } else { bit };
                *read = own;
            }
        }
        good
    }

    /// Cells that other warps have left alone since the block's last barrier, if their tags are what they should be; they
    /// get the new one.
    #[inline]
    fn write_in_order(&mut self, warp: usize, range: Range<usize>, tags_before: Range<u32>, tag: u32) -> bool {
        let (settled, own, bit) = (self.settled, self.own[warp], 1 << warp);
        let cells = &mut self.cells;
        let (Some(read), Some(readers)) = (cells.read.get(range.clone()), cells.readers.get_mut(range.clone())) else {
            return false;
        };
        let (Some(written), Some(tags)) = (cells.written.get_mut(range.clone()), cells.tags.get_mut(range)) else {
            return false;
        };
        let mut good = true;
        for (((written, tag), read), readers) in written.iter().zip(&*tags).zip(read).zip(&*readers) {
            let as_expected = (*tag >= tags_before.start) & (*tag < tags_before.end);
            let write = as_expected & ((*written <= settled) | (*tag & 0xff == warp as u32));
            good &= write & ((*read <= settled) | (*readers & !bit == 0));
        }
        if good {
            written.fill(own);
            tags.fill(tag);
            readers.fill(0);
        }
        good
    }

    /// Whether the cell's last write is ordered before what the warp does now.
    #[inline(always)]
    fn after_write(&self, warp: usize, cell: Cell) -> bool {
        if usize::from(cell.writer()) == warp {
            return true;
        }
        match self.known[warp].get(usize::from(cell.writer())) {
            Some(known) => *known >= cell.written,
            // A warp whose stamp is older has not written at that one.
            None => {
                (0..MAX_WARPS).all(|v| v == warp || self.own[v] < cell.written || self.known[warp][v] >= cell.written)
            }
        }
    }

    fn read(&mut self, warp: usize, at: usize) -> Option<Fault> {
        let mut cell = self.cells.get(at)?;
        let fault = if cell.tag >= FLYING {
            Some(Fault::InFlight)
        } else if cell.written < self.start {
            Some(Fault::Unwritten { space: Space::Shared })
        } else if !self.after_write(warp, cell) {
            Some(Fault::Race { second: Hazard::ReadAfterWrite, first_warp: cell.writer() })
        } else {
            None
        };
        let own = self.own[warp];
        let bit = 1 << warp;
        if cell.read == own {
            cell.readers |= bit;
        } else {
            // Reads that are ordered before this one need no watching any more.
            let known = &self.known[warp];
            let still = warps(cell.readers).filter(|v| *v != warp && known[*v] < cell.read);
            cell.readers = still.fold(bit, |mask, v| mask | 1 << v);
            cell.read = if cell.readers == bit { own } else { cell.read.max(own) };
        }
        self.cells.set(at, cell);
        fault
    }

    fn write(&mut self, warp: usize, at: usize, touch: Touch) -> Option<Fault> {
        let cell = self.cells.get(at)?;
        let atomic = touch == Touch::Atomic;
        let was_atomic = cell.tag & ATOMIC != 0;
        let in_block = cell.written >= self.start;
        let known = &self.known[warp];
        let reader = warps(cell.readers).find(|v| *v != warp && cell.read >= self.start && known[*v] < cell.read);
        let fault = if cell.tag >= FLYING && touch != Touch::Land {
            Some(Fault::InFlight)
        } else if atomic && !in_block {
            Some(Fault::Unwritten { space: Space::Shared })
        } else if in_block && !(atomic && was_atomic) && !self.after_write(warp, cell) {
            let second = if atomic { Hazard::ReadAfterWrite } else { Hazard::WriteAfterWrite };
            Some(Fault::Race { second, first_warp: cell.writer() })
        } else {
            reader.map(|v| Fault::Race { second: Hazard::WriteAfterRead, first_warp: v as u8 })
        };
        let own = self.own[warp];
        let unseen = in_block && cell.written == own;
        let shared = atomic && was_atomic && in_block && usize::from(cell.writer()) != warp && cell.written == own;
        let writer = if shared { MANY } else { warp as u8 };
        // A plain write that nobody else has seen yet stays one.
        let mark = if atomic && (was_atomic || !unseen) { ATOMIC } else { 0 };
        let flying = match (touch, cell.tag / FLYING) {
            (Touch::Launch, flying) => (flying + 1).min(0xffff),
            (Touch::Land, flying) => flying.saturating_sub(1),
            (_, flying) => flying,
        };
        let tag = u32::from(writer) | mark | (flying * FLYING);
        self.cells.set(at, Cell { written: own, readers: if atomic { cell.readers } else { 0 }, tag, ..cell });
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
