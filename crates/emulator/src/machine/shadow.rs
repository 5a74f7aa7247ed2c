//! Who touched shared memory last, and whether a barrier lies between.
//!
//! Every cell has the stamps of its last write and of its last reads ([`Clocks`]), and who made them.

use super::clock::Clocks;
use crate::finding::{Fault, Hazard, Racer};
use crate::types::Space;
use std::ops::Range;

/// Warps of a block, at most.
pub(super) const MAX_WARPS: usize = 32;

/// No single warp: atomic operations of several.
const MANY: u8 = u8::MAX;
/// No single lane of a warp.
pub(super) const LANES: u32 = 32;

/// The last write was an atomic or volatile one.
const ATOMIC: u32 = 1 << 8;
/// It was a volatile one.
const VOLATILE: u32 = 1 << 9;
/// All reads since then were atomic or volatile.
const STRONG_READS: u32 = 1 << 10;
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
    /// The warp that wrote last, flags, and [`FLYING`] times the asynchronous copies under way.
    tag: u32,
    /// The instruction and lane of the last write, and of the last read.
    write_by: u32,
    read_by: u32,
}

/// An instruction and a lane, or [`LANES`], in a word.
fn packed(pc: u32, lane: u32) -> u32 {
    pc << 6 | lane
}

fn lane_of(packed: u32) -> u32 {
    packed & 63
}

impl Cell {
    fn writer(self) -> u8 {
        self.tag as u8
    }

    /// The last write was atomic, not just volatile.
    fn was_atomic_write(self) -> bool {
        self.tag & (ATOMIC | VOLATILE) == ATOMIC
    }
}

/// Cells, an array for each field: checking a range of them is vector code.
#[derive(Debug, Default)]
struct Cells {
    written: Vec<u32>,
    read: Vec<u32>,
    readers: Vec<u32>,
    tags: Vec<u32>,
    write_by: Vec<u32>,
    read_by: Vec<u32>,
}

impl Cells {
    fn new(count: usize) -> Self {
        let zeros = || vec![0; count];
        Self { written: zeros(), read: zeros(), readers: zeros(), tags: zeros(), write_by: zeros(), read_by: zeros() }
    }

    fn get(&self, at: usize) -> Option<Cell> {
        Some(Cell {
            written: *self.written.get(at)?,
            read: *self.read.get(at)?,
            readers: *self.readers.get(at)?,
            tag: *self.tags.get(at)?,
            write_by: *self.write_by.get(at)?,
            read_by: *self.read_by.get(at)?,
        })
    }

    fn set(&mut self, at: usize, cell: Cell) {
        self.written[at] = cell.written;
        self.read[at] = cell.read;
        self.readers[at] = cell.readers;
        self.tags[at] = cell.tag;
        self.write_by[at] = cell.write_by;
        self.read_by[at] = cell.read_by;
    }
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    Read,
    /// A volatile load: does not race with volatile stores of other warps.
    VolatileRead,
    /// A load that is relaxed or stronger.
    AtomicRead,
    Write,
    VolatileWrite,
    /// Reads and writes as one, or is a store that is relaxed or stronger: does not race with its like.
    Atomic,
    /// An asynchronous copy begins to write.
    Launch,
    /// An asynchronous copy ends.
    Land,
}

impl Touch {
    fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::VolatileRead | Self::AtomicRead)
    }

    /// Does not race with its like in other warps.
    pub(super) fn is_strong(self) -> bool {
        !matches!(self, Self::Read | Self::Write | Self::Launch | Self::Land)
    }

    /// Does not race with its like in other lanes of the warp: what is only volatile assumes that lanes run in step.
    fn is_atomic(self) -> bool {
        matches!(self, Self::AtomicRead | Self::Atomic)
    }
}

/// Who accesses: an instruction of a warp.
#[derive(Clone, Copy, Debug)]
pub(super) struct By {
    pub(super) warp: usize,
    pub(super) pc: u32,
    pub(super) touch: Touch,
}

/// What is wrong with an access.
pub(super) struct Seen {
    pub(super) fault: Fault,
    /// Where it is.
    pub(super) at: u64,
    /// The instruction of a race's first access.
    pub(super) first: Option<u32>,
}

/// Watches the shared memory of one block at a time.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    cells: Cells,
    cell_shift: u32,
    /// Lanes of a warp race too: they run in step here, but on hardware since sm_70 only `__syncwarp` orders them.
    lanes_race: bool,
    /// The clocks of the block's warps.
    pub(super) clocks: Clocks,
    /// Plain loads whose lanes did an atomic operation on the same cell before anything ordered them: the test before an
    /// atomic maximum, the first guess of a loop around a compare-and-swap. They race, and are meant to.
    pub(super) guesses: Vec<u32>,
}

