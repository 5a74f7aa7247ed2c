//! Launches whose effect is known, because nothing has changed since they were last run.
//!
//! Timings repeat a launch some hundred times, each time with the same result, since a kernel that only stores what it computed does
//! nothing when it is run again. Emulating each of them was most of what tests on this driver took.

use crate::state::Work;
use std::collections::HashMap;
use tilewright_emulator::Memory;

/// Most bytes of memory that is compared: of more, all launches are run.
const MOST_BYTES: u64 = 16 << 20;

/// What memory holds, by its hash.
pub(crate) type Digest = [u8; 32];

/// What is known of the memory as it is.
#[derive(Default)]
pub(crate) struct Repeats {
    /// Launches that leave this memory as it is, and the nanoseconds that the device is busy with each.
    idle: HashMap<Work, f64>,
    digest: Option<Digest>,
}

impl Repeats {
    /// Forgets everything: something else than a launch has changed the memory.
    pub(crate) fn changed(&mut self) {
        *self = Self::default();
    }

    /// How long a launch takes that is known to change nothing.
    pub(crate) fn known(&self, work: &Work) -> Option<f64> {
        self.idle.get(work).copied()
    }

    /// What memory holds before a launch, unless it is too much to compare.
    pub(crate) fn before(&mut self, memory: &Memory) -> Option<Digest> {
        (memory.bytes() <= MOST_BYTES).then(|| *self.digest.get_or_insert_with(|| memory.digest()))
    }

    /// Learns from a launch that was run, and found no fault.
    pub(crate) fn ran(&mut self, work: &Work, before: Option<Digest>, memory: &Memory, busy_ns: f64) {
        let after = before.map(|_| memory.digest());
        if after.is_none() || after != before {
            *self = Self { digest: after, ..Self::default() };
        } else {
            self.idle.insert(work.clone(), busy_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(function: u64) -> Work {
        Work::Kernel { function, grid: [1; 3], block: [32, 1, 1], shared_bytes: 0, params: vec![vec![1]] }
    }

    #[test]
    fn a_launch_is_known_once_it_has_changed_nothing() {
        let (mut memory, mut repeats, work) = (Memory::new(), Repeats::default(), launch(1));
        let buffer = memory.add("c", &[0; 8]).unwrap();
        let run = |repeats: &mut Repeats, memory: &mut Memory, byte: u8| {
            let before = repeats.before(memory);
            memory.write_part(buffer, 3, &[byte]);
            repeats.ran(&work, before, memory, 5.0);
        };
        run(&mut repeats, &mut memory, 7);
        assert_eq!(repeats.known(&work), None, "it has changed a byte");
        run(&mut repeats, &mut memory, 7);
        assert_eq!((repeats.known(&work), repeats.known(&launch(2))), (Some(5.0), None));
        repeats.changed();
        assert_eq!(repeats.known(&work), None);
        run(&mut repeats, &mut memory, 7);
        run(&mut repeats, &mut memory, 8);
        assert_eq!(repeats.known(&work), None, "what it does depends on memory that has changed");
    }

    #[test]
    fn bytes_that_are_written_with_what_they_hold_are_a_change() {
        let mut memory = Memory::new();
        let buffer = memory.add_unwritten("c", 8).unwrap();
        let held = memory.read(buffer);
        let before = memory.digest();
        assert!(memory.write_part(buffer, 0, &held), "they were not written");
        assert_ne!(memory.digest(), before);
        assert!(!memory.write_part(buffer, 0, &held) && !memory.fill(buffer, 3, 1, held[3]));
        assert!(memory.fill(buffer, 2, 4, 9));
    }

    #[test]
    fn more_memory_than_is_compared_is_not() {
        let (mut memory, mut repeats) = (Memory::new(), Repeats::default());
        memory.add_unwritten("all", MOST_BYTES as usize + 1).unwrap();
        assert_eq!(repeats.before(&memory), None);
        repeats.ran(&launch(1), None, &memory, 5.0);
        assert_eq!(repeats.known(&launch(1)), None);
    }
}
