//! What a machine may touch: ranges of real memory with rights.

use std::ops::Range;

/// Rights to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    Read,
    Write,
    ReadWrite,
}

/// Allowed ranges. An access must lie within one of them as a whole.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    ranges: Vec<(Range<u64>, Rights)>,
}

impl Memory {
    /// Allows a range, which must be live memory while the machine runs; returns what [`Memory::forget`] takes.
    pub(crate) fn allow(&mut self, start: u64, bytes: usize, rights: Rights) -> usize {
        self.ranges.push((start..start + bytes as u64, rights));
        self.ranges.len() - 1
    }

    /// Takes back the last range that was allowed.
    pub(crate) fn forget(&mut self, mark: usize) {
        self.ranges.truncate(mark);
    }

    pub(super) fn may(&self, at: u64, bytes: usize, wanted: Rights) -> bool {
        let end = at.wrapping_add(bytes as u64);
        let within = |r: &Range<u64>| r.start <= at && end <= r.end && at <= end;
        self.ranges.iter().any(|(range, has)| within(range) && (*has == wanted || *has == Rights::ReadWrite))
    }

    pub(super) fn read(&self, at: u64, out: &mut [u8]) {
        // SAFETY: the caller has checked that the bytes lie within a range of live memory.
        unsafe { std::ptr::copy_nonoverlapping(at as *const u8, out.as_mut_ptr(), out.len()) };
    }

    pub(super) fn write(&mut self, at: u64, from: &[u8]) {
        // SAFETY: the caller has checked that the bytes lie within a writable range of live memory.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), at as *mut u8, from.len()) };
    }
}
