//! A few trees over features of the input, with the mean cost of every class in each leaf: the cheapest good choice.

use crate::classes::{ClassSelector, Classes, lost_performance};
use crate::shapes::Shapes;
use crate::trees::bins::Binned;
use rand::SeedableRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::selector::Selector;
use tilewright_core::setting::SettingError;

/// Fits bagged trees on the relative costs of the variants that win most often. A split is where the costs of all classes
/// together differ most, so that near ties and rare disasters weigh what they cost.
#[derive(Clone, Debug, PartialEq)]
pub struct CostForest {
    /// Number of trees.
    pub trees: usize,
    /// Fewest cases in a leaf.
    pub least: usize,
    /// Most levels of a tree.
    pub depth: usize,
    /// Share of the features that a split may look at.
    pub columns: f64,
    /// Most variants; where there are more, those that win most often.
    pub classes: usize,
    /// Most ratios of sizes that become features.
    pub ratios: usize,
    /// Whether the products of these pairs are features too: storage and work often are products of sizes.
    pub products: bool,
}

impl Default for CostForest {
    fn default() -> Self {
        Self { trees: 12, least: 3, depth: 14, columns: 0.5, classes: 16, ratios: 45, products: false }
    }
}

impl CostForest {
    /// As many trees as still help, where a choice may take some microseconds.
    pub fn thorough() -> Self {
        Self { trees: 100, products: true, ..Self::default() }
    }
}

struct Samples {
    binned: Binned,
    /// One row a case, one number a class.
    costs: Vec<f32>,
    classes: usize,
}

/// A split, or a leaf, which is a split that leads to itself.
#[derive(Clone, Copy, Debug)]
struct Node {
    threshold: f32,
    /// The left child, which the right one follows.
    left: u32,
    feature: u16,
    /// Of a leaf, which one.
    leaf: u32,
}

impl Node {
    /// Nothing exceeds infinity, so every input stays here.
    fn leaf(at: usize) -> Self {
        Self { threshold: f32::INFINITY, left: at as u32, feature: 0, leaf: 0 }
    }
}

/// Trees; of one, the root is the first node.
#[derive(Clone, Debug, Default)]
struct Trees {
    nodes: Vec<Node>,
    roots: Vec<u32>,
    /// Mean costs of all classes, leaf after leaf.
    leaves: Vec<f32>,
}

/// Trees that an input descends side by side: each step waits for memory, so several must be under way.
const LANES: usize = 6;

impl Trees {
    fn append(&mut self, other: &Self, classes: usize) {
        let (first, leaves) = (self.nodes.len() as u32, (self.leaves.len() / classes.max(1)) as u32);
        let moved = |n: &Node| Node { left: n.left + first, leaf: n.leaf + leaves, ..*n };
        self.roots.extend(other.roots.iter().map(|root| root + first));
        self.nodes.extend(other.nodes.iter().map(moved));
        self.leaves.extend_from_slice(&other.leaves);
    }

    /// Adds the costs of the leaves that a row comes to. Missing values (NaN) go left.
    fn add(&self, row: &[f32], scores: &mut [f32]) {
        for roots in self.roots.chunks(LANES) {
            // The lanes beyond the last tree follow it.
            let mut at: [u32; LANES] = std::array::from_fn(|lane| roots[lane.min(roots.len() - 1)]);
            let mut moved = true;
            while moved {
                moved = false;
                for at in &mut at {
                    let node = self.nodes[*at as usize];
                    let next = node.left + u32::from(row[usize::from(node.feature)] > node.threshold);
                    moved |= next != *at;
                    *at = next;
                }
            }
            for &at in &at[..roots.len()] {
                let leaf = self.nodes[at as usize].leaf as usize * scores.len();
                scores.iter_mut().zip(&self.leaves[leaf..]).for_each(|(s, c)| *s += c);
            }
        }
    }
}

impl CostForest {
    fn samples(&self, data: &ChoiceSet, classes: &Classes, shapes: &Shapes) -> Samples {
        let n = classes.len();
        let row = |input: &[f32], row: &mut Vec<f32>| {
            row.clear();
            shapes.write(input, row);
        };
        let (rows, costs) = lost_performance(classes, data, row);
        let costs = costs.into_iter().map(|c| c as f32).collect();
        Samples { binned: Binned::new(&rows, shapes.width(), 64), costs, classes: n }
    }

