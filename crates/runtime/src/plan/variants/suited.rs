//! The kernels' own rating of how well their defaults suit an input, beside what a selector learned.

use super::Deciding;
use crate::selection::{lead, leader};

/// How well its default suits an input that a kernel is made for; see [`Problem::suits`].
///
/// [`Problem::suits`]: tilewright_core::problem::Problem::suits
const MADE_FOR: f64 = 2.0;

impl Deciding<'_, '_> {
    /// The order of a learned selector, of which a kernel takes the lead where nothing is timed: the one whose default suits the input
    /// best by its own rating, where that was worth at least as much in the campaign; one that is made for such inputs in any case: they are
    /// rare, so that few or none of them were learned on, and a wrong guess costs several times the best; and one that suits the input better than
    /// all that were learned on, of which the selector knows nothing: no input of the campaign allowed it, say.
    pub(super) fn led_by_suited(
        &mut self,
        legal: &[usize],
        led_worth: Option<[f64; 2]>,
        mut order: Vec<usize>,
    ) -> Vec<usize> {
        let suits = |at: usize| self.planner.entrants[legal[at]].problem.suits();
        let known = order.iter().map(|at| suits(*at)).fold(0.0, f64::max);
        let unseen = (0..legal.len()).filter(|at| !order.contains(at) && suits(*at) > known);
        let newcomer = unseen.max_by(|a, b| suits(*a).total_cmp(&suits(*b)).then(b.cmp(a)));
        let Some(best) = newcomer.or_else(|| leader(&order, suits)) else { return order };
        let why = if newcomer.is_some() {
            "suits such inputs best by its own rating and was not learned on".to_owned()
        } else if suits(best) >= MADE_FOR && suits(best) > suits(order[0]) {
            "is made for such inputs".to_owned()
        } else if let Some([led, alone]) = led_worth {
            let (led, alone) = (100.0 * led, 100.0 * alone);
            let what = "comes first by how well defaults suit the input, by which the campaign's inputs ran at";
            format!("{what} {led:.1}% of the best, and without at {alone:.1}%")
        } else {
            return order;
        };
        self.reasons.push(format!("nothing is timed, and {} {why}, so that it leads", self.id(legal[best])));
        lead(&mut order, best);
        order
    }
}
