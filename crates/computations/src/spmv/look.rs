//! Features of a matrix from a few of its rows: a product takes microseconds, and a look at all rows takes longer than that.

use crate::matrix::{Csr, some, spread};

/// Rows whose lengths are looked at.
const LENGTHS: usize = 128;
/// Rows whose columns are looked at.
const ROWS: usize = 16;
/// Slices of SELL-P that are looked at.
const SLICES: usize = 16;

/// Entries a row.
pub(super) fn mean_length(m: &Csr) -> f64 {
    m.nonzeros() as f64 / m.rows().max(1) as f64
}

fn length(m: &Csr, row: usize) -> usize {
    (m.starts[row + 1] - m.starts[row]) as usize
}

/// Mean, standard deviation and largest distance from the mean, of the lengths of some rows.
pub(super) fn lengths(m: &Csr) -> (f64, f64, f64) {
    spread(some(m.rows(), LENGTHS).map(|row| length(m, row)))
}

/// Elements on the diagonals of some entries, over entries there: how often the next element of a diagonal is an entry too.
pub(super) fn dia_fill(m: &Csr) -> f64 {
    let (mut seen, mut go_on) = (0usize, 0usize);
    for row in some(m.rows().saturating_sub(1), ROWS) {
        let (upper, lower) = (m.row(row).0, m.row(row + 1).0);
        let mut at = 0;
        for &column in upper {
            at += lower[at..].iter().take_while(|&&c| c <= column).count();
            // What leaves the matrix does not count.
            seen += usize::from((column as usize) + 1 < m.cols);
            go_on += usize::from(lower.get(at) == Some(&(column + 1)));
        }
    }
    (seen + 1) as f64 / (go_on + 1) as f64
}

/// The longest of some rows over the mean of all.
pub(super) fn ell_fill(m: &Csr) -> f64 {
    let longest = some(m.rows(), LENGTHS).map(|row| length(m, row)).max().unwrap_or(0);
    (longest as f64 / mean_length(m).max(1e-3)).max(1.0)
}

/// Stored elements of some slices over their entries.
pub(super) fn sellp_fill(m: &Csr) -> f64 {
    let (mut stored, mut entries) = (0, 0);
    for slice in some(m.rows().div_ceil(super::padded::SLICE), SLICES) {
        let rows = slice * super::padded::SLICE..((slice + 1) * super::padded::SLICE).min(m.rows());
        entries += (m.starts[rows.end] - m.starts[rows.start]) as usize;
        stored += rows.map(|row| length(m, row)).max().unwrap_or(0) * super::padded::SLICE;
    }
    if entries == 0 { 1.0 } else { stored as f64 / entries as f64 }
}
