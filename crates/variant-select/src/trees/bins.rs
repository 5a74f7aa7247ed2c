//! Features in bins: what histograms are made of.

/// Bin of a missing value; those of numbers count from 1.
pub(crate) const MISSING: u8 = 0;

/// Edges of the bins of each feature.
#[derive(Clone, Debug)]
pub(crate) struct Bins {
    /// For each feature, ascending upper bounds of all bins but the last.
    pub(crate) edges: Vec<Vec<f32>>,
}

impl Bins {
    /// Edges between distinct values of row-major rows, at quantiles where there are more of them than bins.
    fn fit(rows: &[f32], width: usize, most: usize) -> Self {
        let edges = |feature: usize| {
            let column = rows.iter().skip(feature).step_by(width);
            let mut values: Vec<f32> = column.copied().filter(|v| v.is_finite()).collect();
            values.sort_unstable_by(f32::total_cmp);
            let mut distinct = values.clone();
            distinct.dedup();
            if distinct.len() > most {
                distinct = (0..most).map(|q| values[(2 * q + 1) * values.len() / (2 * most)]).collect();
                distinct.dedup();
            }
            distinct.windows(2).map(|w| w[0] + (w[1] - w[0]) / 2.0).collect()
        };
        Self { edges: (0..width).map(edges).collect() }
    }

    /// The bin of a value.
    pub(crate) fn bin(&self, feature: usize, value: f32) -> u8 {
        if !value.is_finite() {
            return MISSING;
        }
        // At most 255 bins, so the count fits.
        self.edges[feature].partition_point(|&e| e < value) as u8 + 1
    }

    /// Number of bins of a feature, the missing one included.
    pub(crate) fn count(&self, feature: usize) -> usize {
        self.edges[feature].len() + 2
    }

    /// The threshold that rows up to a bin do not exceed. Where only missing values go left, no number does.
    pub(crate) fn threshold(&self, feature: usize, bin: u8) -> f32 {
        bin.checked_sub(1).map_or(f32::NEG_INFINITY, |b| self.edges[feature][usize::from(b)])
    }
}

/// Rows in bins.
pub(crate) struct Binned {
    pub(crate) bins: Bins,
    /// Row-major, one byte a feature.
    pub(crate) cells: Vec<u8>,
    pub(crate) width: usize,
}

impl Binned {
    pub(crate) fn new(rows: &[f32], width: usize, most: usize) -> Self {
        let bins = Bins::fit(rows, width, most);
        let cells = rows.iter().enumerate().map(|(i, &v)| bins.bin(i % width, v)).collect();
        Self { bins, cells, width }
    }

    /// The bin of a feature of a row.
    pub(crate) fn cell(&self, row: u32, feature: usize) -> u8 {
        self.cells[row as usize * self.width + feature]
    }

    /// The features that vary.
    pub(crate) fn varying(&self) -> Vec<usize> {
        let varies = |&feature: &usize| {
            let mut column = self.cells.iter().skip(feature).step_by(self.width);
            let first = column.next();
            column.any(|b| Some(b) != first)
        };
        (0..self.width).filter(varies).collect()
    }
}
