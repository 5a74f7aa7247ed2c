//! The access that kernels spend their time in: all lanes, shared memory, as far apart as the last time.

use super::Worker;
use super::shadow::Touch;
use super::survey::Pattern;
use super::warp::Warp;
use crate::kernel::{Access, Data};
use crate::lanes::{FULL, Lanes32, Lanes64, Registers, WARP};
use crate::types::Space;

impl Worker<'_> {
    /// Runs a load or store of whole words in shared memory by all lanes, if its lanes lie to each other as the last time
    /// and nothing is wrong with it. False where that is not so; it is then yet to be run and counted.
    pub(super) fn again(&mut self, w: usize, warp: &mut Warp, mask: u32, access: &Access, is_store: bool) -> bool {
        if !access.is_simple || mask != FULL {
            return false;
        }
        let Some(pattern) = &self.patterns[warp.pc as usize] else { return false };
        let Lanes32(base) = &warp.registers.words[usize::from(access.address.slot)];
        if pattern.mask != FULL || pattern.space != Space::Shared || !lies_alike(base, pattern) {
            return false;
        }
        let first = base[0].wrapping_add(access.address.offset as u32);
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
        for &(distance, length) in pattern.ranges() {
            let from = at.wrapping_add_signed(i64::from(distance));
            // What another range has marked already is marked again by whoever looks closer.
            if !self.shadow.touch_in_order(w, from, u64::from(length), touch) {
                return false;
            }
        }
        shape.count(&mut self.counters[warp.pc as usize].traffic, WARP as u32, bytes);
        let words = &mut self.shared;
        let distances = &pattern.distances;
        match (is_store, bytes / 4) {
            (false, 2) if access.bytes == 8 => {
                fetch_doubles::<1>(words, first, distances, &mut warp.registers, &access.data)
            }
            (false, 4) if access.bytes == 8 => {
                fetch_doubles::<2>(words, first, distances, &mut warp.registers, &access.data)
            }
            (false, 1) => fetch::<1>(words, first, distances, &mut warp.registers, &access.data),
            (false, 2) => fetch::<2>(words, first, distances, &mut warp.registers, &access.data),
            (false, _) => fetch::<4>(words, first, distances, &mut warp.registers, &access.data),
            (true, 1) => save::<1>(words, first, distances, &warp.registers, &access.data),
            (true, 2) => save::<2>(words, first, distances, &warp.registers, &access.data),
            (true, _) => save::<4>(words, first, distances, &warp.registers, &access.data),
        }
        true
    }
}

#[inline(always)]
fn lies_alike(base: &[u32; WARP], pattern: &Pattern) -> bool {
    let mut differs = 0;
    for lane in 0..WARP {
        differs |= base[lane].wrapping_sub(base[0]) ^ pattern.distances[lane];
    }
    differs == 0
}

/// Reads `N` words for each lane; offsets have been checked.
fn fetch<const N: usize>(
    words: &[u32],
    first: u32,
    distances: &[u32; WARP],
    registers: &mut Registers,
    data: &[Option<Data>],
) {
    let mut out = [[0u32; WARP]; N];
    for lane in 0..WARP {
        let at = (first.wrapping_add(distances[lane]) >> 2) as usize;
        if let Some(found) = words.get(at..at + N) {
            for k in 0..N {
                out[k][lane] = found[k];
            }
        }
    }
    for (values, data) in out.iter().zip(data) {
        if let Some(data) = data {
            registers.words[usize::from(data.slot)] = Lanes32(*values);
        }
    }
}

/// Reads `N` pairs of words for each lane; offsets have been checked.
fn fetch_doubles<const N: usize>(
    words: &[u32],
    first: u32,
    distances: &[u32; WARP],
    registers: &mut Registers,
    data: &[Option<Data>],
) {
    let mut out = [[0u64; WARP]; N];
    for lane in 0..WARP {
        let at = (first.wrapping_add(distances[lane]) >> 2) as usize;
        if let Some(found) = words.get(at..at + 2 * N) {
            for k in 0..N {
                out[k][lane] = u64::from(found[2 * k]) | u64::from(found[2 * k + 1]) << 32;
            }
        }
    }
    for (values, data) in out.iter().zip(data) {
        if let Some(data) = data {
            registers.doubles[usize::from(data.slot)] = Lanes64(*values);
        }
    }
}

/// Writes `N` words of each lane, the last lane last; offsets have been checked.
fn save<const N: usize>(
    words: &mut [u32],
    first: u32,
    distances: &[u32; WARP],
    registers: &Registers,
    data: &[Option<Data>],
) {
    let mut values = [[0u32; WARP]; N];
    if data.len() == N {
        for (values, data) in values.iter_mut().zip(data.iter().flatten()) {
            *values = registers.words[usize::from(data.slot)].0;
        }
    } else {
        for (pair, data) in values.chunks_exact_mut(2).zip(data.iter().flatten()) {
            let Lanes64(from) = &registers.doubles[usize::from(data.slot)];
            for lane in 0..WARP {
                pair[0][lane] = from[lane] as u32;
                pair[1][lane] = (from[lane] >> 32) as u32;
            }
        }
    }
    for lane in 0..WARP {
        let at = (first.wrapping_add(distances[lane]) >> 2) as usize;
        if let Some(to) = words.get_mut(at..at + N) {
            for k in 0..N {
                to[k] = values[k][lane];
            }
        }
    }
}
