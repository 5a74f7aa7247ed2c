//! Memory as words, whoever holds it.

use std::sync::atomic::{AtomicU32, Ordering};

/// Words that can be read and written. Indices have been checked; beyond the end reads give zero and writes do nothing.
pub(super) trait Words {
    fn word(&self, at: usize) -> u32;
    /// Replaces the bits of `mask`.
    fn set(&mut self, at: usize, value: u32, mask: u32);
}

/// Global memory, which other blocks use at the same time.
pub(super) struct Global<'a>(pub(super) &'a [AtomicU32]);

impl Words for Global<'_> {
    #[inline(always)]
    fn word(&self, at: usize) -> u32 {
        self.0.get(at).map_or(0, |w| w.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn set(&mut self, at: usize, value: u32, mask: u32) {
        let Some(word) = self.0.get(at) else { return };
        if mask == u32::MAX {
            word.store(value, Ordering::Relaxed);
        } else {
            // Another block may write the rest of the word.
            let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |w| Some(w & !mask | value & mask));
        }
    }
}

/// Memory that one thread of the host has to itself.
pub(super) struct Own<'a>(pub(super) &'a mut [u32]);

impl Words for Own<'_> {
    #[inline(always)]
    fn word(&self, at: usize) -> u32 {
        self.0.get(at).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn set(&mut self, at: usize, value: u32, mask: u32) {
        if let Some(word) = self.0.get_mut(at) {
            *word = *word & !mask | value & mask;
        }
    }
}

/// `bytes` (1, 2, 4 or 8, aligned) at a byte offset.
#[inline(always)]
pub(super) fn read(words: &impl Words, offset: u64, bytes: u8) -> u64 {
    let (at, shift) = ((offset >> 2) as usize, 8 * (offset & 3) as u32);
    match bytes {
        4 => u64::from(words.word(at)),
        8 => u64::from(words.word(at)) | u64::from(words.word(at + 1)) << 32,
        2 => u64::from(words.word(at) >> shift & 0xffff),
        _ => u64::from(words.word(at) >> shift & 0xff),
    }
}

/// Writes the low `bytes` of a value at a byte offset.
#[inline(always)]
pub(super) fn write(words: &mut impl Words, offset: u64, bytes: u8, value: u64) {
    let (at, shift) = ((offset >> 2) as usize, 8 * (offset & 3) as u32);
    match bytes {
        4 => words.set(at, value as u32, u32::MAX),
        8 => {
            words.set(at, value as u32, u32::MAX);
            words.set(at + 1, (value >> 32) as u32, u32::MAX);
        }
        2 => words.set(at, (value as u32) << shift, 0xffff << shift),
        _ => words.set(at, (value as u32) << shift, 0xff << shift),
    }
}
