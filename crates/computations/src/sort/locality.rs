//! Merge sort of the runs that are there: descending ones are turned round, and of two neighbours only what overlaps moves.

use super::Algorithm;
use super::bits::Bits;
use super::merge::{insertion, merge};

/// Runs shorter than this are filled up to it and sorted by insertion.
#[derive(Clone, Copy)]
pub(super) struct Locality(usize);

impl Algorithm for Locality {
    fn of(params: &[i64]) -> Self {
        Self(params.first().map_or(1, |least| least.unsigned_abs().max(1) as usize))
    }

    #[inline(always)]
    fn sort<B: Bits>(self, keys: &mut [B], scratch: &mut [B]) {
        let mut ends = runs(keys, self.0);
        while ends.len() > 1 {
            let mut start = 0;
            let mut kept = Vec::with_capacity(ends.len().div_ceil(2));
            for pair in ends.chunks(2) {
                let end = pair[pair.len() - 1];
                if let &[middle, end] = pair {
                    join(&mut keys[start..end], middle - start, scratch);
                }
                kept.push(end);
                start = end;
            }
            ends = kept;
        }
    }
}

/// Finds runs, and gives where each ends.
#[inline(always)]
fn runs<B: Bits>(keys: &mut [B], least: usize) -> Vec<usize> {
    let (mut ends, mut start) = (Vec::new(), 0);
    while start < keys.len() {
        let rest = &mut keys[start..];
        let descending = rest.windows(2).take_while(|w| w[1] < w[0]).count() + 1;
        let mut length = if descending > 1 {
            rest[..descending].reverse();
            descending
        } else {
            rest.windows(2).take_while(|w| w[0] <= w[1]).count() + 1
        };
        if length < least {
            length = least.min(rest.len());
            insertion(&mut rest[..length]);
        }
        start += length;
        ends.push(start);
    }
    ends
}

/// Merges two neighbours in place: keys that are in their places at both ends stay there.
#[inline(always)]
fn join<B: Bits>(keys: &mut [B], middle: usize, scratch: &mut [B]) {
    let (left, right) = keys.split_at(middle);
    let (Some(last), Some(first)) = (left.last(), right.first()) else { return };
    if last <= first {
        return;
    }
    let from = left.partition_point(|k| k <= first);
    let to = middle + right.partition_point(|k| k < last);
    let both = &mut keys[from..to];
    let scratch = &mut scratch[..both.len()];
    scratch.copy_from_slice(both);
    let (left, right) = scratch.split_at(middle - from);
    merge(left, right, both);
}
