//! A learned selector beside the kernels' own rating of how well their defaults suit an input ([`Problem::suits`]).
//!
//! Where nothing is timed, a kernel runs by its default or by something close to it. Whether that rating is then better
//! than a selector that learned from some hundred inputs is not known beforehand: the campaign's own inputs say it.
//!
//! [`Problem::suits`]: tilewright_core::problem::Problem::suits

use tilewright_core::selector::VariantOrder;

/// The one that is rated highest, of equals the one that is named first, as where nothing is known; none where it leads the order already.
pub(crate) fn leader(order: &[usize], suits: impl Fn(usize) -> f64) -> Option<usize> {
    let best = order.iter().copied().max_by(|a, b| suits(*a).total_cmp(&suits(*b)).then(b.cmp(a)))?;
    (best != order[0]).then_some(best)
}

/// Puts one at the front of an order.
pub(crate) fn lead(order: &mut VariantOrder, leader: usize) {
    order.retain(|at| *at != leader);
    order.insert(0, leader);
}
