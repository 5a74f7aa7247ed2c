//! The access that kernels spend their time in: all lanes, shared memory, as far apart as the last time.

use super::Worker;
use super::shadow::{By, Touch};
use super::survey::Pattern;
use super::warp::Warp;
use crate::kernel::{Access, Address, Data};
use crate::lanes::{FULL, Lanes32, Lanes64, Raw, Registers, WARP};
use crate::types::Space;

impl Worker<'_> {
    /// Runs a load or store of whole words in shared memory by all lanes, if its lanes lie to each other as the last time
    /// and nothing is wrong with it. False where that is not so; it is then yet to be run and counted.
    pub(super) fn again(&mut self, w: usize, warp: &mut Warp, mask: u32, access: &Access, is_store: bool) -> bool {
        if !access.is_simple || mask != FULL {
            return false;
        }
        let Some(pattern) = &mut self.patterns[warp.pc as usize] else { return false };
        if pattern.mask != FULL || pattern.space != Space::Shared {
            return false;
        }
        let Some(first) = first_of(&warp.registers, access.address, pattern) else { return false };
        let (bytes, shape) = (access.total(), pattern.shape);
        let at = u64::from(first);
        let fits = |distance: i64| {
            let end = at.checked_add_signed(distance).map(|from| from + bytes);
            end.is_some_and(|end| end <= self.shared_bytes)
        };
        let is_aligned = (at | shape.low_bits) & (bytes - 1) == 0;
        if !is_aligned || !fits(shape.least) || !fits(shape.greatest) || !pattern.begins_alike(at) {
            return false;
        }
        let touch = if is_store { Touch::Write } else { Touch::Read };
        let by = By { warp: w, pc: warp.pc, touch };
        let cell_shift = self.shadow.cell_shift();
        let (ranges, mut lanes) = pattern.ranges(bytes, cell_shift);
        for &(distance, length) in ranges {
            let Some((mine, rest)) = lanes.split_at_checked((length >> cell_shift) as usize) else { return false };
            // What another range has marked already is marked again by whoever looks closer.
            if !self.shadow.touch_in_order(
                by,
                at.wrapping_add_signed(distance),
                length,
                mine.iter().map(|l| u32::from(*l)),
            ) {
                return false;
            }
            lanes = rest;
        }
        shape.count(&mut self.counters[warp.pc as usize].traffic, WARP as u32, bytes);
        let lanes = Alike { words: &mut self.shared, first, distances: &pattern.distances, data: &access.data };
        let registers = &mut warp.registers;
        match (access.bytes, access.data.len()) {
            (8, 1) => lanes.transfer::<u64, 1>(registers, is_store),
            (8, _) => lanes.transfer::<u64, 2>(registers, is_store),
            (_, 1) => lanes.transfer::<u32, 1>(registers, is_store),
            (_, 2) => lanes.transfer::<u32, 2>(registers, is_store),
            (..) => lanes.transfer::<u32, 4>(registers, is_store),
        }
        true
    }
}

/// The first lane's address, if the lanes lie to each other as in a pattern.
#[inline(always)]
fn first_of(registers: &Registers, address: Address, pattern: &Pattern) -> Option<u32> {
    let slot = usize::from(address.slot);
    if address.wide {
        let Lanes64(base) = &registers.doubles[slot];
        let first = u32::try_from(base[0].wrapping_add(address.offset as u64));
        first.ok().filter(|_| lies_alike64(base, pattern))
    } else {
        let Lanes32(base) = &registers.words[slot];
        lies_alike(base, pattern).then(|| base[0].wrapping_add(address.offset as u32))
    }
}

#[inline(always)]
fn lies_alike64(base: &[u64; WARP], pattern: &Pattern) -> bool {
    let mut differs = 0;
    for lane in 0..WARP {
        differs |= base[lane].wrapping_sub(base[0]) ^ i64::from(pattern.distances[lane] as i32) as u64;
    }
    differs == 0
}

#[inline(always)]
fn lies_alike(base: &[u32; WARP], pattern: &Pattern) -> bool {
    let mut differs = 0;
    for lane in 0..WARP {
        differs |= base[lane].wrapping_sub(base[0]) ^ pattern.distances[lane];
    }
    differs == 0
}

/// An access whose offsets have been checked.
struct Alike<'a> {
    words: &'a mut [u32],
    first: u32,
    distances: &'a [u32; WARP],
    data: &'a [Option<Data>],
}

impl Alike<'_> {
    /// Moves `N` elements of each lane; where lanes store to one place, the last lane's stay.
    #[inline(always)]
    fn transfer<T: Raw, const N: usize>(self, registers: &mut Registers, is_store: bool) {
        let mut values = [[T::default(); WARP]; N];
        let at = |lane: usize| (self.first.wrapping_add(self.distances[lane]) >> 2) as usize;
        if is_store {
            for (values, data) in values.iter_mut().zip(self.data.iter().flatten()) {
                *values = *T::lanes(registers, data.slot);
            }
            for lane in 0..WARP {
                if let Some(to) = self.words.get_mut(at(lane)..at(lane) + N * T::WORDS) {
                    for k in 0..N {
                        values[k][lane].to_words(&mut to[k * T::WORDS..][..T::WORDS]);
                    }
                }
            }
            return;
        }
        for lane in 0..WARP {
            if let Some(found) = self.words.get(at(lane)..at(lane) + N * T::WORDS) {
                for k in 0..N {
                    values[k][lane] = T::of_words(&found[k * T::WORDS..][..T::WORDS]);
                }
            }
        }
        for (values, data) in values.iter().zip(self.data) {
            if let Some(data) = data {
                *T::lanes_mut(registers, data.slot) = *values;
            }
        }
    }
}
