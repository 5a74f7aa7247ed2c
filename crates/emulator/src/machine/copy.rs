//! `cp.async`: the source is read when the copy begins, the destination changes when it is waited for.

use super::Worker;
use super::access::{Checked, Place, addresses};
use super::shadow::{Touch, warps};
use super::survey::survey;
use super::warp::Warp;
use super::words::{Global, Own, read, write};
use crate::kernel::Copy;
use crate::lanes::{FULL, WARP};
use crate::types::Space;

impl<'a> Worker<'a> {
    pub(super) fn begin_copy(&mut self, w: usize, warp: &mut Warp, mask: u32, copy: &Copy) {
        let pc = warp.pc;
        let bytes = u64::from(copy.bytes);
        let to = addresses(&warp.registers, copy.to, mask);
        let from = addresses(&warp.registers, copy.from, mask);
        let (data, reading) = self.source(w, warp, mask, copy, &from);
        // Copies count by their sources. Those that only write zeros have none.
        let first = from[if reading == 0 { 0 } else { reading.trailing_zeros() as usize }];
        let sources = std::array::from_fn(|i| if reading >> i & 1 != 0 { from[i] } else { first });
        if reading != 0 {
            self.shape(pc, Space::Global, &sources, reading, bytes);
        }
        let checked = Checked { pc, warp: w, space: Space::Shared, bytes, align: bytes, touch: Touch::Launch };
        let flights = &mut warp.flights;
        let shape = survey(Space::Shared, &to, mask, bytes, to[mask.trailing_zeros() as usize]);
        self.groups(checked, to, mask, shape, |_, group, good| {
            for lane in warps(good) {
                flights.begin(lane, group.at[lane] as u32, copy.bytes, data[lane]);
            }
        });
    }

    /// What the lanes will write, and which of them read anything for it.
    fn source(&mut self, w: usize, warp: &Warp, mask: u32, copy: &Copy, from: &[u64; WARP]) -> ([[u32; 4]; WARP], u32) {
        let registers = &warp.registers;
        let mut data = [[0u32; 4]; WARP];
        let ignored = copy
            .ignore
            .map_or(0, |p| registers.predicates[usize::from(p)] ^ if copy.ignore_negated { FULL } else { 0 });
        let wanted: [u64; WARP] = std::array::from_fn(|lane| match copy.read {
            Some(slot) => u64::from(registers.words[usize::from(slot)].0[lane]).min(u64::from(copy.bytes)),
            None => u64::from(copy.bytes),
        });
        let reading = warps(mask & !ignored).filter(|lane| wanted[*lane] > 0).fold(0u32, |m, lane| m | 1 << lane);
        let mut rest = reading;
        // Lanes that read the same number of bytes are checked together.
        while rest != 0 {
            let bytes = wanted[rest.trailing_zeros() as usize];
            let mine = warps(rest).filter(|lane| wanted[*lane] == bytes).fold(0u32, |m, lane| m | 1 << lane);
            rest &= !mine;
            // The alignment is that of the whole copy, also where only a part is read.
            let align = u64::from(copy.bytes);
            let checked = Checked { pc: warp.pc, warp: w, space: Space::Global, bytes, align, touch: Touch::Read };
            let first = from[mine.trailing_zeros() as usize];
            let at = std::array::from_fn(|i| if mine >> i & 1 != 0 { from[i] } else { first });
            let shape = survey(Space::Global, &at, mine, bytes, first);
            self.groups(checked, at, mine, shape, |_, group, good| {
                let Place::Global(region) = group.place else { return };
                for lane in warps(good) {
                    for at in 0..bytes {
                        let byte = read(&Global(&region.words), group.at[lane] + at, 1) as u32;
                        data[lane][(at / 4) as usize] |= byte << (8 * (at % 4));
                    }
                }
            });
        }
        (data, reading)
    }

    /// Finishes the copies that a wait is for.
    pub(super) fn land(&mut self, w: usize, warp: &mut Warp, mask: u32, keep: Option<u32>) {
        let pc = warp.pc;
        if keep.is_none() {
            warp.flights.commit(mask);
        }
        for flight in warp.flights.land(mask, keep) {
            let (to, bytes) = (u64::from(flight.to), u64::from(flight.bytes));
            for (i, word) in flight.data.iter().take((bytes / 4) as usize).enumerate() {
                write(&mut Own(&mut self.shared), to + 4 * i as u64, 4, u64::from(*word));
            }
            if let Some(seen) = self.shadow.touch(w, to, bytes, Touch::Land) {
                self.fault(w, pc, usize::from(flight.lane), Some(seen.at), seen.fault);
            }
        }
    }
}
