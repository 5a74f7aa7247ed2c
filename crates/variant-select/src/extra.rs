//! Extremely randomised trees of what every variant costs.
//!
//! Geurts, Ernst and Wehenkel, "Extremely randomized trees", Machine Learning 63 (2006): a split looks at some of the features, at one
//! random threshold of each. Their mean is nearly smooth, where trees that search for thresholds step at the values of the training
//! cases: this carries over to devices of which no case was seen.

use crate::encode::Encoding;
use crate::order::{RankScratch, by_score};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};
use tilewright_core::setting::SettingError;

/// Fits trees for every variant: of its log cost relative to the best of the same input. They learn from the cases that have the
/// variant alone, so that variants may be missing on some inputs or devices.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtraTrees {
    /// Number of trees of a variant.
    pub trees: usize,
    /// Fewest cases in a leaf.
    pub least: usize,
    /// Share of the features that a split looks at.
    pub columns: f64,
}

impl Default for ExtraTrees {
    fn default() -> Self {
        Self { trees: 60, least: 2, columns: 0.5 }
    }
}

/// Most variants that have trees; where there are more, those that were tried most often.
const VARIANTS: usize = 128;

/// The cases of one variant.
struct Samples {
    /// Encoded features, case after case.
    rows: Vec<f32>,
    width: usize,
    costs: Vec<f32>,
}

/// A split, or a leaf: it leads to itself, and its threshold is the cost.
#[derive(Clone, Copy, Debug)]
struct Node {
    threshold: f32,
    feature: u32,
    /// The left child, which the right one follows; 0 of a leaf.
    left: u32,
}

type Tree = Vec<Node>;

impl Samples {
    fn cell(&self, case: u32, feature: usize) -> f32 {
        self.rows[case as usize * self.width + feature]
    }

    fn mean(&self, cases: &[u32]) -> f32 {
        cases.iter().map(|&c| self.costs[c as usize]).sum::<f32>() / cases.len() as f32
    }

    /// The least and the greatest value of a feature.
    fn range(&self, cases: &[u32], feature: usize) -> (f32, f32) {
        let values = cases.iter().map(|&c| self.cell(c, feature));
        values.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    }

    /// By how much a split lessens the squared deviations, but for what is the same of all splits; none where a side is too small.
    fn gain(&self, cases: &[u32], (feature, threshold): (usize, f32), least: usize) -> Option<f32> {
        let (mut left, mut right) = ((0.0f32, 0usize), (0.0f32, 0usize));
        for &c in cases {
            let side = if self.cell(c, feature) > threshold { &mut right } else { &mut left };
            side.0 += self.costs[c as usize];
            side.1 += 1;
        }
        let square = |(sum, count): (f32, usize)| sum * sum / count as f32;
        (left.1 >= least && right.1 >= least).then(|| square(left) + square(right))
    }
}

impl ExtraTrees {
    fn split(&self, samples: &Samples, cases: &[u32], rng: &mut ChaCha8Rng) -> Option<(usize, f32)> {
        let first = samples.costs[*cases.first()? as usize];
        if cases.len() < 2 * self.least || cases.iter().all(|&c| samples.costs[c as usize] == first) {
            return None;
        }
        let mut features: Vec<usize> = (0..samples.width).collect();
        features.shuffle(rng);
        let wanted = ((samples.width as f64 * self.columns).ceil() as usize).max(1);
        let ranges = features.into_iter().map(|f| (f, samples.range(cases, f))).filter(|(_, (low, high))| low < high);
        let mut best: Option<(f32, (usize, f32))> = None;
        for (feature, (low, high)) in ranges.take(wanted) {
            let split = (feature, rng.random_range(low..high));
            if let Some(gain) = samples.gain(cases, split, self.least).filter(|g| best.is_none_or(|b| *g > b.0)) {
                best = Some((gain, split));
            }
        }
        best.map(|(_, split)| split)
    }

