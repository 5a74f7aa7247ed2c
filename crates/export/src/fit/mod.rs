//! From a table of times to few configurations and a small tree that chooses among them.

mod grow;
mod order;
mod portfolio;

use crate::artefact::Loss;
use crate::domain::Domain;
use crate::tree::Tree;
use grow::{Growth, grow};
use order::{order, served};
pub use portfolio::cover;
use portfolio::portfolio;

/// What is known of one configuration on one input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// It takes so many seconds.
    Seconds(f64),
    /// It is not legal there.
    Illegal,
    /// It is legal, and fails.
    Failed,
    /// Nobody timed it.
    Untimed,
}

/// Times of configurations on inputs.
#[derive(Clone, Debug)]
pub struct Table<'a> {
    /// What inputs are.
    pub domain: &'a Domain,
    /// The numbers of each input, by [`Domain::numbers`].
    pub inputs: Vec<Vec<i64>>,
    /// A row for each input, and a cell for each configuration.
    pub cells: Vec<Vec<Cell>>,
    /// Further inputs, with what a model expects of the configurations there. They help to grow a tree where trees that were grown with
    /// them judge the timed inputs better; they judge nothing.
    pub guessed: Vec<(Vec<i64>, Vec<Cell>)>,
}

/// How a tree is grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitSettings {
    /// The most leaves.
    pub leaves: usize,
    /// The most configurations for each of these leaves: where the one that is best for a leaf is not legal, others stand in.
    pub each: usize,
    /// Parts that inputs are divided into, each of which judges trees that were grown on the others.
    pub folds: usize,
}

impl Default for FitSettings {
    fn default() -> Self {
        Self { leaves: 8, each: 4, folds: 8 }
    }
}

/// A tree, and how good it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Over columns of the table.
    pub tree: Tree,
    /// The columns that are in it.
    pub chosen: Vec<usize>,
    /// On the inputs of the table.
    pub training: Loss,
    /// The same, each input by a tree that was grown without it; none of a single input.
    pub cross_validated: Option<Loss>,
}

/// A table that nothing can be learned from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// No configuration was timed on any input.
    #[error("no configuration was timed on any input")]
    NothingTimed,
    /// Rows of another number than inputs, or cells of another number than the first row's.
    #[error("row {row} of the table has {cells} cells, and {expected} are expected")]
    Ragged {
        /// The row; that of the first input that has none, or the first row without an input.
        row: usize,
        /// Its cells.
        cells: usize,
        /// The cells that it should have.
        expected: usize,
    },
}

/// The logarithm of the time over the best time of the input, for each input and configuration; none where it is not legal.
pub(crate) type Regrets = Vec<Vec<Option<f64>>>;

/// What a failure costs, as the logarithm of a factor: more than any choice that runs.
const FAILED: f64 = 3.0;

/// What it costs where nothing in a list is legal.
const NOTHING: f64 = 1.0;

/// What an input counts of which a model speaks, beside one that was timed.
const GUESSED: f64 = 0.25;

/// A larger tree must save more than this in the mean, as a logarithm.
const WORTH: f64 = 0.002;

/// Grows a tree on a table. How many leaves it has is decided by inputs that it has not seen.
///
/// # Errors
/// A table in which nothing was timed, or whose rows do not fit together.
pub fn fit(table: &Table<'_>, settings: &FitSettings) -> Result<Fitted, FitError> {
    check(table)?;
    let rows: Vec<usize> = (0..table.cells.len()).filter(|&i| is_timed(&table.cells[i])).collect();
    if rows.is_empty() {
        return Err(FitError::NothingTimed);
    }
    let timed = Rows::new(table, &[]);
    let mut best = (timed.judged(&rows, settings), timed);
    if !table.guessed.is_empty() {
        let all = Rows::new(table, &table.guessed);
        let judged = all.judged(&rows, settings);
        if mean(&judged.lost) + WORTH < mean(&best.0.lost) {
            best = (judged, all);
        }
    }
    let (Judged { leaves, lost }, all) = best;
    let tree = all.grown(&rows, settings).tree(leaves);
    let training: Vec<f64> = rows.iter().map(|&i| served(&all.regrets[i], tree.leaf(&all.inputs[i]))).collect();
    let training = Loss::of(&training).ok_or(FitError::NothingTimed)?;
    Ok(Fitted { chosen: chosen(&tree), tree, training, cross_validated: Loss::of(&lost) })
}

/// The rows of a table, those that were timed first.
struct Rows<'a> {
    domain: &'a Domain,
    inputs: Vec<Vec<i64>>,
    regrets: Regrets,
    timed: usize,
}

/// The number of leaves that lost least on inputs that trees had not seen, and what each of these lost.
struct Judged {
    leaves: usize,
    lost: Vec<f64>,
}

