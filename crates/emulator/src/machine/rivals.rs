//! Races in global memory: who wrote and who read each cell of a buffer last.
//!
//! A cell is as wide as the kernel's narrowest access to global memory, at most 4 bytes. Each has two words, one for its
//! last writer and one for the readers since then, which name launch, block, thread and stamp ([`Clocks`]). Within a block
//! barriers order accesses as in shared memory; between blocks nothing does but [fences]. Atomic and volatile accesses race
//! with nothing here, and a store of the value that stands there already is none.
//!
//! [`Clocks`]: super::clock::Clocks
//! [fences]: super::fences

use super::Worker;
use super::access::{Checked, Group};
use super::shadow::{Touch, warps};
use super::words::{Words, read};
use crate::finding::{Fault, Hazard, Racer};
use crate::lanes::WARP;
use crate::memory::Region;
use crate::types::Space;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits of a word from the lowest: a thread, [`SEVERAL`], a stamp within the block, a block, a launch.
const SEVERAL: u64 = 1 << 10;
const STAMP: u32 = 11;
const STAMP_BITS: u32 = 24;
const BLOCK: u32 = STAMP + STAMP_BITS;
/// Blocks whose numbers differ by a multiple of 2 to this count as one.
const BLOCK_BITS: u32 = 21;
const LAUNCH: u32 = BLOCK + BLOCK_BITS;
/// With [`SEVERAL`]: threads of several blocks.
const OF_BLOCKS: u64 = 1;

/// Launches until the words must be cleared.
pub(crate) const LAUNCHES: u64 = 1 << (u64::BITS - LAUNCH);

/// Accesses to the cells of a buffer.
#[derive(Debug)]
pub(crate) struct Traces {
    writers: Box<[AtomicU64]>,
    readers: Box<[AtomicU64]>,
}

impl Traces {
    /// None where there is no memory for them. Pages that nobody touches cost none.
    pub(crate) fn new(cells: usize) -> Option<Self> {
        let zeros = || bytemuck::allocation::try_zeroed_slice_box(cells).ok();
        Some(Self { writers: zeros()?, readers: zeros()? })
    }

    pub(crate) fn cells(&self) -> usize {
        self.writers.len()
    }
}

fn block_of(word: u64) -> u64 {
    word >> BLOCK & ((1 << BLOCK_BITS) - 1)
}

fn stamp_of(word: u64) -> u64 {
    word >> STAMP & ((1 << STAMP_BITS) - 1)
}

/// The access of some lanes to the cells of one address.
#[derive(Clone, Copy)]
struct Me {
    warp: usize,
    word: u64,
}

impl<'a> Worker<'a> {
    /// The number of the block as words have it.
    pub(super) fn numbered_block(&self) -> u64 {
        self.block & ((1 << BLOCK_BITS) - 1)
    }

    /// The part of a word that all lanes of a warp share; none where stamps have run out.
    fn trace(&self, warp: usize) -> Option<u64> {
        let stamp = u64::from(self.shadow.clocks.fine[warp] - self.shadow.clocks.start);
        let block = self.numbered_block();
        (stamp >> STAMP_BITS == 0).then_some(self.setting.launch << LAUNCH | block << BLOCK | stamp << STAMP)
    }

    /// Takes note of plain accesses to a buffer, and reports races.
    pub(super) fn watch(&mut self, checked: Checked<'_>, group: &Group<'_>, region: &Region, good: u32) {
        if checked.touch.is_strong() {
            if self.setting.kernel.has_fences {
                self.meet(checked, group, good);
            }
            return;
        }
        let Some(traces) = &region.traces else { return };
        let Some(common) = self.trace(checked.warp) else { return };
        let shift = self.setting.kernel.global_cell_bytes.trailing_zeros();
        for lane in warps(good & group.shape.distinct) {
            let is_alone = group.shape.alone >> lane & 1 != 0;
            let who = if is_alone { (checked.warp * WARP + lane) as u64 } else { SEVERAL };
            let me = Me { warp: checked.warp, word: common | who };
            let at = group.at[lane];
            let cells = (at >> shift) as usize..((at + checked.bytes - 1) >> shift) as usize + 1;
            let (Some(writers), Some(readers)) = (traces.writers.get(cells.clone()), traces.readers.get(cells)) else {
                continue;
            };
            let found = match checked.touch {
                Touch::Write
                    if checked.stands(&super::words::Global(&region.words), at, lane)
                        && is_whole(region, at, checked) =>
                {
                    None
                }
                Touch::Write => self.written(me, writers, readers),
                _ => self.was_read(me, writers, readers),
            };
            if let Some((second, first)) = found {
                let fault = Fault::Race { space: Space::Global, second, first };
                self.fault(checked.warp, checked.pc, lane, Some(at.wrapping_add(group.base)), fault);
            }
        }
    }

    /// An access that blocks may meet at: what it writes publishes before it is there, and what it reads teaches after that.
    fn meet(&mut self, checked: Checked<'_>, group: &Group<'_>, good: u32) {
        let lanes = warps(good & group.shape.distinct);
        let places: Vec<u64> = lanes.map(|lane| group.at[lane].wrapping_add(group.base)).collect();
        if matches!(checked.touch, Touch::Atomic | Touch::VolatileWrite) {
            self.release(checked.warp, checked.scope, &places);
        }
        // Stores know what they store, and read nothing.
        if checked.stored.is_empty() {
            self.lessons.read.extend(places);
        }
    }

