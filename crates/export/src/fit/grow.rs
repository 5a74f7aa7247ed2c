//! Growing a tree by what its splits save, the best split first.

use super::Regrets;
use super::order::expected;
use crate::domain::Domain;
use crate::tree::{Test, Tree, product};

/// Products of three sizes are asked about where there are at most so many sizes.
const FEW_SIZES: usize = 8;

/// Ratios of two sizes that are asked about: powers of two up to this one, and their inverses.
const MOST_DOUBLINGS: u32 = 10;

/// Numbers that sizes may be multiples of.
const MULTIPLES: [i64; 6] = [2, 4, 8, 16, 32, 64];

/// Of its saving, what a test about several sizes keeps: of equal tests the simpler one is likelier to hold for other inputs.
const SIMPLER: f64 = 0.93;

/// A split saves at least this over all of its rows, as a logarithm.
const LEAST: f64 = 1e-6;

/// A tree with the order in which it grew.
#[derive(Clone, Debug)]
pub(super) struct Growth {
    nodes: Vec<Node>,
}

#[derive(Clone, Debug)]
struct Node {
    rows: Vec<usize>,
    /// Its test, the node where it holds, the one where it does not, and how many leaves the tree has with it.
    split: Option<(Test, usize, usize, usize)>,
}

/// A split that could be made.
struct Split {
    saves: f64,
    test: Test,
}

struct Grower<'a> {
    inputs: &'a [Vec<i64>],
    /// By row of the table, what each of the columns loses.
    losses: Vec<Vec<f64>>,
    domain: &'a Domain,
    sizes: Vec<usize>,
}

/// Grows a tree of at most so many leaves on rows and columns of a table.
pub(super) fn grow(
    domain: &Domain,
    inputs: &[Vec<i64>],
    all: &Regrets,
    (rows, columns): (&[usize], &[usize]),
    most: usize,
) -> Growth {
    let every: Vec<usize> = (0..all.len()).collect();
    let sizes = (0..domain.fields.len()).filter(|&at| domain.fields[at].is_integer()).collect();
    let grower = Grower { inputs, losses: expected(all, &every, columns), domain, sizes };
    let mut nodes = vec![Node { rows: rows.to_vec(), split: None }];
    let mut open: Vec<(usize, Option<Split>)> = vec![(0, grower.best(rows))];
    let mut leaves = 1;
    while leaves < most {
        let saves = |(_, split): &(usize, Option<Split>)| split.as_ref().map_or(0.0, |split| split.saves);
        let best = (0..open.len()).max_by(|&a, &b| saves(&open[a]).total_cmp(&saves(&open[b])).then(b.cmp(&a)));
        let Some((node, Some(split))) = best.map(|at| open.swap_remove(at)) else { break };
        let holds = |row: &usize| split.test.holds(&inputs[*row]);
        let (yes, no): (Vec<usize>, Vec<usize>) = nodes[node].rows.clone().into_iter().partition(holds);
        leaves += 1;
        let first = nodes.len();
        nodes[node].split = Some((split.test, first, first + 1, leaves));
        for rows in [yes, no] {
            open.push((nodes.len(), grower.best(&rows)));
            nodes.push(Node { rows, split: None });
        }
    }
    Growth { nodes }
}

impl Growth {
    /// The tree when it had so many leaves; `leaf` says the order of configurations for the rows of one.
    pub(super) fn tree(&self, leaves: usize, leaf: &dyn Fn(&[usize]) -> Vec<usize>) -> Tree {
        self.below(0, leaves, leaf)
    }

    fn below(&self, node: usize, leaves: usize, leaf: &dyn Fn(&[usize]) -> Vec<usize>) -> Tree {
        match &self.nodes[node] {
            Node { split: Some((test, yes, no, with)), .. } if *with <= leaves => Tree::Branch {
                test: test.clone(),
                yes: self.below(*yes, leaves, leaf).into(),
                no: self.below(*no, leaves, leaf).into(),
            },
            Node { rows, .. } => Tree::Leaf(leaf(rows)),
        }
    }
}

