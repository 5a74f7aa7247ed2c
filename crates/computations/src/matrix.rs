//! Sparse matrices by rows, and what features say about them.

pub mod market;

use std::ops::Range;

/// A sparse matrix, row after row, columns ascending within a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Csr {
    /// Number of columns.
    pub cols: usize,
    /// Where each row starts in the two below, and where the last one ends.
    pub starts: Vec<u32>,
    /// Columns.
    pub columns: Vec<u32>,
    /// Values.
    pub values: Vec<f64>,
}

impl Csr {
    /// A matrix of the given entries. What stands at the same place is added up.
    ///
    /// # Panics
    /// On an entry outside the matrix, and on more than 2^32 - 1 entries.
    pub fn of_entries(rows: usize, cols: usize, mut entries: Vec<(u32, u32, f64)>) -> Self {
        assert!(u32::try_from(entries.len()).is_ok(), "{} entries are too many", entries.len());
        entries.sort_unstable_by_key(|e| (e.0, e.1));
        let mut out = Self { cols, starts: vec![0; rows + 1], columns: Vec::new(), values: Vec::new() };
        let mut last = None;
        for (row, column, value) in entries {
            assert!((row as usize) < rows && (column as usize) < cols, "entry ({row}, {column}) of {rows}x{cols}");
            if last == Some((row, column)) {
                if let Some(sum) = out.values.last_mut() {
                    *sum += value;
                }
                continue;
            }
            last = Some((row, column));
            out.columns.push(column);
            out.values.push(value);
            out.starts[row as usize + 1] += 1;
        }
        for row in 0..rows {
            out.starts[row + 1] += out.starts[row];
        }
        out
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Number of entries.
    pub fn nonzeros(&self) -> usize {
        self.columns.len()
    }

    /// Columns and values of a row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let range = self.starts[row] as usize..self.starts[row + 1] as usize;
        (&self.columns[range.clone()], &self.values[range])
    }

    /// Lengths of the rows.
    pub fn lengths(&self) -> impl Iterator<Item = usize> + Clone {
        self.starts.windows(2).map(|w| (w[1] - w[0]) as usize)
    }

    /// Entries with their places.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        (0..self.rows()).flat_map(|row| {
            let (columns, values) = self.row(row);
            columns.iter().zip(values).map(move |(&c, &v)| (row, c as usize, v))
        })
    }

    /// The product with a vector.
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        let mut y = vec![0.0; self.rows()];
        self.rows_times(x, 0..self.rows(), &mut y);
        y
    }

    /// Some rows times a vector, one sum a row.
    #[inline(always)]
    pub(crate) fn rows_times(&self, x: &[f64], rows: Range<usize>, y: &mut [f64]) {
        for (row, out) in rows.zip(y) {
            let (columns, values) = self.row(row);
            *out = columns.iter().zip(values).map(|(&c, v)| v * x[c as usize]).sum();
        }
    }

    /// Entries of the longest row.
    pub fn longest(&self) -> usize {
        self.lengths().max().unwrap_or(0)
    }

    /// Offsets `column - row` that have entries, ascending.
    pub fn diagonals(&self) -> Vec<i64> {
        self.diagonals_up_to(usize::MAX)
    }

    /// The same, of the first entries only that have more than so many.
    pub fn diagonals_up_to(&self, most: usize) -> Vec<i64> {
        let (mut seen, mut count) = (vec![false; self.rows() + self.cols], 0);
        for (row, column, _) in self.entries() {
            let slot = &mut seen[column + self.rows() - 1 - row];
            count += usize::from(!std::mem::replace(slot, true));
            if count > most {
                break;
            }
        }
        let offset = |(i, _): (usize, &bool)| i as i64 - (self.rows() as i64 - 1);
        seen.iter().enumerate().filter(|(_, s)| **s).map(offset).collect()
    }

    /// A row times a vector, minus a number, as if in twice the precision (Ogita, Rump and Oishi's `Dot2`); the sum of the sizes of
    /// the terms; and their number.
    pub(crate) fn exact_product(&self, row: usize, x: &[f64], minus: f64) -> (f64, f64, usize) {
        let (columns, values) = self.row(row);
        let (mut sum, mut lost, mut size) = (-minus, 0.0, minus.abs());
        for (&column, &a) in columns.iter().zip(values) {
            let b = x[column as usize];
            let product = a * b;
            let next = sum + product;
            let part = next - sum;
            lost += a.mul_add(b, -product) + ((sum - (next - part)) + (product - part));
            (sum, size) = (next, size + product.abs());
        }
        (sum + lost, size, columns.len())
    }
}

/// A sum with how far one in binary64 may be off, in any order of its terms: Higham's bound with room for fused terms.
pub(crate) fn error_bound((sum, size, terms): (f64, f64, usize)) -> (f64, f32) {
    let bound = f64::EPSILON * (terms + 2) as f64 * size;
    // Rounded up to single precision.
    (sum, (bound * (1.0 + 1e-6)) as f32 + if bound > 0.0 { f32::MIN_POSITIVE } else { 0.0 })
}

/// At most so many of `0..count`, evenly spread: what features look at, so that they cost little whatever the size.
pub fn some(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let kept = count.min(most);
    // Steps in 2^-20: a division an element would cost more than looking at it.
    let step = ((count as u64) << 20).checked_div(kept as u64).unwrap_or(0);
    (0..kept as u64).map(move |i| ((i * step) >> 20) as usize)
}

/// Mean, standard deviation and largest distance from the mean, of numbers; zeros of none.
pub fn spread(numbers: impl Iterator<Item = usize>) -> (f64, f64, f64) {
    let (mut count, mut sum, mut squares, mut least, mut most) = (0u64, 0u64, 0u64, u64::MAX, 0u64);
    for n in numbers.map(|n| n as u64) {
        (count, sum, squares) = (count + 1, sum + n, squares + n * n);
        (least, most) = (least.min(n), most.max(n));
    }
    if count == 0 {
        return (0.0, 0.0, 0.0);
    }
    let n = count as f64;
    let mean = sum as f64 / n;
    let variance = (squares as f64 / n - mean * mean).max(0.0);
    (mean, variance.sqrt(), (most as f64 - mean).max(mean - least as f64))
}

/// Marks rows or vertices that were seen.
pub(crate) struct Seen(Vec<u64>);

impl Seen {
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    /// Whether it is new.
    pub(crate) fn mark(&mut self, at: usize) -> bool {
        let (word, bit) = (&mut self.0[at / 64], 1 << (at % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}
