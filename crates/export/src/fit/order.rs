//! The order of configurations in a leaf.

use super::{NOTHING, Regrets};

/// What an input loses with a list: the regret of the first that is legal.
pub(super) fn served(regrets: &[Option<f64>], order: &[usize]) -> f64 {
    order.iter().find_map(|&at| regrets[at]).unwrap_or(NOTHING)
}

/// What each input would lose with each column: where it is not legal, about what the others lose.
pub(super) fn expected(all: &Regrets, rows: &[usize], columns: &[usize]) -> Vec<Vec<f64>> {
    let of = |&row: &usize| {
        let legal: Vec<f64> = columns.iter().filter_map(|&at| all[row][at]).collect();
        let instead = if legal.is_empty() { NOTHING } else { legal.iter().sum::<f64>() / legal.len() as f64 };
        columns.iter().map(|&at| all[row][at].unwrap_or(instead)).collect()
    };
    rows.iter().map(of).collect()
}

/// All columns, that with the least loss over the rows first; behind it, that with the least loss over the rows that none before it
/// is legal for; and so on.
pub(super) fn order(all: &Regrets, rows: &[usize], columns: &[usize]) -> Vec<usize> {
    let (mut left, mut unserved, mut out) = (columns.to_vec(), rows.to_vec(), Vec::with_capacity(columns.len()));
    while !left.is_empty() {
        // Once all are served, the others follow by what they would lose everywhere.
        let judges = if unserved.is_empty() { rows } else { &unserved };
        let losses = expected(all, judges, &left);
        let loss = |at: usize| losses.iter().map(|row| row[at]).sum::<f64>();
        let best = (0..left.len()).min_by(|&a, &b| loss(a).total_cmp(&loss(b)).then(a.cmp(&b))).unwrap_or(0);
        let best = left.remove(best);
        unserved.retain(|&row| all[row][best].is_none());
        out.push(best);
    }
    out
}
