//! Features as linear methods and kernels want them: logarithms, standardised, complete; and maps of them.

use serde::Serialize;
use tilewright_core::choice::{ChoiceSet, SelectError};
use tilewright_core::feature::FeatureKind;

/// What a linear method sees of the encoded features x.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum FeatureMap {
    /// 1, x.
    Linear,
    /// 1, x, the squares of x.
    Squares,
    /// 1, x, the squares and all products of two.
    Quadratic,
}

/// One feature that is used.
#[derive(Clone, Debug)]
struct Column {
    feature: usize,
    log: bool,
    mean: f32,
    scale: f32,
}

/// How features of the input are encoded, learned from training cases. Features that are constant or missing everywhere
/// are left out; a missing value counts as the mean.
#[derive(Clone, Debug)]
pub(crate) struct Encoding {
    columns: Vec<Column>,
    map: FeatureMap,
}

impl Encoding {
    /// Learns the encoding.
    ///
    /// # Errors
    /// No feature varies.
    pub(crate) fn fit(data: &ChoiceSet, map: FeatureMap) -> Result<Self, SelectError> {
        Self::with(data, map, |kind| kind == FeatureKind::Size)
    }

    /// As [`Encoding::fit`], of the features themselves with logarithms of all, signed where they may be negative.
    ///
    /// # Errors
    /// No feature varies.
    pub(crate) fn logarithms(data: &ChoiceSet) -> Result<Self, SelectError> {
        Self::with(data, FeatureMap::Linear, |_| true)
    }

    fn with(data: &ChoiceSet, map: FeatureMap, logs: fn(FeatureKind) -> bool) -> Result<Self, SelectError> {
        let input = &data.schema().input;
        let column = |feature: usize| {
            let log = logs(input[feature].kind);
            let values = data.cases().iter().map(|c| transformed(c.features[feature], log));
            let present: Vec<f64> = values.filter(|v| v.is_finite()).map(f64::from).collect();
            let n = present.len() as f64;
            let mean = present.iter().sum::<f64>() / n;
            let deviation = (present.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
            let usable = deviation.is_finite() && deviation > 1e-6 * (1.0 + mean.abs());
            usable.then(|| Column { feature, log, mean: mean as f32, scale: deviation.recip() as f32 })
        };
        let columns: Vec<Column> = (0..input.len()).filter_map(column).collect();
        if columns.is_empty() { Err(SelectError::NoUsableFeature(input.len())) } else { Ok(Self { columns, map }) }
    }

    /// The features that are used, in the order of the row.
    pub(crate) fn features(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().map(|column| column.feature)
    }

    /// Numbers in an encoded row.
    pub(crate) fn width(&self) -> usize {
        let n = self.columns.len();
        match self.map {
            FeatureMap::Linear => 1 + n,
            FeatureMap::Squares => 1 + 2 * n,
            FeatureMap::Quadratic => 1 + n + n * (n + 1) / 2,
        }
    }

    /// Writes the encoded row to `out`, but for the 1 that it begins with, which only linear methods need.
    pub(crate) fn encode_features(&self, features: &[f32], out: &mut Vec<f32>) {
        self.encode(features, out);
        out.remove(0);
    }

    /// Writes the encoded row to `out`. Features that the row lacks count as the mean.
    pub(crate) fn encode(&self, features: &[f32], out: &mut Vec<f32>) {
        out.clear();
        out.push(1.0);
        for c in &self.columns {
            let value = features.get(c.feature).map_or(f32::NAN, |&v| transformed(v, c.log));
            // Beyond five deviations a linear model extrapolates too boldly.
            let standard = if value.is_finite() { ((value - c.mean) * c.scale).clamp(-5.0, 5.0) } else { 0.0 };
            out.push(standard);
        }
        let n = self.columns.len();
        match self.map {
            FeatureMap::Linear => {}
            FeatureMap::Squares => (1..=n).for_each(|i| out.push(out[i] * out[i])),
            FeatureMap::Quadratic => {
                for i in 1..=n {
                    for j in i..=n {
                        out.push(out[i] * out[j]);
                    }
                }
            }
        }
    }
}

/// Sizes on their multiplicative scale; they may be 0.
fn transformed(value: f32, log: bool) -> f32 {
    if log { (1.0 + value.abs()).ln().copysign(value) } else { value }
}