    fn was_read(&self, me: Me, writers: &[AtomicU64], readers: &[AtomicU64]) -> Option<(Hazard, Racer)> {
        let mut found = None;
        for (writer, reader) in writers.iter().zip(readers) {
            let writer = writer.load(Ordering::Relaxed);
            if writer >> LAUNCH == self.setting.launch {
                let first = self.rival(me, writer);
                found = found.or(first.map(|first| (Hazard::ReadAfterWrite, first)));
            }
            let old = reader.load(Ordering::Relaxed);
            if old != me.word {
                let new = self.joined(me, old);
                if new != old {
                    reader.store(new, Ordering::Relaxed);
                }
            }
        }
        found
    }

    /// The readers of a cell with one more.
    fn joined(&self, me: Me, old: u64) -> u64 {
        if old >> LAUNCH != self.setting.launch {
            return me.word;
        }
        if old & (SEVERAL | OF_BLOCKS) == SEVERAL | OF_BLOCKS {
            return old;
        }
        if block_of(old) != block_of(me.word) {
            return self.setting.launch << LAUNCH | SEVERAL | OF_BLOCKS;
        }
        if self.is_ordered(me, old) {
            return me.word;
        }
        let who = me.word >> STAMP << STAMP | SEVERAL;
        who.max(old >> STAMP << STAMP | SEVERAL)
    }

    fn written(&self, me: Me, writers: &[AtomicU64], readers: &[AtomicU64]) -> Option<(Hazard, Racer)> {
        let mut found = None;
        for (writer, reader) in writers.iter().zip(readers) {
            for (cell, second) in [(writer, Hazard::WriteAfterWrite), (reader, Hazard::WriteAfterRead)] {
                let old = cell.load(Ordering::Relaxed);
                if old >> LAUNCH == self.setting.launch {
                    let first = self.rival(me, old);
                    found = found.or(first.map(|first| (second, first)));
                }
            }
            writer.store(me.word, Ordering::Relaxed);
            reader.store(0, Ordering::Relaxed);
        }
        found
    }

    /// Who made an access of this launch that nothing orders before one of `me`.
    #[inline]
    fn rival(&self, me: Me, first: u64) -> Option<Racer> {
        let of_blocks = first & (SEVERAL | OF_BLOCKS) == SEVERAL | OF_BLOCKS;
        let same_block = !of_blocks && block_of(first) == block_of(me.word);
        if (same_block && self.is_ordered(me, first)) || self.is_met(me, first, of_blocks) {
            return None;
        }
        let thread = (first & (SEVERAL - 1)) as usize;
        Some(match (first & SEVERAL != 0, same_block) {
            (true, _) => Racer::Several,
            (_, false) => Racer::Block(block_of(first) as u32),
            _ if thread / WARP == me.warp => Racer::Lane((thread % WARP) as u8),
            _ => Racer::Warp((thread / WARP) as u8),
        })
    }

    /// Whether fences order an access before `me`.
    fn is_met(&self, me: Me, first: u64, of_blocks: bool) -> bool {
        let by = (first & SEVERAL == 0).then_some((first & (SEVERAL - 1)) as usize / WARP);
        let block = (!of_blocks).then(|| block_of(first));
        self.setting.kernel.has_fences && self.is_published(me.warp, block, by, stamp_of(first))
    }

    /// Whether an earlier access of the same block is of the same thread, or before a barrier.
    #[inline]
    fn is_ordered(&self, me: Me, first: u64) -> bool {
        if (first ^ me.word) & ((SEVERAL << 1) - 1) == 0 && first & SEVERAL == 0 {
            return true;
        }
        let clocks = &self.shadow.clocks;
        let stamp = u64::from(clocks.start) + stamp_of(first);
        if first & SEVERAL != 0 {
            return stamp <= u64::from(clocks.settled);
        }
        let warp = (first & (SEVERAL - 1)) as usize / WARP;
        if warp == me.warp {
            return stamp < u64::from(clocks.own[warp]) || self.setting.kernel.in_step;
        }
        u64::from(clocks.known[me.warp][warp]) >= stamp
    }
}

/// Whether somebody has written all bytes of an access before.
fn is_whole(region: &Region, at: u64, checked: Checked<'_>) -> bool {
    region.is_written(at, checked.bytes)
}

impl Checked<'_> {
    /// Whether a lane's store would change nothing.
    pub(super) fn stands(&self, words: &impl Words, at: u64, lane: usize) -> bool {
        let each = self.element;
        let is_there = |(k, values): (usize, &[u64; WARP])| {
            let old = read(words, at + k as u64 * u64::from(each), each);
            old == values[lane] & (u64::MAX >> (64 - 8 * u32::from(each)))
        };
        !self.stored.is_empty() && self.stored.iter().enumerate().all(is_there)
    }

    /// The first of some lanes that stores another value to the address of an earlier lane, and that lane.
    pub(super) fn clash(&self, at: &[u64; WARP], lanes: u32, distinct: u32) -> Option<(usize, usize)> {
        let kept = u64::MAX >> (64 - 8 * u32::from(self.element));
        let earlier = |lane: usize| warps(lanes & distinct).find(|l| at[*l] == at[lane]).map(|first| (lane, first));
        let differ = |(lane, first): &(usize, usize)| self.stored.iter().any(|v| (v[*lane] ^ v[*first]) & kept != 0);
        warps(lanes & !distinct).filter_map(earlier).find(differ)
    }
}
