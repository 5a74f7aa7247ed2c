//! From scores to an order.

use std::cell::RefCell;
use tilewright_core::selector::VariantOrder;

/// Buffers of a ranking, kept by each thread so that a choice allocates nothing.
#[derive(Default)]
pub(crate) struct RankScratch {
    pub(crate) rows: Vec<f32>,
    pub(crate) scores: Vec<f32>,
    pub(crate) by: Vec<f32>,
}

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
    let key = |&i: &usize| scores[i];
    out.clear();
    out.extend(0..scores.len());
    out.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        a.is_nan().cmp(&b.is_nan()).then(a.total_cmp(&b))
    });
}
