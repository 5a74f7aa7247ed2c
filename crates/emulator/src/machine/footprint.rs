//! Which bytes of global memory instructions touch over a launch, and which lie in the gaps of their strides.

use super::access::Group;
use super::shadow::warps;
use std::collections::BTreeMap;

/// Bytes that a page stands for.
const PAGE: u64 = 4096;

/// A set of bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes {
    pages: BTreeMap<u64, Box<[u64; (PAGE / 64) as usize]>>,
}

impl Bytes {
    fn add(&mut self, from: u64, to: u64) {
        let mut at = from;
        while at < to {
            let (page, within) = (at / PAGE, at % PAGE);
            let end = to.min((page + 1) * PAGE);
            let words = self.pages.entry(page).or_insert_with(|| Box::new([0; (PAGE / 64) as usize]));
            let last = within + (end - at);
            for (i, word) in words.iter_mut().enumerate().take(last.div_ceil(64) as usize).skip((within / 64) as usize)
            {
                let (low, high) = (64 * i as u64, 64 * (i as u64 + 1));
                let (first, count) = (within.max(low) - low, last.min(high) - within.max(low));
                *word |= (u64::MAX >> (64 - count)) << first;
            }
            at = end;
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (page, words) in &other.pages {
            let to = self.pages.entry(*page).or_insert_with(|| Box::new([0; (PAGE / 64) as usize]));
            for (to, from) in to.iter_mut().zip(words.iter()) {
                *to |= from;
            }
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.pages.values().flat_map(|words| words.iter()).map(|w| u64::from(w.count_ones())).sum()
    }
}

/// What accesses to one buffer touched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    pub(crate) used: Bytes,
    /// The same with the gaps.
    pub(crate) spanned: Bytes,
}

impl Marks {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.used.merge(&other.used);
        self.spanned.merge(&other.spanned);
    }
}

/// By instruction and number of the buffer.
pub(crate) type Footprints = BTreeMap<(u32, usize), Marks>;

/// Adds one access: the lanes of `good`, each with what lies from it to where the next lane's step would end. `length` is
/// that of the buffer.
pub(super) fn mark(marks: &mut Marks, group: &Group<'_>, good: u32, bytes: u64, length: u64) {
    let reach = group.shape.step.unsigned_abs().max(bytes);
    for lane in warps(good) {
        let at = group.at[lane];
        marks.used.add(at, at + bytes);
        marks.spanned.add(at, at.saturating_add(reach).min(length));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_bytes_count_what_was_added() {
        let mut bytes = Bytes::default();
        let mut known = std::collections::BTreeSet::new();
        for (from, to) in [(0, 4), (2, 9), (60, 70), (4090, 4100), (5000, 5000), (8191, 12_290), (64, 128)] {
            bytes.add(from, to);
            known.extend(from..to);
            assert_eq!(bytes.len(), known.len() as u64);
        }
        let mut other = Bytes::default();
        other.add(100, 200);
        other.merge(&bytes);
        known.extend(100..200);
        assert_eq!(other.len(), known.len() as u64);
    }
}
