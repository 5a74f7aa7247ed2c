//! A choice by fitted trees: all candidates of a case descend a tree together, as a set of bits.
//!
//! Which candidates exceed a threshold is one word for each threshold, made once a case. A step in a tree is then a word and an
//! AND for all candidates at once, and what is the same for all of them (the input) divides nobody.

use super::model::{Node, Tree};
use pulp::{Arch, Simd, WithSimd};

/// Trees as a choice walks them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walker {
    nodes: Vec<Step>,
    /// First node of each tree.
    roots: Vec<u32>,
    /// Features that are asked for, with where their thresholds begin.
    features: Vec<(u32, u32)>,
    /// Thresholds of each feature, ascending.
    thresholds: Vec<f32>,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    /// Which threshold; of a leaf, its value.
    threshold: u32,
    /// The left child, which the right one follows; 0 for a leaf.
    left: u32,
}

/// Buffers of a walk.
#[derive(Default)]
pub(crate) struct Walk {
    above: Vec<u64>,
    open: Vec<(u32, u64)>,
}

/// Candidates that walk together.
const TOGETHER: usize = 64;

impl Walker {
    pub(crate) fn new(trees: &[Tree]) -> Self {
        let key = |n: &Node| (usize::from(n.feature), n.threshold);
        let splits = |n: &&Node| n.threshold < f32::INFINITY;
        let mut asked: Vec<(usize, f32)> = trees.iter().flat_map(|t| &t.nodes).filter(splits).map(key).collect();
        asked.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        asked.dedup();
        let mut out = Self::default();
        for (at, &(feature, threshold)) in asked.iter().enumerate() {
            if out.features.last().is_none_or(|f| f.0 as usize != feature) {
                out.features.push((feature as u32, at as u32));
            }
            out.thresholds.push(threshold);
        }
        let place = |feature: usize, threshold: f32| {
            asked.partition_point(|a| a.0 < feature || (a.0 == feature && a.1.total_cmp(&threshold).is_lt())) as u32
        };
        for tree in trees {
            let root = out.nodes.len() as u32;
            out.roots.push(root);
            out.nodes.extend(tree.nodes.iter().zip(&tree.values).map(|(node, value)| match key(node) {
                (_, f32::INFINITY) => Step { threshold: value.to_bits(), left: 0 },
                (feature, threshold) => {
                    Step { threshold: place(feature, threshold), left: root + u32::from(node.left) }
                }
            }));
        }
        out
    }

    /// Adds the value of every row to `out`; the first `shared` numbers are the same in all rows. Missing values (NaN) go
    /// left.
    pub(crate) fn add(&self, rows: &[f32], width: usize, shared: usize, walk: &mut Walk, out: &mut [f32]) {
        let arch = Arch::new();
        for (rows, sums) in rows.chunks(TOGETHER * width.max(1)).zip(out.chunks_mut(TOGETHER)) {
            self.compare(rows, width, shared, &mut walk.above);
            arch.dispatch(Descent { walker: self, walk, sums });
        }
    }

    /// For every threshold the rows that exceed it.
    fn compare(&self, rows: &[f32], width: usize, shared: usize, above: &mut Vec<u64>) {
        above.clear();
        above.resize(self.thresholds.len(), 0);
        for (f, &(feature, from)) in self.features.iter().enumerate() {
            let to = self.features.get(f + 1).map_or(self.thresholds.len(), |next| next.1 as usize);
            let thresholds = &self.thresholds[from as usize..to];
            let above = &mut above[from as usize..to];
            let exceeded = |value: f32| thresholds.partition_point(|&t| t < value);
            if (feature as usize) < shared {
                above[..exceeded(rows[feature as usize])].fill(u64::MAX);
                continue;
            }
            // Candidates that follow each other often share a parameter.
            let (mut before, mut count) = (f32::NAN, 0);
            for (i, &value) in rows.iter().skip(feature as usize).step_by(width).enumerate() {
                if value != before {
                    (before, count) = (value, exceeded(value));
                }
                if let Some(last) = count.checked_sub(1) {
                    above[last] |= 1 << i;
                }
            }
            // Who exceeds a threshold exceeds all below it.
            let mut higher = 0;
            for word in above.iter_mut().rev() {
                higher |= *word;
                *word = higher;
            }
        }
    }

    #[inline(always)]
    fn descend(&self, walk: &mut Walk, sums: &mut [f32]) {
        let everyone = u64::MAX >> (TOGETHER - sums.len());
        let mut common = 0.0;
        let (mut low, mut high) = ([0.0f32; TOGETHER / 2], [0.0f32; TOGETHER / 2]);
        for &root in &self.roots {
            let (mut at, mut rows) = (root, everyone);
            loop {
                let step = self.nodes[at as usize];
                if step.left > 0 {
                    let right = rows & walk.above[step.threshold as usize];
                    let left = rows ^ right;
                    if left == 0 {
                        at = step.left + 1;
                    } else {
                        if right != 0 {
                            walk.open.push((step.left + 1, right));
                        }
                        (at, rows) = (step.left, left);
                    }
                    continue;
                }
                let value = f32::from_bits(step.threshold);
                if rows == everyone {
                    common += value;
                } else {
                    add_to(&mut low, rows as u32, value);
                    if rows >> (TOGETHER / 2) != 0 {
                        add_to(&mut high, (rows >> (TOGETHER / 2)) as u32, value);
                    }
                }
                match walk.open.pop() {
                    Some(next) => (at, rows) = next,
                    None => break,
                }
            }
        }
        sums.iter_mut().zip(low.iter().chain(&high)).for_each(|(s, own)| *s += own + common);
    }
}

/// A walk as code for the vectors of the host.
struct Descent<'a> {
    walker: &'a Walker,
    walk: &'a mut Walk,
    sums: &'a mut [f32],
}

impl WithSimd for Descent<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.walker.descend(self.walk, self.sums);
    }
}

/// Adds a value to the sums of some candidates. All are added to, so that it takes vectors and no branches.
#[inline(always)]
fn add_to(sums: &mut [f32; TOGETHER / 2], candidates: u32, value: f32) {
    for (i, sum) in sums.iter_mut().enumerate() {
        *sum += if candidates & (1 << i) != 0 { value } else { 0.0 };
    }
}
