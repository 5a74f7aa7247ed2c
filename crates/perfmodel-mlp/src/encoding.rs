//! From raw feature rows to what the network sees: logarithm, standardisation, indicators of missing cells.

use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

use crate::error::TrainError;
use crate::log2::log2_in_place;

/// How one raw column is brought to zero mean and unit variance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Column {
    /// Whether the logarithm is taken first.
    pub(crate) log2: bool,
    /// What zero and negative values become before the logarithm: half of the least positive value seen in training.
    pub(crate) floor: f32,
    /// Mean over the training rows, after the logarithm.
    pub(crate) mean: f32,
    /// One over the standard deviation; 0 for a column that was constant in training, which silences it.
    pub(crate) scale: f32,
    /// Whether cells were missing in training: the network then sees one more input, 1 where the cell is missing.
    pub(crate) missing: bool,
}

/// Standardised values are kept within this many deviations, so that a wild input cannot drive the network to infinity.
const REACH: f32 = 16.0;

/// A column whose deviation is below this share of its mean is taken for constant: what is left is rounding.
const CONSTANT: f64 = 1e-6;

/// Values encoded together: a fixed count lets the compiler use SIMD.
const LANES: usize = 8;

/// Hands over all values, so many at a time; what is left over is filled up with ones.
#[inline(always)]
fn by_lanes(values: &mut [f32], each: impl Fn(&mut [f32; LANES])) {
    let (whole, rest) = values.as_chunks_mut::<LANES>();
    whole.iter_mut().for_each(&each);
    if !rest.is_empty() {
        let mut lanes = [1.0; LANES];
        lanes[..rest.len()].copy_from_slice(rest);
        each(&mut lanes);
        rest.copy_from_slice(&lanes[..rest.len()]);
    }
}

impl Column {
    /// Learns the transformation from the column's training values; values that are not finite count as missing.
    fn learn(values: impl Iterator<Item = f32> + Clone, log2: bool) -> Self {
        let finite = values.clone().filter(|value| value.is_finite());
        let least = finite.clone().filter(|&value| value > 0.0).fold(f32::INFINITY, f32::min);
        let floor = if least.is_finite() { (0.5 * least).max(f32::MIN_POSITIVE) } else { 1.0 };
        let mut column = Self { log2, floor, mean: 0.0, scale: 1.0, missing: false };
        let mut present: Vec<f32> = finite.collect();
        column.missing = values.count() > present.len();
        if log2 {
            by_lanes(&mut present, |lanes| column.take_log(lanes));
        }
        let count = present.len().max(1) as f64;
        let mean = present.iter().map(|&value| f64::from(value)).sum::<f64>() / count;
        let variance = present.iter().map(|&value| (f64::from(value) - mean).powi(2)).sum::<f64>() / count;
        let deviation = variance.sqrt();
        column.mean = mean as f32;
        column.scale = if deviation > CONSTANT * mean.abs().max(1e-30) { (1.0 / deviation) as f32 } else { 0.0 };
        if !column.scale.is_finite() || !column.mean.is_finite() {
            (column.mean, column.scale) = (0.0, 0.0);
        }
        column
    }

    /// The logarithm where the column wants it; values that are not finite become NaN.
    #[inline(always)]
    fn take_log(&self, values: &mut [f32; LANES]) {
        let mut logs = *values;
        for value in &mut logs {
            *value = if *value < self.floor { self.floor } else { *value };
        }
        log2_in_place(&mut logs);
        for (value, log) in values.iter_mut().zip(logs) {
            *value = if value.is_finite() { log } else { f32::NAN };
        }
    }

    #[inline(always)]
    fn encode_lanes(&self, values: &mut [f32; LANES]) {
        if self.log2 {
            self.take_log(values);
        }
        for value in values {
            let standard = (*value - self.mean) * self.scale;
            let bounded = if standard > REACH { REACH } else { standard };
            let bounded = if bounded < -REACH { -REACH } else { bounded };
            *value = if standard.is_finite() { bounded } else { 0.0 };
        }
    }

    /// Encodes raw values of this column in place; missing ones become 0, the mean.
    #[inline(always)]
    pub(crate) fn encode(&self, values: &mut [f32]) {
        by_lanes(values, |lanes| self.encode_lanes(lanes));
    }

    /// Writes 1 where the raw value is missing, 0 elsewhere.
    #[inline(always)]
    pub(crate) fn mark_missing(values: &[f32], marks: &mut [f32]) {
        for (mark, value) in marks.iter_mut().zip(values) {
            *mark = if value.is_finite() { 0.0 } else { 1.0 };
        }
    }
}

/// The encoding of a whole row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Encoding {
    pub(crate) columns: Vec<Column>,
}

