//! Gradient-boosted trees on the relative cost of candidates.
//!
//! One model for all candidates: a row is the input's features, the candidate's and what [general rules](derive) make of
//! them; the target is the log of the time over the best of the case. Histograms and leaf-wise growth as in LightGBM.

pub(crate) mod bins;
mod derive;
mod grow;
mod model;
mod objective;
mod pairs;
mod risk;
mod tiles;
mod walk;

pub(crate) use derive::Derived;
pub use objective::Objective;
pub(crate) use risk::Risk;
pub(crate) use walk::Walk;

use crate::order::{RankScratch, by_score};
use bins::Binned;
use grow::{Grower, Rows, Shape};
use model::Tree;
use objective::Targets;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};
use tilewright_core::setting::SettingError;
use walk::Walker;

/// Fits boosted trees.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BoostedTrees {
    /// Number of trees.
    pub trees: usize,
    /// Most leaves of a tree.
    pub leaves: usize,
    /// Most splits on the way to a leaf: what a choice costs.
    pub depth: usize,
    /// Share of a tree's values that is added.
    pub rate: f32,
    /// Most bins of a feature, up to 254.
    pub bins: usize,
    /// Share of the features that a tree may split on.
    pub columns: f64,
    /// Share of the cases that a tree is grown on.
    pub cases: f64,
    /// Least sum of curvatures in a leaf (rows, for [`Objective::Relative`]).
    pub least: f64,
    /// Penalty on the squared values of leaves.
    pub l2: f64,
    /// Relative costs above this (natural log) are as bad as a failure.
    pub cap: f32,
    /// What is minimised.
    pub objective: Objective,
}

impl Default for BoostedTrees {
    fn default() -> Self {
        Self {
            trees: 300,
            leaves: 32,
            depth: 8,
            rate: 0.1,
            bins: 128,
            columns: 0.5,
            cases: 0.8,
            least: 0.3,
            l2: 0.1,
            cap: 1.5,
            objective: Objective::Listwise { temperature: 0.06 },
        }
    }
}

impl BoostedTrees {
    fn check(&self) -> Result<(), SelectError> {
        let check = |field, value: f64, good, limit| SettingError::check(field, value, good, limit);
        let share = |x: f64| x > 0.0 && x <= 1.0;
        check("trees", self.trees as f64, (1..=100_000).contains(&self.trees), "1 to 100000")?;
        check("leaves", self.leaves as f64, (2..=4096).contains(&self.leaves), "2 to 4096")?;
        check("depth", self.depth as f64, (1..=64).contains(&self.depth), "1 to 64")?;
        check("rate", f64::from(self.rate), share(f64::from(self.rate)), "above 0, at most 1")?;
        check("bins", self.bins as f64, (2..=254).contains(&self.bins), "2 to 254")?;
        check("columns", self.columns, share(self.columns), "above 0, at most 1")?;
        check("cases", self.cases, share(self.cases), "above 0, at most 1")?;
        check("least", self.least, self.least.is_finite() && self.least > 0.0, "positive")?;
        check("l2", self.l2, self.l2.is_finite() && self.l2 >= 0.0, "finite and not negative")?;
        check("cap", f64::from(self.cap), self.cap.is_finite() && self.cap > 0.0, "positive")?;
        Ok(())
    }

    /// Fits, and keeps the concrete type.
    ///
    /// # Errors
    /// A setting out of range, no case with a variant that ran.
    pub fn fit_trees(&self, data: &ChoiceSet, seed: u64) -> Result<TreeSelector, SelectError> {
        self.check()?;
        let derived = Derived::fit(data);
        let (rows, targets) = table(data, &derived, self.cap)?;
        let binned = Binned::new(&rows, derived.width(), self.bins);
        let usable = binned.varying();
        let trees = if usable.is_empty() { Vec::new() } else { self.boost(&binned, &usable, &targets, seed) };
        Ok(TreeSelector { derived, walker: Walker::new(&trees) })
    }

