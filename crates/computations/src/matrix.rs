//! Sparse matrices by rows, and what features say about them.

pub mod market;

/// A sparse matrix, row after row, columns ascending within a row.
#[derive(Clone, Debug, PartialEq)]
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
        self.starts.len() - 1
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

    /// The matrix with rows and columns exchanged.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let entries = self.entries().map(|(r, c, v)| (c as u32, r as u32, v)).collect();
        Self::of_entries(self.cols, self.rows(), entries)
    }

    /// The product with a vector, by the plainest loop.
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        let dot = |row| {
            let (columns, values) = self.row(row);
            columns.iter().zip(values).map(|(&c, v)| v * x[c as usize]).sum()
        };
        (0..self.rows()).map(dot).collect()
    }

    /// Entries of the longest row.
    pub fn longest(&self) -> usize {
        self.lengths().max().unwrap_or(0)
    }

    /// Offsets `column - row` that have entries, ascending.
    pub fn diagonals(&self) -> Vec<i64> {
        let mut seen = vec![false; self.rows() + self.cols];
        for (row, column, _) in self.entries() {
            seen[column + self.rows() - 1 - row] = true;
        }
        let offset = |(i, _): (usize, &bool)| i as i64 - (self.rows() as i64 - 1);
        seen.iter().enumerate().filter(|(_, s)| **s).map(offset).collect()
    }
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