impl Grower<'_> {
    /// The split of rows that saves most; none saves anything where one configuration is the best for all.
    fn best(&self, rows: &[usize]) -> Option<Split> {
        let mut best = None;
        // A leaf of a single input would be about that input alone, unless there are few in all.
        let least = if rows.len() < 4 { 1 } else { 2 };
        for of in self.products() {
            self.by_threshold(rows, &of, least, &mut best);
        }
        for test in self.others() {
            let holds = |row: &&usize| test.holds(&self.inputs[**row]);
            let (yes, no): (Vec<usize>, Vec<usize>) = rows.iter().partition(holds);
            if yes.len() >= least && no.len() >= least {
                let saves = self.loss(rows) - self.loss(&yes) - self.loss(&no);
                let share = if matches!(test, Test::Is { .. }) { 1.0 } else { SIMPLER };
                consider(&mut best, saves * share, || test.clone());
            }
        }
        best
    }

    /// What the best single column loses over rows.
    fn loss(&self, rows: &[usize]) -> f64 {
        let mut sums = vec![0.0; self.losses.first().map_or(0, Vec::len)];
        for &row in rows {
            sums.iter_mut().zip(&self.losses[row]).for_each(|(sum, loss)| *sum += loss);
        }
        least(&sums)
    }

    /// Sizes, and products of two and three of them.
    fn products(&self) -> Vec<Vec<usize>> {
        let sizes = &self.sizes;
        let mut out: Vec<Vec<usize>> = sizes.iter().map(|&a| vec![a]).collect();
        for (i, &a) in sizes.iter().enumerate() {
            for (j, &b) in sizes.iter().enumerate().skip(i + 1) {
                out.push(vec![a, b]);
                if sizes.len() <= FEW_SIZES {
                    out.extend(sizes[j + 1..].iter().map(|&c| vec![a, b, c]));
                }
            }
        }
        out
    }

    /// Tests without a threshold of their own.
    fn others(&self) -> Vec<Test> {
        let mut out = Vec::new();
        for (field, of) in self.domain.fields.iter().enumerate() {
            out.extend((0..of.words.len()).map(|word| Test::Is { field, word: word as i64 }));
        }
        for (i, &left) in self.sizes.iter().enumerate() {
            out.extend(MULTIPLES.map(|of| Test::Multiple { field: left, of }));
            for &right in &self.sizes[i + 1..] {
                for doublings in 0..=MOST_DOUBLINGS {
                    let by = 1 << doublings;
                    out.push(Test::Ratio { left, by: 1, right, times: by });
                    out.push(Test::Ratio { left, by, right, times: 1 });
                }
            }
        }
        out
    }

    /// The best threshold of a product of sizes.
    fn by_threshold(&self, rows: &[usize], of: &[usize], fewest: usize, best: &mut Option<Split>) {
        let mut sorted: Vec<(i64, usize)> = rows.iter().map(|&row| (product(of, &self.inputs[row]), row)).collect();
        sorted.sort_unstable();
        let width = self.losses.first().map_or(0, Vec::len);
        let (mut below, mut above) = (vec![0.0; width], vec![0.0; width]);
        for (_, row) in &sorted {
            above.iter_mut().zip(&self.losses[*row]).for_each(|(sum, loss)| *sum += loss);
        }
        let (whole, share) = (least(&above), SIMPLER.powi(of.len() as i32 - 1));
        for (at, pair) in sorted.windows(2).enumerate() {
            let moved = &self.losses[pair[0].1];
            below.iter_mut().zip(moved).for_each(|(sum, loss)| *sum += loss);
            above.iter_mut().zip(moved).for_each(|(sum, loss)| *sum -= loss);
            let (low, high) = (pair[0].0, pair[1].0);
            if low < high && at + 1 >= fewest && sorted.len() - at > fewest {
                let saves = whole - least(&below) - least(&above);
                consider(best, saves * share, || Test::Product { of: of.to_vec(), at_most: between(low, high) });
            }
        }
    }
}

fn least(sums: &[f64]) -> f64 {
    sums.iter().copied().fold(f64::INFINITY, f64::min)
}

fn consider(best: &mut Option<Split>, saves: f64, test: impl FnOnce() -> Test) {
    if saves > best.as_ref().map_or(LEAST, |split| split.saves * (1.0 + 1e-9)) {
        *best = Some(Split { saves, test: test() });
    }
}

/// A threshold that parts two products: their geometric mean, since sizes count by their logarithms.
fn between(low: i64, high: i64) -> i64 {
    let middle = if low > 0 { (low as f64).sqrt() * (high as f64).sqrt() } else { (low as f64 + high as f64) / 2.0 };
    (middle as i64).clamp(low, high - 1)
}
