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
    /// Edges between distinct values, at quantiles where there are more of them than bins.
    pub(crate) fn fit(columns: &[Vec<f32>], most: usize) -> Self {
        let edges = |column: &Vec<f32>| {
            let mut values: Vec<f32> = column.iter().copied().filter(|v| v.is_finite()).collect();
            values.sort_unstable_by(f32::total_cmp);
            let mut distinct = values.clone();
            distinct.dedup();
            if distinct.len() > most {
                distinct = (0..most).map(|q| values[(2 * q + 1) * values.len() / (2 * most)]).collect();
                distinct.dedup();
            }
            distinct.windows(2).map(|w| w[0] + (w[1] - w[0]) / 2.0).collect()
        };
        Self { edges: columns.iter().map(edges).collect() }
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
}
