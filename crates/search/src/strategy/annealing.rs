//! Simulated annealing.

use super::listed::{Chooser, ListedHistory};
use crate::neighbourhood::{Neighbourhood, Reach};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Temperature at the start, in differences of log cost: a point 30% slower is accepted once in e times.
const HOT: f64 = 0.3;
/// Temperature at the end.
const COLD: f64 = 0.01;
/// Share of the temperature that is kept from one outcome to the next.
const COOLING: f64 = 0.98;
/// Outcomes without a move before the search begins anew, hot.
const PATIENCE: u32 = 60;
/// Steps over known points before something unknown is asked.
const STEPS: u32 = 100;

/// A walk over neighbours that also accepts slower points, the less the longer it goes. Steps to points that are known
/// are taken without asking.
#[derive(Debug)]
pub(crate) struct Annealing {
    here: Option<(u32, f64)>,
    temperature: f64,
    idle: u32,
    /// The neighbours of a point, adjacent ones and all: while the walk stays they are the same.
    near: [(Option<u32>, Vec<u32>); 2],
}

impl Default for Annealing {
    fn default() -> Self {
        Self { here: None, temperature: HOT, idle: 0, near: Default::default() }
    }
}

impl Annealing {
    fn consider(&mut self, number: u32, cost: f64, rng: &mut ChaCha8Rng) {
        let accepted = match self.here {
            None => cost.is_finite(),
            Some((_, here)) => rng.random::<f64>() < ((here / cost).ln() / self.temperature).exp(),
        };
        if accepted {
            self.here = Some((number, cost));
            self.idle = 0;
        }
    }
}

impl Chooser for Annealing {
    fn choose(&mut self, history: &mut ListedHistory, rng: &mut ChaCha8Rng) -> Option<u32> {
        if self.idle >= PATIENCE {
            *self = Self::default();
        }
        for _ in 0..STEPS {
            let Some((here, _)) = self.here else { break };
            let (which, reach) = if rng.random_bool(0.5) { (0, Reach::Adjacent) } else { (1, Reach::Single) };
            let (of, near) = &mut self.near[which];
            if *of != Some(here) {
                near.clear();
                Neighbourhood::of(&*history.listing).add(history.listing.indices(here), reach, near);
                *of = Some(here);
            }
            if near.is_empty() {
                break;
            }
            let next = near[rng.random_range(0..near.len())];
            match history.cost(next) {
                None if !history.knows(next) => return Some(next),
                None => {}
                Some(cost) => self.consider(next, cost, rng),
            }
        }
        history.unknown(rng)
    }

    fn learn(&mut self, _: &ListedHistory, number: u32, cost: f64, rng: &mut ChaCha8Rng) {
        self.idle += 1;
        self.consider(number, cost, rng);
        self.temperature = COLD.max(self.temperature * COOLING);
    }
}
