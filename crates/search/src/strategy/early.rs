//! Random search that ends when enough was seen.

use super::Random;
use super::listed::{Chooser, ListedHistory};
use crate::history::cost;
use crate::stop::{Rule, Sample, Tolerance};
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;
use tilewright_core::measurement::Outcome;
use tilewright_core::objective::Objective;
use tilewright_core::search::{Ranked, Search};
use tilewright_core::space::{BoundSpace, Point};

/// Fewer samples have no distribution that a rule could read.
pub(crate) const FEWEST: usize = 3;

/// A rule with the sample that it judges.
#[derive(Debug)]
struct Judge {
    rule: Rule,
    alpha: f64,
    sample: Sample,
    bound: f64,
}

impl Judge {
    fn new(rule: Rule, size: usize, tolerance: Tolerance) -> Self {
        let bound = if size == 0 { 0.0 } else { 1.0 };
        Self { rule, alpha: tolerance.alpha, sample: Sample::new(size, tolerance.epsilon), bound }
    }

    fn see(&mut self, cost: f64) {
        self.sample.see(cost);
        self.bound = self.rule.bound(&self.sample);
    }

    fn is_satisfied(&self) -> bool {
        self.bound < self.alpha && self.sample.seen() >= FEWEST
    }
}

/// Points uniformly at random until a rule's bound on the chance of a miss falls below alpha.
#[derive(Debug)]
pub(crate) struct Early(Judge);

impl Early {
    pub(crate) fn new(rule: Rule, size: usize, tolerance: Tolerance) -> Self {
        Self(Judge::new(rule, size, tolerance))
    }
}

impl Chooser for Early {
    fn choose(&mut self, history: &mut ListedHistory, rng: &mut ChaCha8Rng) -> Option<u32> {
        history.unknown(rng)
    }

    fn learn(&mut self, _: &ListedHistory, _: u32, cost: f64, _: &mut ChaCha8Rng) {
        self.0.see(cost);
    }

    fn bound(&self, _: &ListedHistory) -> Option<f64> {
        Some(self.0.bound)
    }

    fn done(&mut self, _: &ListedHistory) -> bool {
        self.0.is_satisfied()
    }
}

/// The same without a list of the space, for any size of it.
#[derive(Debug)]
pub struct EarlyStop<'a> {
    random: Random<'a>,
    objective: Objective,
    seen: HashSet<Point>,
    judge: Judge,
}

impl<'a> EarlyStop<'a> {
    /// A search of the space. Counts its legal points.
    pub fn new(space: &'a BoundSpace, objective: Objective, rule: Rule, tolerance: Tolerance, seed: u64) -> Self {
        let size = usize::try_from(space.count_legal()).unwrap_or(usize::MAX);
        let random = Random::new(space, objective.clone(), seed);
        Self { random, objective, seen: HashSet::new(), judge: Judge::new(rule, size, tolerance) }
    }
}

impl Search for EarlyStop<'_> {
    fn ask(&mut self, n: usize) -> Vec<Point> {
        if self.judge.is_satisfied() { Vec::new() } else { self.random.ask(n) }
    }

    fn tell(&mut self, seen: &[(Point, Outcome)]) {
        for (point, outcome) in seen {
            if self.seen.insert(point.clone()) {
                self.judge.see(cost(&self.objective, outcome).unwrap_or(f64::INFINITY));
            }
        }
        self.random.tell(seen);
    }

    fn best(&self) -> Ranked {
        self.random.best()
    }

    fn bound(&self) -> Option<f64> {
        Some(self.judge.bound)
    }
}
