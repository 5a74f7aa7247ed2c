//! One tree grown leaf by leaf from histograms of gradients.

use super::bins::Binned;
use super::model::Tree;
use std::ops::Range;

/// Rows in bins with their gradients and curvatures.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) binned: &'a Binned,
    pub(crate) gradient: &'a [f32],
    pub(crate) curvature: &'a [f32],
}

/// Shape of a tree.
pub(crate) struct Shape {
    pub(crate) leaves: usize,
    pub(crate) depth: usize,
    /// Share of the values that is kept.
    pub(crate) rate: f32,
    pub(crate) least_curvature: f64,
    pub(crate) l2: f64,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    gradient: f32,
    curvature: f32,
}

#[derive(Clone, Copy)]
struct Split {
    gain: f64,
    feature: usize,
    /// Bins up to this one go left.
    bin: u8,
}

struct Leaf {
    node: usize,
    depth: usize,
    rows: Range<usize>,
    histogram: Vec<Cell>,
    gradient: f64,
    curvature: f64,
    split: Option<Split>,
}

pub(crate) struct Grower<'a> {
    rows: Rows<'a>,
    features: &'a [usize],
    shape: &'a Shape,
    /// Where the histogram of each of `features` begins.
    starts: Vec<usize>,
    cells: usize,
}

impl<'a> Grower<'a> {
    pub(crate) fn new(rows: Rows<'a>, features: &'a [usize], shape: &'a Shape) -> Self {
        let mut starts = Vec::with_capacity(features.len());
        let mut cells = 0;
        for &f in features {
            starts.push(cells);
            cells += rows.binned.bins.count(f);
        }
        Self { rows, features, shape, starts, cells }
    }

    /// Grows a tree on the given rows; `order` is permuted so that the rows of each leaf stand together.
    pub(crate) fn grow(&self, order: &mut [u32]) -> Tree {
        let mut tree = Tree::new();
        let mut leaves = vec![self.leaf((0, 0), 0..order.len(), order, None)];
        while leaves.len() < self.shape.leaves {
            let gain = |l: &Leaf| l.split.map_or(0.0, |s| s.gain);
            let best = (0..leaves.len()).max_by(|&a, &b| gain(&leaves[a]).total_cmp(&gain(&leaves[b])));
            let Some((at, split)) = best.and_then(|at| Some((at, leaves[at].split?))) else { break };
            let leaf = leaves.swap_remove(at);
            leaves.extend(self.divide(leaf, split, &mut tree, order));
        }
        for leaf in &leaves {
            let value = -leaf.gradient / (leaf.curvature + self.shape.l2);
            tree.set_value(leaf.node, value as f32 * self.shape.rate);
        }
        tree
    }

    fn divide(&self, leaf: Leaf, split: Split, tree: &mut Tree, order: &mut [u32]) -> [Leaf; 2] {
        let feature = self.features[split.feature];
        let rows = &mut order[leaf.rows.clone()];
        let (left, right): (Vec<u32>, Vec<u32>) =
            rows.iter().partition(|&&r| self.rows.binned.cell(r, feature) <= split.bin);
        rows[..left.len()].copy_from_slice(&left);
        rows[left.len()..].copy_from_slice(&right);
        let threshold = self.rows.binned.bins.threshold(feature, split.bin);
        let first = tree.split(leaf.node, leaf.depth, feature, threshold);
        let middle = leaf.rows.start + left.len();
        let depth = leaf.depth + 1;
        let a = ((first, depth), leaf.rows.start..middle);
        let b = ((first + 1, depth), middle..leaf.rows.end);
        // The larger side is the parent less the smaller one.
        let (small, large) = if left.len() <= right.len() { (a, b) } else { (b, a) };
        let small = self.leaf(small.0, small.1, order, None);
        let rest = difference(leaf.histogram, &small.histogram);
        [small, self.leaf(large.0, large.1, order, Some(rest))]
    }

    fn leaf(&self, (node, depth): (usize, usize), rows: Range<usize>, order: &[u32], known: Option<Vec<Cell>>) -> Leaf {
        let own = &order[rows.clone()];
        let histogram = known.unwrap_or_else(|| self.histogram(own));
        // Every row is in one cell of the first feature.
        let first = &histogram[..self.features.first().map_or(0, |&f| self.rows.binned.bins.count(f))];
        let gradient = first.iter().map(|c| f64::from(c.gradient)).sum();
        let curvature = first.iter().map(|c| f64::from(c.curvature)).sum();
        let split = if depth < self.shape.depth { self.best(&histogram, gradient, curvature) } else { None };
        Leaf { node, depth, rows, histogram, gradient, curvature, split }
    }

    fn histogram(&self, rows: &[u32]) -> Vec<Cell> {
        let mut cells = vec![Cell::default(); self.cells];
        let Rows { binned, .. } = self.rows;
        for &row in rows {
            let row = row as usize;
            let bins = &binned.cells[row * binned.width..(row + 1) * binned.width];
            let (gradient, curvature) = (self.rows.gradient[row], self.rows.curvature[row]);
            for (&feature, &start) in self.features.iter().zip(&self.starts) {
                let cell = &mut cells[start + usize::from(bins[feature])];
                cell.gradient += gradient;
                cell.curvature += curvature;
            }
        }
        cells
    }

    fn best(&self, histogram: &[Cell], gradient: f64, curvature: f64) -> Option<Split> {
        let score = |g: f64, h: f64| g * g / (h + self.shape.l2);
        let whole = score(gradient, curvature);
        let mut best: Option<Split> = None;
        for (i, (&feature, &start)) in self.features.iter().zip(&self.starts).enumerate() {
            let cells = &histogram[start..start + self.rows.binned.bins.count(feature)];
            let (mut g, mut h) = (0.0f64, 0.0f64);
            for (bin, cell) in cells[..cells.len() - 1].iter().enumerate() {
                g += f64::from(cell.gradient);
                h += f64::from(cell.curvature);
                if h < self.shape.least_curvature {
                    continue;
                }
                if curvature - h < self.shape.least_curvature {
                    break;
                }
                let gain = score(g, h) + score(gradient - g, curvature - h) - whole;
                if gain > best.map_or(1e-9, |b| b.gain) {
                    best = Some(Split { gain, feature: i, bin: bin as u8 });
                }
            }
        }
        best
    }
}

fn difference(mut whole: Vec<Cell>, part: &[Cell]) -> Vec<Cell> {
    for (w, p) in whole.iter_mut().zip(part) {
        w.gradient -= p.gradient;
        w.curvature -= p.curvature;
    }
    whole
}
