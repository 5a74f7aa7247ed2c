//! Merge sort from runs of sixteen, without looking at what is in order already.

use super::Algorithm;
use super::bits::Bits;

/// Keys of a run that is sorted by counting, for each key, the keys before it: no branches, and vectorised.
const RUN: usize = 16;

#[derive(Clone, Copy)]
pub(super) struct Merge;

impl Algorithm for Merge {
    fn of(_: &[i64]) -> Self {
        Self
    }

    #[inline(always)]
    fn sort<B: Bits>(self, keys: &mut [B], scratch: &mut [B]) {
        let (whole, rest) = keys.as_chunks_mut::<RUN>();
        for run in whole {
            by_ranks(run);
        }
        insertion(rest);
        let (mut from, mut to) = (keys, scratch);
        let (mut length, mut swapped) = (RUN, false);
        while length < from.len() {
            for (pair, out) in from.chunks(2 * length).zip(to.chunks_mut(2 * length)) {
                let (left, right) = pair.split_at(length.min(pair.len()));
                merge(left, right, out);
            }
            std::mem::swap(&mut from, &mut to);
            (length, swapped) = (2 * length, !swapped);
        }
        if swapped {
            to.copy_from_slice(from);
        }
    }
}

/// The rank of a key is the number of smaller keys and of equal ones before it.
#[inline(always)]
fn by_ranks<B: Bits>(run: &mut [B; RUN]) {
    let keys = *run;
    let mut ranks = [0u8; RUN];
    for (i, key) in keys.iter().enumerate() {
        for (j, (rank, other)) in ranks.iter_mut().zip(&keys).enumerate() {
            *rank += u8::from(key < other) + u8::from(key == other && i < j);
        }
    }
    for (key, rank) in keys.iter().zip(ranks) {
        run[rank as usize % RUN] = *key;
    }
}

/// For what is shorter than a run.
#[inline(always)]
pub(super) fn insertion<B: Bits>(keys: &mut [B]) {
    for i in 1..keys.len() {
        let key = keys[i];
        let mut at = i;
        while at > 0 && key < keys[at - 1] {
            keys[at] = keys[at - 1];
            at -= 1;
        }
        keys[at] = key;
    }
}

/// Merges without branches on keys while both sides last.
#[inline(always)]
pub(super) fn merge<B: Bits>(left: &[B], right: &[B], out: &mut [B]) {
    let (mut l, mut r, mut o) = (0, 0, 0);
    while l < left.len() && r < right.len() {
        let second = right[r] < left[l];
        out[o] = if second { right[r] } else { left[l] };
        l += usize::from(!second);
        r += usize::from(second);
        o += 1;
    }
    let rest = left.len() - l;
    out[o..o + rest].copy_from_slice(&left[l..]);
    out[o + rest..].copy_from_slice(&right[r..]);
}

/// How many keys of each side the first `at` keys of the merged sequence hold.
pub(super) fn diagonal<B: Bits>(left: &[B], right: &[B], at: usize) -> (usize, usize) {
    let (mut low, mut high) = (at.saturating_sub(right.len()), at.min(left.len()));
    while low < high {
        let l = low.midpoint(high);
        // Equal keys come from the left first.
        if right[at - l - 1] < left[l] { high = l } else { low = l + 1 }
    }
    (low, at - low)
}
