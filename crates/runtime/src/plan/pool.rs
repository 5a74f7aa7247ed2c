//! The configurations that a decision is made from.

use std::collections::HashMap;
use tilewright_core::measurement::{Failure, FailureKind, Measurement, Outcome};
use tilewright_core::objective::Objective;
use tilewright_core::space::Point;

/// One configuration under consideration.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) point: Point,
    /// What the model expects, in seconds.
    pub(super) predicted_s: Option<f64>,
    /// What was measured last; None before.
    pub(super) outcome: Option<Outcome>,
}

impl Candidate {
    pub(super) fn measurement(&self) -> Option<&Measurement> {
        self.outcome.as_ref().and_then(|o| o.as_ref().ok())
    }

    /// The measured cost; infinite for what failed or was not measured.
    pub(super) fn cost(&self, objective: &Objective) -> f64 {
        self.measurement().and_then(|m| objective.cost(m)).unwrap_or(f64::INFINITY)
    }

    /// A wrong result takes it out of the running.
    pub(super) fn mark_wrong(&mut self, message: String) {
        self.outcome = Some(Err(Failure { kind: FailureKind::Wrong, message }));
    }
}

/// Candidates without duplicates, in the order of the preference that breaks ties.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    candidates: Vec<Candidate>,
    index: HashMap<Point, usize>,
}

impl Pool {
    /// Adds a point, or finds it and learns what the model expects of it.
    pub(super) fn add(&mut self, point: Point, predicted_s: Option<f64>) -> usize {
        if let Some(&at) = self.index.get(&point) {
            let known = &mut self.candidates[at].predicted_s;
            *known = known.or(predicted_s);
            return at;
        }
        self.index.insert(point.clone(), self.candidates.len());
        self.candidates.push(Candidate { point, predicted_s, outcome: None });
        self.candidates.len() - 1
    }

    pub(super) fn get(&self, at: usize) -> &Candidate {
        &self.candidates[at]
    }

    pub(super) fn get_mut(&mut self, at: usize) -> &mut Candidate {
        &mut self.candidates[at]
    }

    pub(super) fn len(&self) -> usize {
        self.candidates.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter()
    }

    /// Indices by measured cost, best first; equal costs in order of preference.
    pub(super) fn by_cost(&self, objective: &Objective) -> Vec<usize> {
        let mut order: Vec<(f64, usize)> = self.iter().map(|c| c.cost(objective)).zip(0..).collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        order.into_iter().map(|(_, at)| at).collect()
    }

    /// The least measured cost; infinite where nothing was measured.
    pub(super) fn best_cost(&self, objective: &Objective) -> f64 {
        self.iter().map(|c| c.cost(objective)).fold(f64::INFINITY, f64::min)
    }

    /// How many were timed, whatever came of it: no more than timings.
    pub(super) fn tried(&self) -> u64 {
        self.candidates.iter().filter(|c| c.outcome.is_some()).count() as u64
    }

    /// Whether anything was measured.
    pub(super) fn any_measured(&self) -> bool {
        self.candidates.iter().any(|c| c.measurement().is_some())
    }

    /// The last failure, in order of preference.
    pub(super) fn last_failure(&self) -> Option<&Failure> {
        self.candidates.iter().rev().find_map(|c| c.outcome.as_ref()?.as_ref().err())
    }
}