impl Shadow {
    pub(super) fn new(bytes: usize, cell_bytes: u32, clocks: Clocks, lanes_race: bool) -> Self {
        let cell_shift = cell_bytes.trailing_zeros();
        let cells = Cells::new(bytes.div_ceil(cell_bytes as usize));
        Self { cells, cell_shift, lanes_race, clocks, guesses: Vec::new() }
    }

    /// Bytes of a cell are a power of two: this one.
    pub(super) fn cell_shift(&self) -> u32 {
        self.cell_shift
    }

    /// Forgets the last block.
    pub(super) fn begin_block(&mut self) {
        if self.clocks.begin_block() {
            self.cells = Cells::new(self.cells.written.len());
        }
        for tag in &mut self.cells.tags {
            *tag &= FLYING - 1;
        }
    }

    /// Records an access of `bytes` at an offset within bounds, by a lane or several; what is wrong with it, if anything is.
    #[inline]
    pub(super) fn touch(&mut self, by: By, lane: u32, offset: u64, bytes: u64) -> Option<Seen> {
        if self.touch_in_order(by, offset, bytes, std::iter::repeat(lane)) {
            return None;
        }
        let first = (offset >> self.cell_shift) as usize;
        let last = ((offset + bytes - 1) >> self.cell_shift) as usize;
        let mut found = None;
        for at in first..=last {
            let fault = if by.touch.is_read() { self.read(by, lane, at) } else { self.write(by, lane, at) };
            if let Some((fault, first)) = fault {
                found.get_or_insert(Seen { fault, at: (at as u64) << self.cell_shift, first });
            }
        }
        found
    }

    /// What was stored there is a value that nobody has written.
    pub(super) fn unwrite(&mut self, offset: u64, bytes: u64) {
        let cells = (offset >> self.cell_shift) as usize..((offset + bytes - 1) >> self.cell_shift) as usize + 1;
        self.cells.written.get_mut(cells).into_iter().flatten().for_each(|written| *written = 0);
    }

    /// The common access of a range: nothing in it is wrong, and nobody needs to look closer. False where that is not
    /// certain; then nothing has changed. `lanes` are the lane of each cell from the first on, or [`LANES`].
    #[inline]
    pub(super) fn touch_in_order(
        &mut self,
        by: By,
        offset: u64,
        bytes: u64,
        lanes: impl Iterator<Item = u32> + Clone,
    ) -> bool {
        let first = (offset >> self.cell_shift) as usize;
        let end = ((offset + bytes - 1) >> self.cell_shift) as usize + 1;
        let by_warp = by.warp as u32;
        match by.touch {
            Touch::Read => self.read_in_order(by, first..end, lanes),
            Touch::Write => self.write_in_order(by, first..end, 0..FLYING, by_warp, lanes),
            Touch::Launch => self.write_in_order(by, first..end, 0..FLYING, by_warp | FLYING, lanes),
            // The copy of this warp, and no other.
            Touch::Land => {
                let before = by_warp | FLYING..(by_warp | FLYING) + 1;
                self.write_in_order(by, first..end, before, by_warp, lanes)
            }
            _ => false,
        }
    }

    /// Cells that were written before the block's last barrier, and read before it or since this warp's last one.
    fn read_in_order(&mut self, by: By, range: Range<usize>, lanes: impl Iterator<Item = u32> + Clone) -> bool {
        let (start, settled, bit) = (self.clocks.start, self.clocks.settled, 1 << by.warp);
        let own = self.clocks.own[by.warp];
        let cells = &mut self.cells;
        let (Some(written), Some(tags)) = (cells.written.get(range.clone()), cells.tags.get(range.clone())) else {
            return false;
        };
        let (Some(read), Some(readers)) = (cells.read.get_mut(range.clone()), cells.readers.get_mut(range.clone()))
        else {
            return false;
        };
        let Some(read_by) = cells.read_by.get_mut(range) else { return false };
        let mut good = true;
        for ((written, tag), read) in written.iter().zip(tags).zip(&*read) {
            // What the whole block's barrier has ordered is known to every warp.
            let is_written = (*written >= start) & (*written <= settled) & (*tag & !(FLYING - 1 - STRONG_READS) == 0);
            good &= is_written & ((*read == own) | (*read <= settled));
        }
        if good {
            for (((read, readers), read_by), lane) in read.iter_mut().zip(readers).zip(read_by).zip(lanes) {
                let before = if *read == own { *readers } else { 0 };
                let is_other = (before & bit != 0) & (lane_of(*read_by) != lane);
                *read_by = packed(by.pc, if is_other { LANES } else { lane });
                *readers = before | bit;
                *read = own;
            }
        }
        good
    }

