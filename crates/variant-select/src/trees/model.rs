//! Fitted trees and their sum.

use super::bins::Bins;

/// A split, or a leaf, which is a split that leads to itself: rows can take the same number of steps in any tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    threshold: f32,
    feature: u16,
    /// The left child; the right one follows it.
    left: u16,
}

/// A tree; its root is the first node.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// Of leaves; 0 for splits.
    values: Vec<f32>,
    depth: usize,
}

impl Tree {
    /// A tree that is one leaf.
    pub(crate) fn new() -> Self {
        let mut tree = Self { nodes: Vec::new(), values: Vec::new(), depth: 0 };
        tree.push_leaf();
        tree
    }

    fn push_leaf(&mut self) -> usize {
        let at = self.nodes.len();
        // Nothing exceeds infinity, so every row stays here.
        self.nodes.push(Node { threshold: f32::INFINITY, feature: 0, left: at as u16 });
        self.values.push(0.0);
        at
    }

    /// Makes a leaf at `depth` a split of two new leaves; the left one is returned, the right one follows it.
    pub(crate) fn split(&mut self, leaf: usize, depth: usize, feature: usize, threshold: f32) -> usize {
        let left = self.push_leaf();
        self.push_leaf();
        self.nodes[leaf] = Node { threshold, feature: feature as u16, left: left as u16 };
        self.depth = self.depth.max(depth + 1);
        left
    }

    pub(crate) fn set_value(&mut self, leaf: usize, value: f32) {
        self.values[leaf] = value;
    }

    /// Adds the tree's value of every binned row.
    pub(crate) fn add_binned(&self, binned: &[u8], width: usize, bins: &Bins, out: &mut [f32]) {
        // Bins up to this one go left, as when the tree was grown.
        let last_left = |n: &Node| match n.threshold {
            f32::INFINITY => u8::MAX,
            t => bins.bin(usize::from(n.feature), t),
        };
        let limits: Vec<u8> = self.nodes.iter().map(last_left).collect();
        for (row, sum) in binned.chunks_exact(width).zip(out) {
            let mut at = 0;
            for _ in 0..self.depth {
                let node = self.nodes[at];
                at = usize::from(node.left) + usize::from(row[usize::from(node.feature)] > limits[at]);
            }
            *sum += self.values[at];
        }
    }
}

/// Rows that descend a tree side by side: each step waits for memory, so several must be under way.
const LANES: usize = 8;

/// A sum of trees with all nodes in one list, so that they share cache lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    nodes: Vec<Node>,
    values: Vec<f32>,
    /// First node and depth of each tree.
    trees: Vec<(u32, u32)>,
}

impl Sum {
    pub(crate) fn push(&mut self, tree: &Tree) {
        self.trees.push((self.nodes.len() as u32, tree.depth as u32));
        self.nodes.extend_from_slice(&tree.nodes);
        self.values.extend_from_slice(&tree.values);
    }

    /// Feature and threshold of every split.
    pub(crate) fn splits(&self) -> impl Iterator<Item = (usize, f32)> {
        let split = |n: &&Node| n.threshold < f32::INFINITY;
        self.nodes.iter().filter(split).map(|n| (usize::from(n.feature), n.threshold))
    }

    /// The nodes of each tree: feature, threshold and left child of a split, the value of a leaf.
    pub(crate) fn trees(&self) -> impl Iterator<Item = impl Iterator<Item = Result<(usize, f32, u32), f32>>> {
        let node = |(n, &value): (&Node, &f32)| match n.threshold < f32::INFINITY {
            true => Ok((usize::from(n.feature), n.threshold, u32::from(n.left))),
            false => Err(value),
        };
        (0..self.trees.len()).map(move |t| {
            let end = self.trees.get(t + 1).map_or(self.nodes.len(), |next| next.0 as usize);
            let own = self.trees[t].0 as usize..end;
            self.nodes[own.clone()].iter().zip(&self.values[own]).map(node)
        })
    }