    fn boost(&self, binned: &Binned, usable: &[usize], targets: &Targets, seed: u64) -> Vec<Tree> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut cases: Vec<usize> = (0..targets.cases.len()).collect();
        let mut columns = usable.to_vec();
        let drawn = |n: usize, share: f64| ((n as f64 * share).ceil() as usize).clamp(1, n);
        let (leaves, depth, rate) = (self.leaves, self.depth, self.rate);
        let shape = Shape { leaves, depth, rate, least_curvature: self.least, l2: self.l2 };
        boost(binned, self.trees, &shape, |predicted, gradient, curvature| {
            self.objective.derivatives(targets, predicted, gradient, curvature);
            cases.shuffle(&mut rng);
            columns.shuffle(&mut rng);
            let some = &mut cases[..drawn(targets.cases.len(), self.cases)].to_vec();
            // In the order of memory.
            some.sort_unstable();
            let rows = some.iter().flat_map(|&c| targets.cases[c].clone()).map(|r| r as u32).collect();
            let mut features = columns[..drawn(usable.len(), self.columns)].to_vec();
            features.sort_unstable();
            (rows, features)
        })
    }
}

/// Trees that add up to a prediction of every row. For each, `draw` writes the gradients and the curvatures of what was predicted so
/// far, and gives the rows and the features that the tree is grown on.
fn boost(
    binned: &Binned,
    trees: usize,
    shape: &Shape,
    mut draw: impl FnMut(&[f32], &mut [f32], &mut [f32]) -> (Vec<u32>, Vec<usize>),
) -> Vec<Tree> {
    let rows = binned.cells.len() / binned.width;
    let mut predicted = vec![0.0f32; rows];
    let (mut gradient, mut curvature) = (vec![0.0f32; rows], vec![1.0f32; rows]);
    let grow = |_| {
        let (mut order, features) = draw(&predicted, &mut gradient, &mut curvature);
        let seen = Rows { binned, gradient: &gradient, curvature: &curvature };
        let tree = Grower::new(seen, &features, shape).grow(&mut order);
        tree.add_binned(binned, &mut predicted);
        tree
    };
    (0..trees).map(grow).collect()
}

/// The rows of all cases in which something ran, and their targets.
fn table(data: &ChoiceSet, derived: &Derived, cap: f32) -> Result<(Vec<f32>, Targets), SelectError> {
    let mut rows = Vec::new();
    let mut targets = Targets { cases: Vec::new(), relative: Vec::new() };
    for case in data.cases() {
        let Some(best) = case.best() else { continue };
        derived.rows(&case.features, case.trials.iter().map(|t| &t.candidate), &mut rows);
        let first = targets.relative.len();
        let relative = |cost: Option<f64>| cost.map_or(cap, |c| ((c / best).ln() as f32).min(cap));
        targets.relative.extend(case.trials.iter().map(|t| relative(t.cost)));
        targets.cases.push(first..targets.relative.len());
    }
    if targets.cases.is_empty() { Err(SelectError::NothingLegal) } else { Ok((rows, targets)) }
}

/// Fitted trees.
#[derive(Clone, Debug)]
pub struct TreeSelector {
    derived: Derived,
    walker: Walker,
}

impl TreeSelector {
    /// Predicted relative costs of the candidates (log of the time over the best), to `scores`.
    pub(crate) fn score(&self, input: &[f32], candidates: &[Candidate], scratch: &mut RankScratch) {
        scratch.rows.clear();
        scratch.scores.clear();
        self.derived.rows(input, candidates.iter(), &mut scratch.rows);
        scratch.scores.resize(candidates.len(), 0.0);
        let RankScratch { rows, scores, walk, .. } = scratch;
        self.walker.add(rows, self.derived.width(), self.derived.share(), walk, scores);
    }
}

impl Selector for TreeSelector {
    fn rank(&self, input_and_device: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        RankScratch::with(|scratch| {
            self.score(input_and_device, candidates, scratch);
            by_score(&scratch.scores, out);
        });
    }

    fn relative_costs(&self, input_and_device: &[f32], candidates: &[Candidate], out: &mut Vec<f32>) -> bool {
        RankScratch::with(|scratch| {
            self.score(input_and_device, candidates, scratch);
            out.clear();
            out.extend_from_slice(&scratch.scores);
        });
        true
    }
}

impl FitSelector for BoostedTrees {
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        Ok(Box::new(self.fit_trees(data, seed)?))
    }
}
