//! Asynchronous copies that have begun and whose data nobody may see yet.

use crate::lanes::WARP;

/// A copy of one lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) lane: u8,
    pub(super) bytes: u8,
    /// The group of its lane that it belongs to.
    group: u32,
    /// Where it goes, in shared memory.
    pub(super) to: u32,
    pub(super) data: [u32; 4],
}

/// The copies of a warp. Groups are counted for every lane, since lanes may commit on different paths.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights {
    open: Vec<Flight>,
    groups: [u32; WARP],
}

impl Flights {
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.groups = [0; WARP];
    }

    pub(super) fn begin(&mut self, lane: usize, to: u32, bytes: u8, data: [u32; 4]) {
        self.open.push(Flight { lane: lane as u8, bytes, group: self.groups[lane], to, data });
    }

    /// Ends the open group of some lanes.
    pub(super) fn commit(&mut self, lanes: u32) {
        for (lane, group) in self.groups.iter_mut().enumerate() {
            *group += lanes >> lane & 1;
        }
    }

    /// Takes out the copies of some lanes that are older than their last `keep` groups; all where that is `None`.
    pub(super) fn land(&mut self, lanes: u32, keep: Option<u32>) -> Vec<Flight> {
        let groups = &self.groups;
        let lands = |f: &mut Flight| {
            let old =
                keep.is_none_or(|keep| u64::from(f.group) + u64::from(keep) < u64::from(groups[usize::from(f.lane)]));
            lanes >> f.lane & 1 != 0 && old
        };
        self.open.extract_if(.., lands).collect()
    }
}
