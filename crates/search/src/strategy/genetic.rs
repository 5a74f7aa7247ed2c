//! A genetic algorithm, one child at a time.

use super::listed::{Chooser, ListedHistory};
use crate::neighbourhood::{Neighbourhood, Reach};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Size of the population.
const POPULATION: usize = 20;
/// Contestants for being a parent.
const TOURNAMENT: usize = 3;
/// Children tried before something random is asked.
const TRIES: usize = 40;

/// Uniform crossover of two good parents, mutation of a parameter or so; the worst of the population makes room. Children
/// that are not legal are tried again with another mixture.
#[derive(Debug, Default)]
pub(crate) struct Genetic {
    population: Vec<(f64, u32)>,
}

impl Genetic {
    fn parent(&self, rng: &mut ChaCha8Rng) -> u32 {
        let picks = (0..TOURNAMENT).map(|_| self.population[rng.random_range(0..self.population.len())]);
        picks.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0, |(_, number)| number)
    }

    fn child(&self, history: &ListedHistory, rng: &mut ChaCha8Rng) -> Option<u32> {
        let (one, other) = (self.parent(rng), self.parent(rng));
        let mut child = history.listing.indices(one).to_vec();
        for (gene, theirs) in child.iter_mut().zip(history.listing.indices(other)) {
            if rng.random_bool(0.5) {
                *gene = *theirs;
            }
        }
        let rate = 1.0 / child.len().max(1) as f64;
        for (gene, param) in child.iter_mut().zip(history.listing.params()) {
            if rng.random_bool(rate) {
                *gene = rng.random_range(0..param.values.len()) as u16;
            }
        }
        history.listing.find(&child)
    }
}

impl Chooser for Genetic {
    fn choose(&mut self, history: &mut ListedHistory, rng: &mut ChaCha8Rng) -> Option<u32> {
        if self.population.len() >= POPULATION.min(history.listing.len()) && !self.population.is_empty() {
            for _ in 0..TRIES {
                if let Some(child) = self.child(history, rng).filter(|&c| !history.knows(c)) {
                    return Some(child);
                }
            }
            let parent = history.listing.indices(self.parent(rng));
            let mut near = Neighbourhood::of(&*history.listing).within(parent, Reach::Single);
            near.retain(|&n| !history.knows(n));
            if !near.is_empty() {
                return Some(near[rng.random_range(0..near.len())]);
            }
        }
        history.unknown(rng)
    }

    fn learn(&mut self, _: &ListedHistory, number: u32, cost: f64, _: &mut ChaCha8Rng) {
        let at = self.population.partition_point(|(c, _)| *c <= cost);
        self.population.insert(at, (cost, number));
        self.population.truncate(POPULATION);
    }
}
