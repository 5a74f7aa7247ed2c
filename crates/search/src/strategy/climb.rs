//! Local search with restarts.

use super::listed::{Chooser, ListedHistory};
use crate::neighbourhood::{Neighbourhood, Reach};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Hill climbing by first improvement: from a random point to any better neighbour, near values before far ones, until
/// there is none; then from another random point.
#[derive(Debug, Default)]
pub(crate) struct Climb {
    /// The point that is climbed from, and its cost.
    here: Option<(u32, f64)>,
    /// Neighbours to try, the next one last.
    queue: Vec<u32>,
}

impl Climb {
    fn move_to(&mut self, history: &ListedHistory, number: u32, cost: f64, rng: &mut ChaCha8Rng) {
        self.here = Some((number, cost));
        let around = Neighbourhood::of(&*history.listing);
        let point = history.listing.indices(number);
        let (mut near, mut all) = (around.within(point, Reach::Adjacent), around.within(point, Reach::Single));
        all.retain(|n| !near.contains(n));
        near.shuffle(rng);
        all.shuffle(rng);
        all.append(&mut near);
        // Better neighbours that are known already are moved to at once.
        let known = all.iter().filter_map(|&n| Some((history.cost(n)?, n))).min_by(|a, b| a.0.total_cmp(&b.0));
        match known {
            Some((better, there)) if better < cost => self.move_to(history, there, better, rng),
            _ => {
                all.retain(|&n| !history.knows(n));
                self.queue = all;
            }
        }
    }
}

impl Chooser for Climb {
    fn choose(&mut self, history: &mut ListedHistory, rng: &mut ChaCha8Rng) -> Option<u32> {
        while let Some(next) = self.queue.pop() {
            if !history.knows(next) {
                return Some(next);
            }
        }
        // A local optimum, or nowhere yet: the first outcome of something random is climbed from.
        self.here = None;
        history.unknown(rng)
    }

    fn learn(&mut self, history: &ListedHistory, number: u32, cost: f64, rng: &mut ChaCha8Rng) {
        if cost.is_finite() && self.here.is_none_or(|(_, here)| cost < here) {
            self.move_to(history, number, cost, rng);
        }
    }
}