    /// The value of one row of which only what is asked for is computed.
    pub(crate) fn value(&self, of: impl Fn(usize) -> f32) -> f32 {
        let tree = |&(root, depth): &(u32, u32)| {
            let (root, mut at) = (root as usize, 0u16);
            for _ in 0..depth {
                let node = self.nodes[root + usize::from(at)];
                if node.left == at {
                    break;
                }
                at = node.left + u16::from(of(usize::from(node.feature)) > node.threshold);
            }
            self.values[root + usize::from(at)]
        };
        self.trees.iter().map(tree).sum()
    }

    /// Adds the value of every row to `out`. Missing values (NaN) go left.
    pub(crate) fn add(&self, rows: &[f32], width: usize, out: &mut [f32]) {
        for (t, &(root, depth)) in self.trees.iter().enumerate() {
            let end = self.trees.get(t + 1).map_or(self.nodes.len(), |next| next.0 as usize);
            let nodes = &self.nodes[root as usize..end];
            let values = &self.values[root as usize..end];
            let blocks = rows.chunks(LANES * width).zip(out.chunks_mut(LANES));
            for (block, sums) in blocks {
                let mut at = [0u16; LANES];
                // The lanes beyond the last row follow it.
                let starts: [usize; LANES] = std::array::from_fn(|lane| lane.min(sums.len() - 1) * width);
                for _ in 0..depth {
                    for (at, &start) in at.iter_mut().zip(&starts) {
                        let node = nodes[usize::from(*at)];
                        // Not "at most": NaN, which compares as false, must go left.
                        let right = block[start + usize::from(node.feature)] > node.threshold;
                        *at = node.left + u16::from(right);
                    }
                }
                for (sum, &at) in sums.iter_mut().zip(&at) {
                    *sum += values[usize::from(at)];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::walk::{Walk, Walker};
    use super::*;

    #[test]
    fn rows_reach_their_leaves_in_any_batch() {
        let columns = vec![(0..40).map(|i| i as f32).collect::<Vec<_>>(), vec![0.0; 40]];
        let bins = Bins::fit(&columns, 64);
        let mut tree = Tree::new();
        let left = tree.split(0, 0, 0, 9.5);
        let deeper = tree.split(left + 1, 1, 0, 19.5);
        for (leaf, value) in [(left, 1.0), (deeper, 2.0), (deeper + 1, 3.0)] {
            tree.set_value(leaf, value);
        }
        let mut sum = Sum::default();
        sum.push(&tree);
        sum.push(&tree);
        let value = |i: usize| {
            if i < 10 {
                2.0
            } else if i < 20 {
                4.0
            } else {
                6.0
            }
        };
        for count in [1, 7, 8, 9, 40] {
            let rows: Vec<f32> = (0..count).flat_map(|i| [i as f32, 0.0]).collect();
            let mut out = vec![0.0; count];
            sum.add(&rows, 2, &mut out);
            assert_eq!(out, (0..count).map(value).collect::<Vec<f32>>());
        }
        let walker = Walker::new(&sum);
        for count in [1, 7, 40, 64, 65, 150] {
            let rows: Vec<f32> = (0..count).flat_map(|i| [(i % 40) as f32, 0.0]).collect();
            let mut out = vec![0.5; count];
            walker.add(&rows, 2, 0, &mut Walk::default(), &mut out);
            assert_eq!(out, (0..count).map(|i| 0.5 + value(i % 40)).collect::<Vec<f32>>());
            let same: Vec<f32> = (0..count).flat_map(|i| [f32::NAN, i as f32]).collect();
            let mut out = vec![0.0; count];
            walker.add(&same, 2, 1, &mut Walk::default(), &mut out);
            assert_eq!(out, vec![2.0; count]);
        }
        let mut missing = [0.0];
        sum.add(&[f32::NAN, 0.0], 2, &mut missing);
        assert_eq!(missing, [2.0]);
        let binned: Vec<u8> = (0..40).flat_map(|i| [bins.bin(0, i as f32), bins.bin(1, 0.0)]).collect();
        let mut out = vec![0.0; 40];
        tree.add_binned(&binned, 2, &bins, &mut out);
        assert_eq!(out, (0..40).map(|i| value(i) / 2.0).collect::<Vec<f32>>());
    }
}
