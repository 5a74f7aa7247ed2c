//! A Gaussian process over numbered points, with a pool of candidates that follows every observation.

use super::dot::dot32;
use super::kernel::Kernel;
use crate::listing::Listing;

/// Rows of Cholesky's factor of the observed points, and for every candidate what a prediction needs.
///
/// An observation costs one row, and one number for each candidate; nothing is computed again.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    kernel: Kernel,
    capacity: usize,
    /// The observed points.
    pub(crate) observed: Vec<u32>,
    /// Rows of the factor, each as long as its number says.
    rows: Vec<Vec<f32>>,
    /// The candidates.
    pub(crate) pool: Vec<u32>,
    /// For every candidate, the factor's solution for its covariances: `capacity` numbers, as many in use as are observed.
    solved: Vec<f32>,
    /// For every candidate, its variance that is left.
    pub(crate) variance: Vec<f32>,
}

impl Process {
    pub(crate) fn new(kernel: Kernel, capacity: usize) -> Self {
        Self {
            kernel,
            capacity,
            observed: Vec::new(),
            rows: Vec::new(),
            pool: Vec::new(),
            solved: Vec::new(),
            variance: Vec::new(),
        }
    }

    /// Whether another point can be observed.
    pub(crate) fn has_room(&self) -> bool {
        self.observed.len() < self.capacity
    }

    /// Adds a candidate.
    pub(crate) fn admit(&mut self, listing: &Listing, number: u32) {
        let (row, _) = self.solve(listing, number);
        self.variance.push((1.0 - dot32(&row, &row)).max(1e-6));
        self.pool.push(number);
        self.solved.extend_from_slice(&row);
        self.solved.resize(self.pool.len() * self.capacity, 0.0);
    }

    /// Removes the candidates that `gone` names.
    pub(crate) fn dismiss(&mut self, gone: impl Fn(u32) -> bool) {
        let mut at = 0;
        while at < self.pool.len() {
            if gone(self.pool[at]) {
                let last = self.pool.len() - 1;
                self.pool.swap_remove(at);
                self.variance.swap_remove(at);
                let (start, from) = (at * self.capacity, last * self.capacity);
                self.solved.copy_within(from..from + self.capacity, start);
                self.solved.truncate(from);
            } else {
                at += 1;
            }
        }
    }

    /// The factor's solution for a point's covariances, by forward substitution.
    fn solve(&self, listing: &Listing, number: u32) -> (Vec<f32>, f32) {
        let point = listing.indices(number);
        let mut out: Vec<f32> = Vec::with_capacity(self.rows.len() + 1);
        for (i, row) in self.rows.iter().enumerate() {
            let covariance = self.kernel.of(point, listing.indices(self.observed[i]));
            out.push((covariance - dot32(&row[..i], &out)) / row[i]);
        }
        let left = 1.0 + self.kernel.noise - dot32(&out, &out);
        (out, left)
    }

    /// Observes a point; its value is given when values are predicted from.
    pub(crate) fn observe(&mut self, listing: &Listing, number: u32) {
        let (mut row, left) = self.solve(listing, number);
        let diagonal = left.max(1e-6).sqrt();
        let n = row.len();
        let point = listing.indices(number);
        for (at, &candidate) in self.pool.iter().enumerate() {
            let solved = &mut self.solved[at * self.capacity..][..=n];
            let covariance = self.kernel.of(point, listing.indices(candidate));
            let entry = (covariance - dot32(&row, &solved[..n])) / diagonal;
            solved[n] = entry;
            self.variance[at] = (self.variance[at] - entry * entry).max(1e-6);
        }
        row.push(diagonal);
        self.rows.push(row);
        self.observed.push(number);
    }

    /// The factor's solution for the observed values.
    pub(crate) fn weigh(&self, values: &[f32]) -> Vec<f32> {
        let mut out: Vec<f32> = Vec::with_capacity(values.len());
        for (i, row) in self.rows.iter().enumerate() {
            out.push((values[i] - dot32(&row[..i], &out)) / row[i]);
        }
        out
    }

    /// The expected value of a candidate.
    pub(crate) fn mean(&self, at: usize, weights: &[f32]) -> f32 {
        dot32(&self.solved[at * self.capacity..][..weights.len()], weights)
    }
}
