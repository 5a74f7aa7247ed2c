//! Fitted trees and their sum.

use super::bins::Bins;

/// A node: a split, or a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// The threshold of a split, the value of a leaf.
    value: f32,
    feature: u16,
    /// The left child; the right one follows it. 0 for a leaf.
    left: u16,
}

impl Node {
    pub(crate) fn leaf(value: f32) -> Self {
        Self { value, feature: 0, left: 0 }
    }

    pub(crate) fn split(feature: usize, threshold: f32, left: usize) -> Self {
        Self { value: threshold, feature: feature as u16, left: left as u16 }
    }
}

/// A tree; its root is the first node.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
}

impl Tree {
    /// Multiplies the values of all leaves.
    pub(crate) fn scale(&mut self, by: f32) {
        self.nodes.iter_mut().filter(|n| n.left == 0).for_each(|n| n.value *= by);
    }

    /// Adds the tree's value of every binned row.
    pub(crate) fn add_binned(&self, binned: &[u8], width: usize, bins: &Bins, out: &mut [f32]) {
        // Bins up to this one go left, as when the tree was grown.
        let last_left = |n: &Node| match n.left {
            0 => 0,
            _ => bins.bin(usize::from(n.feature), n.value),
        };
        let limits: Vec<u8> = self.nodes.iter().map(last_left).collect();
        for (row, sum) in binned.chunks_exact(width).zip(out) {
            let mut at = 0;
            while self.nodes[at].left != 0 {
                let node = &self.nodes[at];
                at = usize::from(node.left) + usize::from(row[usize::from(node.feature)] > limits[at]);
            }
            *sum += self.nodes[at].value;
        }
    }
}

/// A sum of trees with all nodes in one list, so that they share cache lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    nodes: Vec<Node>,
    roots: Vec<u32>,
}

impl Sum {
    pub(crate) fn push(&mut self, tree: &Tree) {
        self.roots.push(self.nodes.len() as u32);
        self.nodes.extend_from_slice(&tree.nodes);
    }

    /// Adds the value of every row to `out`. Missing values (NaN) go left.
    pub(crate) fn add(&self, rows: &[f32], width: usize, out: &mut [f32]) {
        for &root in &self.roots {
            let tree = &self.nodes[root as usize..];
            for (row, sum) in rows.chunks_exact(width).zip(out.iter_mut()) {
                let mut node = tree[0];
                while node.left != 0 {
                    // Not "at most": NaN, which compares as false, must go left.
                    let right = row[usize::from(node.feature)] > node.value;
                    node = tree[usize::from(node.left) + usize::from(right)];
                }
                *sum += node.value;
            }
        }
    }
}
