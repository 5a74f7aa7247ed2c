//! `cp.async`: the source is read when the copy begins, the destination changes when it is waited for.

use super::Worker;
use super::access::{Checked, Place, addresses};
use super::shadow::{By, Touch, warps};
use super::survey::{Shape, first_of, shape, survey};
use super::warp::Warp;
use super::words::{Global, Own, Words, write};
use crate::kernel::Copy;
use crate::lanes::{Registers, WARP};
use crate::types::Space;

impl<'a> Worker<'a> {
    pub(super) fn begin_copy(&mut self, w: usize, warp: &mut Warp, mask: u32, copy: &Copy) {
        let pc = warp.pc;
        let bytes = u64::from(copy.bytes);
        let to = addresses(&warp.registers, copy.to, mask);
        let from = addresses(&warp.registers, copy.from, mask);
        let (wanted, reading) = wanted(&warp.registers, mask, copy);
        let mut data = [[0u32; 4]; WARP];
        if reading != 0 {
            // Copies count by their sources. Those that only write zeros have none.
            let sources = only(&from, reading);
            let shape = self.shape(pc, Space::Global, &sources, reading, bytes);
            data = self.source(w, pc, copy, &sources, &wanted, (reading, shape));
        }
        let checked = Checked::new(pc, w, Space::Shared, bytes, Touch::Launch);
        let flights = &mut warp.flights;
        // What an instruction writes has a memory of its own, behind those of what instructions read.
        let at = self.setting.kernel.code.len() + pc as usize;
        let shape = shape(&mut self.patterns[at], Space::Shared, &to, mask, bytes);
        self.groups(checked, to, mask, shape, |_, group, good| {
            for lane in warps(good) {
                flights.begin(lane, group.at[lane] as u32, copy.bytes, data[lane]);
            }
        });
    }

    /// What the lanes that read will write. The shape is that of the whole copy.
    fn source(
        &mut self,
        w: usize,
        pc: u32,
        copy: &Copy,
        from: &[u64; WARP],
        wanted: &[u64; WARP],
        (reading, whole): (u32, Shape),
    ) -> [[u32; 4]; WARP] {
        let mut data = [[0u32; 4]; WARP];
        let mut rest = reading;
        // Lanes that read the same number of bytes are checked together.
        while rest != 0 {
            let bytes = wanted[rest.trailing_zeros() as usize];
            let mine = warps(rest).filter(|lane| wanted[*lane] == bytes).fold(0u32, |m, lane| m | 1 << lane);
            rest &= !mine;
            // The alignment is that of the whole copy, also where only a part is read.
            let align = u64::from(copy.bytes);
            let checked = Checked { align, ..Checked::new(pc, w, Space::Global, bytes, Touch::Read) };
            let at = only(from, mine);
            let is_whole = mine == reading && bytes == align;
            let shape = if is_whole { whole } else { survey(Space::Global, &at, mine, bytes).0 };
            self.groups(checked, at, mine, shape, |_, group, good| {
                let Place::Global(region) = group.place else { return };
                let words = Global(&region.words);
                for lane in warps(good) {
                    let at = group.at[lane];
                    for (i, word) in (0..bytes).step_by(4).zip(&mut data[lane]) {
                        // Copies are aligned, so that a word is one here too; the last one may be a part.
                        let cut = 8 * (i + 4).saturating_sub(bytes) as u32;
                        *word = words.word(((at + i) >> 2) as usize) << cut >> cut;
                    }
                }
            });
        }
        data
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
            let by = By { warp: w, pc, touch: Touch::Land };
            if let Some(seen) = self.shadow.touch(by, u32::from(flight.lane), to, bytes) {
                self.seen(w, pc, usize::from(flight.lane), seen);
            }
        }
    }
}

/// The bytes that each lane reads, and the lanes that read any.
fn wanted(registers: &Registers, mask: u32, copy: &Copy) -> ([u64; WARP], u32) {
    let ignored = copy.ignore.map_or(0, |p| registers.predicate(p));
    let all = u64::from(copy.bytes);
    let wanted: [u64; WARP] = match copy.read {
        Some(slot) => registers.words[usize::from(slot)].0.map(|n| u64::from(n).min(all)),
        None => [all; WARP],
    };
    let reading = (0..WARP).fold(0u32, |m, lane| m | u32::from(wanted[lane] > 0) << lane);
    (wanted, reading & mask & !ignored)
}

/// The addresses of some lanes; the others get the first one's.
fn only(at: &[u64; WARP], lanes: u32) -> [u64; WARP] {
    let first = first_of(at, lanes);
    std::array::from_fn(|i| if lanes >> i & 1 != 0 { at[i] } else { first })
}
