//! Radix sort from the lowest byte; bytes that all keys share are passed over.

use super::Algorithm;
use super::bits::Bits;

#[derive(Clone, Copy)]
pub(super) struct Radix;

impl Algorithm for Radix {
    fn of(_: &[i64]) -> Self {
        Self
    }

    #[inline(always)]
    fn sort<B: Bits>(self, keys: &mut [B], scratch: &mut [B]) {
        // The counts of all bytes in one pass over the keys.
        let mut counts = [[0u32; 256]; 8];
        for key in keys.iter() {
            for (number, count) in counts.iter_mut().enumerate().take(B::BYTES) {
                count[key.byte(number)] += 1;
            }
        }
        let (mut from, mut to) = (keys, scratch);
        let mut swapped = false;
        for (number, count) in counts.iter().enumerate().take(B::BYTES) {
            if count.iter().any(|&c| c as usize == from.len()) {
                continue;
            }
            scatter(from, to, number, count);
            std::mem::swap(&mut from, &mut to);
            swapped = !swapped;
        }
        if swapped {
            to.copy_from_slice(from);
        }
    }
}

#[inline(always)]
fn scatter<B: Bits>(from: &[B], to: &mut [B], number: usize, count: &[u32; 256]) {
    let mut next = [0u32; 256];
    let mut sum = 0;
    for (next, count) in next.iter_mut().zip(count) {
        *next = sum;
        sum += count;
    }
    for key in from {
        let place = &mut next[key.byte(number)];
        to[*place as usize] = *key;
        *place += 1;
    }
}