impl<'a> Rows<'a> {
    fn new(table: &Table<'a>, guessed: &[(Vec<i64>, Vec<Cell>)]) -> Self {
        let (mut inputs, mut all) = (table.inputs.clone(), regrets(&table.cells));
        inputs.extend(guessed.iter().map(|(numbers, _)| numbers.clone()));
        let more = regrets(&guessed.iter().map(|(_, cells)| cells.clone()).collect::<Vec<_>>());
        all.extend(more.into_iter().map(|row| row.into_iter().map(|r| r.map(|r| r * GUESSED)).collect()));
        Self { domain: table.domain, inputs, regrets: all, timed: table.inputs.len() }
    }

    /// A growth on timed rows and all guessed ones.
    fn grown(&self, rows: &[usize], settings: &FitSettings) -> Grown<'_> {
        let rows: Vec<usize> = rows.iter().copied().chain(self.timed..self.inputs.len()).collect();
        Grown::new(self, &rows, settings)
    }

    fn judged(&self, rows: &[usize], settings: &FitSettings) -> Judged {
        let (most, folds) = (settings.leaves.max(1), settings.folds.clamp(2, rows.len().max(2)));
        let mut lost: Vec<Vec<f64>> = vec![Vec::new(); most];
        for fold in (0..folds).filter(|_| rows.len() > 1) {
            let is_judge = |at: usize| at % folds == fold;
            let part = |judges: bool| (0..rows.len()).filter(move |&at| is_judge(at) == judges).map(|at| rows[at]);
            let grown = self.grown(&part(false).collect::<Vec<_>>(), settings);
            for (size, lost) in lost.iter_mut().enumerate() {
                let tree = grown.tree(size + 1);
                lost.extend(part(true).map(|i| served(&self.regrets[i], tree.leaf(&self.inputs[i]))));
            }
        }
        let leaves = best_size(&lost);
        Judged { leaves, lost: lost.swap_remove(leaves - 1) }
    }
}

fn mean(list: &[f64]) -> f64 {
    list.iter().sum::<f64>() / list.len().max(1) as f64
}

/// A growth with what its leaves are made from.
struct Grown<'a> {
    all: &'a Regrets,
    columns: Vec<usize>,
    growth: Growth,
}

impl<'a> Grown<'a> {
    fn new(of: &'a Rows<'_>, rows: &[usize], settings: &FitSettings) -> Self {
        let most = settings.leaves.max(1);
        let columns = portfolio(&of.regrets, rows, most.saturating_mul(settings.each.max(1)));
        let growth = grow(of.domain, &of.inputs, &of.regrets, (rows, &columns), most);
        Self { all: &of.regrets, columns, growth }
    }

    /// The tree of at most so many leaves.
    fn tree(&self, leaves: usize) -> Tree {
        self.growth.tree(leaves, &|rows| order(self.all, rows, &self.columns))
    }
}

fn check(table: &Table<'_>) -> Result<(), FitError> {
    let (inputs, rows) = (table.inputs.len(), table.cells.len());
    if inputs != rows {
        let row = inputs.min(rows);
        return Err(FitError::Ragged { row, cells: 0, expected: table.cells.first().map_or(0, Vec::len) });
    }
    let expected = table.cells.first().map_or(0, Vec::len);
    let rows = || table.cells.iter().chain(table.guessed.iter().map(|(_, cells)| cells));
    match rows().enumerate().find(|(_, row)| row.len() != expected) {
        Some((row, cells)) => Err(FitError::Ragged { row, cells: cells.len(), expected }),
        None => Ok(()),
    }
}

fn is_timed(row: &[Cell]) -> bool {
    row.iter().any(|cell| matches!(cell, Cell::Seconds(_)))
}

fn regrets(cells: &[Vec<Cell>]) -> Regrets {
    let of = |row: &Vec<Cell>| {
        let seconds = || row.iter().filter_map(|cell| if let Cell::Seconds(s) = cell { Some(s.ln()) } else { None });
        let (best, worst) = (seconds().fold(f64::INFINITY, f64::min), seconds().fold(f64::NEG_INFINITY, f64::max));
        let one = |cell: &Cell| match cell {
            Cell::Seconds(s) => Some(s.ln() - best),
            Cell::Illegal => None,
            Cell::Failed => Some(FAILED),
            // Whoever there was no time for came late: it was expected to be slow.
            Cell::Untimed => Some((worst - best).max(0.0)),
        };
        row.iter().map(one).collect()
    };
    cells.iter().map(of).collect()
}

/// The least number of leaves that loses about as little as any.
fn best_size(lost: &[Vec<f64>]) -> usize {
    let means: Vec<f64> = lost.iter().map(|list| mean(list)).collect();
    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
    1 + means.iter().position(|mean| *mean <= least + WORTH).unwrap_or(0)
}

fn chosen(tree: &Tree) -> Vec<usize> {
    let mut out = Vec::new();
    tree.visit(&mut |node| {
        if let Tree::Leaf(order) = node {
            out.extend(order.iter().copied());
        }
    });
    out.sort_unstable();
    out.dedup();
    out
}

#[cfg(test)]
mod tests;
