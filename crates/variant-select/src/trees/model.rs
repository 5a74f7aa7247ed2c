//! Fitted trees.

use super::bins::Binned;

/// A split, or a leaf, which is a split that leads to itself: rows can take the same number of steps in any tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(super) threshold: f32,
    pub(super) feature: u16,
    /// The left child; the right one follows it.
    pub(super) left: u16,
}

/// A tree; its root is the first node.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(super) nodes: Vec<Node>,
    /// Of leaves; 0 for splits.
    pub(super) values: Vec<f32>,
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

    /// Adds the tree's value of every row.
    pub(crate) fn add_binned(&self, rows: &Binned, out: &mut [f32]) {
        // Bins up to this one go left, as when the tree was grown.
        let last_left = |n: &Node| match n.threshold {
            f32::INFINITY => u8::MAX,
            t => rows.bins.bin(usize::from(n.feature), t),
        };
        let limits: Vec<u8> = self.nodes.iter().map(last_left).collect();
        for (row, sum) in rows.cells.chunks_exact(rows.width).zip(out) {
            let mut at = 0;
            for _ in 0..self.depth {
                let node = self.nodes[at];
                at = usize::from(node.left) + usize::from(row[usize::from(node.feature)] > limits[at]);
            }
            *sum += self.values[at];
        }
    }

    /// The value of a row of which only what is asked for is computed. Missing values (NaN) go left.
    pub(crate) fn value(&self, of: impl Fn(usize) -> f32) -> f32 {
        let mut at = 0;
        loop {
            let node = self.nodes[at];
            if usize::from(node.left) == at {
                return self.values[at];
            }
            at = usize::from(node.left) + usize::from(of(usize::from(node.feature)) > node.threshold);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::walk::{Walk, Walker};
    use super::*;

    #[test]
    fn rows_reach_their_leaves_in_any_batch() {
        let mut tree = Tree::new();
        let left = tree.split(0, 0, 0, 9.5);
        let deeper = tree.split(left + 1, 1, 0, 19.5);
        for (leaf, value) in [(left, 1.0), (deeper, 2.0), (deeper + 1, 3.0)] {
            tree.set_value(leaf, value);
        }
        let value = |i: usize| 1.0 + f32::from(u8::from(i >= 10)) + f32::from(u8::from(i >= 20));
        for i in 0..40 {
            assert_eq!(tree.value(|_| i as f32), value(i));
        }
        assert_eq!(tree.value(|_| f32::NAN), 1.0);
        let walker = Walker::new(&[tree.clone(), tree.clone()]);
        for count in [1, 7, 40, 64, 65, 150] {
            let rows: Vec<f32> = (0..count).flat_map(|i| [(i % 40) as f32, 0.0]).collect();
            let mut out = vec![0.5; count];
            walker.add(&rows, 2, 0, &mut Walk::default(), &mut out);
            assert_eq!(out, (0..count).map(|i| 0.5 + 2.0 * value(i % 40)).collect::<Vec<f32>>());
            let same: Vec<f32> = (0..count).flat_map(|i| [f32::NAN, i as f32]).collect();
            let mut out = vec![0.0; count];
            walker.add(&same, 2, 1, &mut Walk::default(), &mut out);
            assert_eq!(out, vec![2.0; count]);
        }
        let rows: Vec<f32> = (0..40).flat_map(|i| [i as f32, 0.0]).collect();
        let mut out = vec![0.0; 40];
        tree.add_binned(&Binned::new(&rows, 2, 64), &mut out);
        assert_eq!(out, (0..40).map(value).collect::<Vec<f32>>());
    }
}