    fn tree(&self, samples: &Samples, seed: u64) -> Tree {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut cases: Vec<u32> = (0..samples.costs.len() as u32).collect();
        let mut tree = vec![Node { threshold: 0.0, feature: 0, left: 0 }];
        let mut open = vec![(0usize, 0..cases.len())];
        while let Some((at, range)) = open.pop() {
            let own = &mut cases[range.clone()];
            let Some((feature, threshold)) = self.split(samples, own, &mut rng) else {
                tree[at].threshold = samples.mean(own);
                continue;
            };
            own.sort_by_key(|&c| samples.cell(c, feature) > threshold);
            let middle = range.start + own.partition_point(|&c| samples.cell(c, feature) <= threshold);
            tree[at] = Node { threshold, feature: feature as u32, left: tree.len() as u32 };
            open.extend([(tree.len(), range.start..middle), (tree.len() + 1, middle..range.end)]);
            tree.extend([Node { threshold: 0.0, feature: 0, left: 0 }; 2]);
        }
        tree
    }
}

/// The features of an input as the trees see them.
fn encode(encoding: Option<&Encoding>, input: &[f32], row: &mut Vec<f32>) {
    match encoding {
        Some(encoding) => encoding.encode_features(input, row),
        None => row.clear(),
    }
}

/// The cases of every variant that ran somewhere. What failed is no cost: the guard beside a selector learns of it.
fn by_variant(data: &ChoiceSet, encoding: Option<&Encoding>) -> BTreeMap<String, Samples> {
    let mut all: BTreeMap<String, Samples> = BTreeMap::new();
    let (mut row, width) = (Vec::new(), encoding.map_or(0, |e| e.width() - 1));
    for case in data.cases() {
        let Some(best) = case.best() else { continue };
        encode(encoding, &case.features, &mut row);
        for trial in case.trials.iter().filter(|t| t.cost.is_some()) {
            let empty = || Samples { rows: Vec::new(), width, costs: Vec::new() };
            let samples = all.entry(trial.candidate.variant.to_string()).or_insert_with(empty);
            samples.rows.extend_from_slice(&row);
            samples.costs.push(trial.relative_cost(best) as f32);
        }
    }
    all
}

impl FitSelector for ExtraTrees {
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        SettingError::check("trees", self.trees, self.trees >= 1, "at least 1")?;
        SettingError::check("least", self.least, self.least >= 1, "at least 1")?;
        SettingError::check("columns", self.columns, self.columns > 0.0 && self.columns <= 1.0, "above 0, at most 1")?;
        // Where no feature varies, every tree is one leaf.
        let encoding = Encoding::logarithms(data).ok();
        let mut samples: Vec<(String, Samples)> = by_variant(data, encoding.as_ref()).into_iter().collect();
        samples.sort_by_key(|(_, samples)| Reverse(samples.costs.len()));
        samples.truncate(VARIANTS);
        if samples.is_empty() {
            return Err(SelectError::NothingLegal);
        }
        let grown = samples.into_iter().enumerate().map(|(v, (name, samples))| {
            let seed_of = |tree: usize| seed.wrapping_mul(0x9e37_79b9).wrapping_add((v * self.trees + tree) as u64);
            let trees = (0..self.trees).into_par_iter().map(|tree| self.tree(&samples, seed_of(tree))).collect();
            (name, trees)
        });
        Ok(Box::new(Grown { trees: grown.collect(), encoding }))
    }
}

/// Fitted trees.
struct Grown {
    encoding: Option<Encoding>,
    trees: BTreeMap<String, Vec<Tree>>,
}

fn descend(tree: &Tree, row: &[f32]) -> f32 {
    let mut node = tree[0];
    while node.left != 0 {
        node = tree[node.left as usize + usize::from(row[node.feature as usize] > node.threshold)];
    }
    node.threshold
}

impl Grown {
    fn costs(&self, input: &[f32], candidates: &[Candidate], row: &mut Vec<f32>, out: &mut Vec<f32>) {
        encode(self.encoding.as_ref(), input, row);
        out.clear();
        out.extend(candidates.iter().map(|c| match self.trees.get(c.variant.as_str()) {
            Some(trees) => trees.iter().map(|tree| descend(tree, row)).sum::<f32>() / trees.len() as f32,
            None => f32::NAN,
        }));
    }
}

impl Selector for Grown {
    fn rank(&self, input_and_device: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        RankScratch::with(|RankScratch { rows, scores, .. }| {
            self.costs(input_and_device, candidates, rows, scores);
            by_score(scores, out);
        });
    }

    fn relative_costs(&self, input_and_device: &[f32], candidates: &[Candidate], out: &mut Vec<f32>) -> bool {
        RankScratch::with(|scratch| self.costs(input_and_device, candidates, &mut scratch.rows, out));
        true
    }
}
