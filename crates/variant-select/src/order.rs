//! From scores to an order.

use crate::trees::Walk;
use std::cell::RefCell;
use tilewright_core::selector::VariantOrder;

/// Buffers of a ranking, kept by each thread so that a choice allocates nothing.
#[derive(Default)]
pub(crate) struct RankScratch {
    pub(crate) rows: Vec<f32>,
    pub(crate) scores: Vec<f32>,
    pub(crate) by: Vec<f32>,
    pub(crate) walk: Walk,
}

const _: () = assert!(usize::BITS >= 64, "a score and a place share a word");

thread_local! {
    static SCRATCH: RefCell<RankScratch> = RefCell::default();
}

impl RankScratch {
    /// Lends the buffers of this thread; fresh ones if they are lent already.
    pub(crate) fn with<R>(f: impl FnOnce(&mut Self) -> R) -> R {
        SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
            Ok(mut scratch) => f(&mut scratch),
            Err(_) => f(&mut Self::default()),
        })
    }
}

/// Writes the order of ascending scores; equal ones keep their order, and what has no score (NaN) comes last.
pub(crate) fn by_score(scores: &[f32], out: &mut VariantOrder) {
    out.clear();
    // One word each, the score above the place: words sort several times faster than places by a look-up.
    out.extend(scores.iter().enumerate().map(|(i, &s)| (rising(s) << 32) as usize | i));
    out.sort_unstable();
    out.iter_mut().for_each(|word| *word &= u32::MAX as usize);
}

/// A number that rises with the score; NaN has the largest. Both zeros are alike.
fn rising(score: f32) -> u64 {
    if score.is_nan() {
        return u64::from(u32::MAX);
    }
    let bits = (score + 0.0).to_bits();
    u64::from(if bits >> 31 == 0 { bits | 1 << 31 } else { !bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_rise_and_what_has_none_is_last() {
        let scores = [2.0, f32::NAN, -1.0, 0.0, f32::INFINITY, -0.0, -3.5, f32::NEG_INFINITY, 2.0, f32::NAN];
        let mut order = vec![7];
        by_score(&scores, &mut order);
        assert_eq!(order, [7, 6, 2, 3, 5, 0, 8, 4, 1, 9]);
        by_score(&[], &mut order);
        assert!(order.is_empty());
    }
}