    /// Cells that others have left alone since the block's last barrier, if their tags are what they should be; they
    /// get the new one.
    #[inline]
    fn write_in_order(
        &mut self,
        by: By,
        range: Range<usize>,
        tags_before: Range<u32>,
        tag: u32,
        lanes: impl Iterator<Item = u32> + Clone,
    ) -> bool {
        let (settled, own, bit) = (self.clocks.settled, self.clocks.own[by.warp], 1 << by.warp);
        let any_lane = !self.lanes_race;
        let cells = &mut self.cells;
        let (Some(read), Some(readers)) = (cells.read.get(range.clone()), cells.readers.get_mut(range.clone())) else {
            return false;
        };
        let (Some(written), Some(tags)) = (cells.written.get_mut(range.clone()), cells.tags.get_mut(range.clone()))
        else {
            return false;
        };
        let (Some(write_by), Some(read_by)) = (cells.write_by.get_mut(range.clone()), cells.read_by.get(range)) else {
            return false;
        };
        let mut good = true;
        for (((written, tag), write_by), lane) in written.iter().zip(&*tags).zip(&*write_by).zip(lanes.clone()) {
            let as_expected = (*tag >= tags_before.start) & (*tag < tags_before.end);
            let same_writer = any_lane | (*written < own) | (lane_of(*write_by) == lane);
            good &= as_expected & ((*written <= settled) | ((*tag & 0xff == by.warp as u32) & same_writer));
        }
        for (((read, readers), read_by), lane) in read.iter().zip(&*readers).zip(read_by).zip(lanes.clone()) {
            let same_reader = any_lane | (*read < own) | ((lane_of(*read_by) == lane) & (lane != LANES));
            good &= (*read <= settled) | (*readers == 0) | ((*readers == bit) & same_reader);
        }
        if good {
            written.fill(own);
            tags.fill(tag);
            readers.fill(0);
            for (write_by, lane) in write_by.iter_mut().zip(lanes) {
                *write_by = packed(by.pc, lane);
            }
        }
        good
    }

    /// The race of an access with the last write in its own warp, since the warp's lanes were last in order.
    fn lane_after_write(&self, by: By, lane: u32, cell: Cell) -> Option<Racer> {
        let first = lane_of(cell.write_by);
        let in_step = usize::from(cell.writer()) != by.warp || cell.written != self.clocks.own[by.warp];
        let is_same = first == lane && lane != LANES;
        // Several lanes that wrote one value, and may read it.
        let is_known = first == LANES && cell.tag & ATOMIC == 0;
        let are_atomic = by.touch.is_atomic() && cell.was_atomic_write();
        (self.lanes_race && !in_step && !is_same && !is_known && !are_atomic).then(|| racing_lane(first))
    }

    fn read(&mut self, by: By, lane: u32, at: usize) -> Option<(Fault, Option<u32>)> {
        let mut cell = self.cells.get(at)?;
        let race = |first| Fault::Race { space: Space::Shared, second: Hazard::ReadAfterWrite, first };
        let are_strong = by.touch.is_strong() && cell.tag & ATOMIC != 0;
        let fault = if cell.tag >= FLYING {
            Some((Fault::InFlight, Some(cell.write_by >> 6)))
        } else if cell.written < self.clocks.start {
            Some((Fault::Unwritten { space: Space::Shared }, (cell.written == 0).then_some(cell.write_by >> 6)))
        } else if !are_strong && !self.clocks.after(by.warp, cell.writer(), cell.written) {
            Some((race(racing_warp(cell.writer())), Some(cell.write_by >> 6)))
        } else {
            self.lane_after_write(by, lane, cell).map(|first| (race(first), Some(cell.write_by >> 6)))
        };
        let own = self.clocks.own[by.warp];
        let bit = 1 << by.warp;
        let is_again = cell.read == own && cell.readers & bit != 0;
        let is_other = is_again && lane_of(cell.read_by) != lane;
        cell.read_by = packed(by.pc, if is_other { LANES } else { lane });
        let was_read = cell.readers;
        if cell.read == own {
            cell.readers |= bit;
        } else {
            // Reads that are ordered before this one need no watching any more.
            let known = &self.clocks.known[by.warp];
            let still = warps(cell.readers).filter(|v| *v != by.warp && known[*v] < cell.read);
            cell.readers = still.fold(bit, |mask, v| mask | 1 << v);
            cell.read = if cell.readers == bit { own } else { cell.read.max(own) };
        }
        let strong = by.touch.is_strong() && (was_read == 0 || cell.readers == bit || cell.tag & STRONG_READS != 0);
        cell.tag = cell.tag & !STRONG_READS | if strong { STRONG_READS } else { 0 };
        self.cells.set(at, cell);
        fault
    }