impl Encoding {
    /// Learns the encoding from training rows `[row][column]`; `log2` says which columns take the logarithm.
    pub(crate) fn learn(rows: ArrayView2<'_, f32>, log2: &[bool]) -> Result<Self, TrainError> {
        if rows.ncols() == 0 {
            return Err(TrainError::NoFeatures);
        }
        if log2.len() != rows.ncols() {
            return Err(TrainError::Length { field: "log2", have: log2.len(), expected: rows.ncols() });
        }
        let columns = rows.columns().into_iter().zip(log2);
        Ok(Self { columns: columns.map(|(column, &log2)| Column::learn(column.iter().copied(), log2)).collect() })
    }

    /// Inputs of the network: the columns, then an indicator for each column with missing cells.
    pub(crate) fn width(&self) -> usize {
        self.columns.len() + self.columns.iter().filter(|column| column.missing).count()
    }

    /// Encodes rows for training.
    pub(crate) fn encode(&self, rows: ArrayView2<'_, f32>) -> Array2<f32> {
        let mut out = Array2::zeros((rows.nrows(), self.width()));
        let mut indicator = self.columns.len();
        let mut values = vec![0.0; rows.nrows()];
        let mut marks = vec![0.0; rows.nrows()];
        for (index, column) in self.columns.iter().enumerate() {
            values.iter_mut().zip(rows.column(index)).for_each(|(to, &from)| *to = from);
            if column.missing {
                Column::mark_missing(&values, &mut marks);
                out.column_mut(indicator).iter_mut().zip(&marks).for_each(|(to, &from)| *to = from);
                indicator += 1;
            }
            column.encode(&mut values);
            out.column_mut(index).iter_mut().zip(&values).for_each(|(to, &from)| *to = from);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns_become_standard() {
        let rows = array![[1.0f32, 5.0], [2.0, 5.0], [4.0, 5.0], [8.0, 5.0]];
        let encoding = Encoding::learn(rows.view(), &[true, false]).unwrap();
        let encoded = encoding.encode(rows.view());
        let deviation = 1.25f32.sqrt();
        for (row, expected) in [-1.5f32, -0.5, 0.5, 1.5].iter().enumerate() {
            assert!((encoded[[row, 0]] - expected / deviation).abs() < 1e-6);
            assert_eq!(encoded[[row, 1]], 0.0, "a constant column is silent");
        }
    }

    #[test]
    fn a_constant_column_stays_silent_on_new_values() {
        let encoding = Encoding::learn(array![[3.0f32], [3.0], [3.0]].view(), &[true]).unwrap();
        assert_eq!(encoding.encode(array![[1e9f32], [f32::NAN], [0.0]].view()), array![[0.0f32], [0.0], [0.0]]);
    }

    #[test]
    fn missing_cells_get_an_indicator_and_the_mean() {
        let rows = array![[1.0f32], [f32::NAN], [4.0], [f32::INFINITY]];
        let encoding = Encoding::learn(rows.view(), &[true]).unwrap();
        assert_eq!(encoding.width(), 2);
        let encoded = encoding.encode(rows.view());
        assert_eq!(encoded.column(1).to_vec(), [0.0, 1.0, 0.0, 1.0]);
        assert_eq!(encoded.column(0).to_vec(), [-1.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn zero_lies_one_below_the_least_positive_value() {
        let rows = array![[0.0f32], [4.0], [16.0]];
        let encoding = Encoding::learn(rows.view(), &[true]).unwrap();
        assert_eq!(encoding.columns[0].floor, 2.0);
        let encoded = encoding.encode(rows.view());
        assert!(encoded[[0, 0]] < encoded[[1, 0]] && encoded[[1, 0]] < encoded[[2, 0]]);
    }

    #[test]
    fn bad_shapes_are_errors() {
        assert_eq!(Encoding::learn(Array2::zeros((3, 0)).view(), &[]), Err(TrainError::NoFeatures));
        let error = Encoding::learn(Array2::zeros((3, 2)).view(), &[true]).unwrap_err();
        assert_eq!(error, TrainError::Length { field: "log2", have: 1, expected: 2 });
    }

    proptest! {
        #[test]
        fn anything_encodes_to_finite_bounded_values(
            train in prop::collection::vec(any::<f32>(), 1..20),
            seen in prop::collection::vec(any::<f32>(), 1..40),
            log2: bool,
        ) {
            let column = Column::learn(train.iter().copied(), log2);
            let mut seen = seen;
            column.encode(&mut seen);
            prop_assert!(seen.iter().all(|value| value.abs() <= REACH), "{column:?} {seen:?}");
        }
    }
}