    fn tree(&self, samples: &Samples, seed: u64) -> Trees {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let all: Vec<u32> = (0..samples.costs.len() as u32 / samples.classes as u32).collect();
        let rows: Vec<u32> = (0..all.len()).filter_map(|_| all.choose(&mut rng).copied()).collect();
        let mut tree = Trees { nodes: vec![Node::leaf(0)], roots: vec![0], leaves: Vec::new() };
        let mut open = vec![(0usize, rows, 0usize)];
        while let Some((node, rows, depth)) = open.pop() {
            let width = samples.binned.width;
            let mut features: Vec<usize> = (0..width).collect();
            features.shuffle(&mut rng);
            let kept = ((width as f64 * self.columns).ceil() as usize).clamp(1, width);
            let split = if depth < self.depth { samples.split(&rows, &features[..kept], self.least) } else { None };
            let Some((feature, bin)) = split else {
                tree.nodes[node].leaf = (tree.leaves.len() / samples.classes) as u32;
                tree.leaves.extend(samples.mean(&rows));
                continue;
            };
            let (left, right) = rows.iter().partition(|&&r| samples.binned.cell(r, feature) <= bin);
            let threshold = samples.binned.bins.threshold(feature, bin);
            let first = tree.nodes.len();
            tree.nodes[node] = Node { threshold, left: first as u32, feature: feature as u16, leaf: 0 };
            tree.nodes.extend([Node::leaf(first), Node::leaf(first + 1)]);
            open.push((first, left, depth + 1));
            open.push((first + 1, right, depth + 1));
        }
        tree
    }
}

impl Samples {
    fn costs(&self, row: u32) -> &[f32] {
        &self.costs[row as usize * self.classes..(row as usize + 1) * self.classes]
    }

    fn mean(&self, rows: &[u32]) -> Vec<f32> {
        let mut sums = vec![0.0f32; self.classes];
        rows.iter().for_each(|&r| sums.iter_mut().zip(self.costs(r)).for_each(|(s, c)| *s += c));
        sums.iter_mut().for_each(|s| *s /= rows.len().max(1) as f32);
        sums
    }

    /// The split with the largest reduction of the squared deviations of all costs.
    fn split(&self, rows: &[u32], features: &[usize], least: usize) -> Option<(usize, u8)> {
        if rows.len() < 2 * least {
            return None;
        }
        let n = self.classes;
        let square = |sums: &[f32]| sums.iter().map(|s| s * s).sum::<f32>();
        let whole: Vec<f32> = self.mean(rows).iter().map(|m| m * rows.len() as f32).collect();
        let base = square(&whole) / rows.len() as f32;
        let mut best: Option<(f32, usize, u8)> = None;
        let (mut sums, mut counts, mut left) = (Vec::new(), Vec::new(), vec![0.0f32; n]);
        for &feature in features {
            let bins = self.binned.bins.count(feature);
            sums.clear();
            sums.resize(bins * n, 0.0f32);
            counts.clear();
            counts.resize(bins, 0usize);
            for &row in rows {
                let bin = usize::from(self.binned.cell(row, feature));
                counts[bin] += 1;
                sums[bin * n..(bin + 1) * n].iter_mut().zip(self.costs(row)).for_each(|(s, c)| *s += c);
            }
            left.fill(0.0);
            let mut count = 0;
            for bin in 0..bins - 1 {
                if counts[bin] == 0 {
                    continue;
                }
                count += counts[bin];
                left.iter_mut().zip(&sums[bin * n..]).for_each(|(l, s)| *l += s);
                let rest = rows.len() - count;
                if count < least {
                    continue;
                }
                if rest < least {
                    break;
                }
                let right: f32 = whole.iter().zip(&left).map(|(w, l)| (w - l) * (w - l)).sum();
                let gain = square(&left) / count as f32 + right / rest as f32 - base;
                if gain > best.map_or(1e-6, |b| b.0) {
                    best = Some((gain, feature, bin as u8));
                }
            }
        }
        best.map(|(_, feature, bin)| (feature, bin))
    }
}

impl FitSelector for CostForest {
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        Ok(Box::new(self.fit_forest(data, seed)?))
    }
}

impl CostForest {
    /// Fits, and keeps the concrete type.
    ///
    /// # Errors
    /// A setting out of range, no case with a variant that ran.
    pub(crate) fn fit_forest(&self, data: &ChoiceSet, seed: u64) -> Result<ClassSelector, SelectError> {
        SettingError::check("trees", self.trees, self.trees >= 1, "at least 1")?;
        SettingError::check("least", self.least, self.least >= 1, "at least 1")?;
        let classes = Classes::all(data, self.classes)?;
        let shapes = Shapes::new(data.schema(), self.ratios, self.products);
        let mut trees = Trees::default();
        if shapes.width() > 0 {
            let samples = self.samples(data, &classes, &shapes);
            let one = |i: u64| self.tree(&samples, seed.wrapping_mul(0x9e37_79b9).wrapping_add(i));
            let grown: Vec<Trees> = (0..self.trees as u64).into_par_iter().map(one).collect();
            grown.iter().for_each(|tree| trees.append(tree, classes.len()));
        }
        // What a choice sums are means over the trees.
        trees.leaves.iter_mut().for_each(|cost| *cost /= self.trees as f32);
        Ok(ClassSelector::of_losses(classes, move |input, row, scores| {
            row.clear();
            shapes.write(input, row);
            trees.add(row, scores);
        }))
    }
}