    fn write(&mut self, by: By, lane: u32, at: usize) -> Option<(Fault, Option<u32>)> {
        let cell = self.cells.get(at)?;
        let fault = self.fault_of_write(by, lane, cell);
        let (own, atomic) = (self.clocks.own[by.warp], by.touch.is_strong());
        let was_atomic = cell.tag & ATOMIC != 0;
        let in_block = cell.written >= self.clocks.start;
        let is_same_warp = usize::from(cell.writer()) == by.warp;
        if by.touch == Touch::Atomic && cell.readers >> by.warp & 1 != 0 && cell.read == own {
            let read = cell.read_by;
            if (lane_of(read) == lane || lane_of(read) == LANES) && !self.guesses.contains(&(read >> 6)) {
                self.guesses.push(read >> 6);
            }
        }
        let unseen = in_block && cell.written == own;
        let shared = atomic && was_atomic && in_block && !is_same_warp && cell.written == own;
        let writer = if shared { MANY } else { by.warp as u8 };
        // A plain write that nobody else has seen yet stays one.
        let mark = if atomic && (was_atomic || !unseen) { ATOMIC } else { 0 };
        let volatile = if by.touch == Touch::VolatileWrite { VOLATILE } else { 0 };
        let flying = match (by.touch, cell.tag / FLYING) {
            (Touch::Launch, flying) => (flying + 1).min(0xffff),
            (Touch::Land, flying) => flying.saturating_sub(1),
            (_, flying) => flying,
        };
        let reads = if atomic { cell.tag & STRONG_READS } else { 0 };
        let several = unseen && is_same_warp && atomic && lane_of(cell.write_by) != lane;
        let write_by = packed(by.pc, if several { LANES } else { lane });
        let tag = u32::from(writer) | mark | volatile | reads | (flying * FLYING);
        let readers = if atomic { cell.readers } else { 0 };
        self.cells.set(at, Cell { written: own, readers, tag, write_by, ..cell });
        fault
    }

    fn fault_of_write(&self, by: By, lane: u32, cell: Cell) -> Option<(Fault, Option<u32>)> {
        let clocks = &self.clocks;
        let (atomic, was_atomic) = (by.touch.is_strong(), cell.tag & ATOMIC != 0);
        let in_block = cell.written >= clocks.start;
        if cell.tag >= FLYING && by.touch != Touch::Land {
            return Some((Fault::InFlight, Some(cell.write_by >> 6)));
        }
        if by.touch == Touch::Atomic && !in_block {
            return Some((Fault::Unwritten { space: Space::Shared }, None));
        }
        let race = |second, first, by: u32| Some((Fault::Race { space: Space::Shared, second, first }, Some(by >> 6)));
        let second = if by.touch == Touch::Atomic { Hazard::ReadAfterWrite } else { Hazard::WriteAfterWrite };
        if in_block && !(atomic && was_atomic) && !clocks.after(by.warp, cell.writer(), cell.written) {
            return race(second, racing_warp(cell.writer()), cell.write_by);
        }
        if in_block && let Some(first) = self.lane_after_write(by, lane, cell) {
            return race(second, first, cell.write_by);
        }
        if atomic && cell.tag & STRONG_READS != 0 && by.touch == Touch::Atomic {
            return None;
        }
        let known = &clocks.known[by.warp];
        let is_new = cell.read >= clocks.start;
        let are_strong = atomic && cell.tag & STRONG_READS != 0;
        let reader = warps(cell.readers).find(|v| *v != by.warp && is_new && !are_strong && known[*v] < cell.read);
        if let Some(v) = reader {
            return race(Hazard::WriteAfterRead, Racer::Warp(v as u8), cell.read_by);
        }
        let of_own = cell.readers == 1 << by.warp && cell.read == clocks.own[by.warp];
        let other = of_own && self.lanes_race && (lane_of(cell.read_by) != lane || lane == LANES);
        if other { race(Hazard::WriteAfterRead, racing_lane(lane_of(cell.read_by)), cell.read_by) } else { None }
    }
}

fn racing_warp(writer: u8) -> Racer {
    if writer == MANY { Racer::Several } else { Racer::Warp(writer) }
}

fn racing_lane(lane: u32) -> Racer {
    if lane == LANES { Racer::Lanes } else { Racer::Lane(lane as u8) }
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
