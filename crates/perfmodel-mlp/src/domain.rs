//! The domain of a model: the inputs that it was fitted on, and whether another one is near any of them.

use std::collections::BTreeSet;

use tilewright_core::feature::FeatureKind;
use tilewright_core::training::TrainingSet;

/// The most inputs that are kept: what is near one of more is mostly near one of these.
const MOST: usize = 1024;

/// How far a size may be from that of an input, as a log to base two: a factor of four.
const OCTAVES: f32 = 2.0;

/// How far another value may be: a share of the range of all inputs.
const SHARE: f32 = 0.25;

/// Inputs that a model was fitted on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Domain {
    /// Which columns are sizes, on a multiplicative scale.
    sizes: Vec<bool>,
    /// From the least to the greatest finite value of each column.
    ranges: Vec<f32>,
    /// `[input][column]`.
    rows: Vec<f32>,
}

impl Domain {
    /// Of inputs, `[input][column]`.
    pub(crate) fn new(sizes: Vec<bool>, rows: Vec<f32>) -> Self {
        let column = |at: usize| rows.iter().skip(at).step_by(sizes.len()).copied().filter(|v| v.is_finite());
        let range = |at: usize| column(at).reduce(f32::max).zip(column(at).reduce(f32::min));
        let ranges = (0..sizes.len()).map(|at| range(at).map_or(0.0, |(most, least)| most - least)).collect();
        Self { sizes, ranges, rows }
    }

    /// Of the inputs of a training set, each once, spread over its groups where they are too many.
    pub(crate) fn learn(data: &TrainingSet) -> Self {
        let width = data.schema.input.len();
        let (mut groups, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let firsts =
            data.rows.chunks(data.schema.width()).zip(&data.groups).filter(|(_, group)| groups.insert(**group));
        let inputs = firsts.map(|(row, _)| &row[..width]);
        let bits = |input: &[f32]| input.iter().map(|value| value.to_bits()).collect::<Vec<u32>>();
        let inputs: Vec<&[f32]> = inputs.filter(|input| seen.insert(bits(input))).collect();
        let rows = inputs.iter().step_by(inputs.len().div_ceil(MOST).max(1)).copied().flatten().copied().collect();
        Self::new(data.schema.input.iter().map(|feature| feature.kind == FeatureKind::Size).collect(), rows)
    }

    /// Of the first columns alone.
    pub(crate) fn truncated(&self, width: usize) -> Self {
        let rows = self.rows.chunks(self.sizes.len().max(1)).flat_map(|row| &row[..width]).copied();
        Self::new(self.sizes[..width].to_vec(), rows.collect())
    }

    /// The inputs.
    pub(crate) fn rows(&self) -> &[f32] {
        &self.rows
    }

    /// Whether an input is near one of these in every column. Where the columns are none, all inputs are the same.
    pub(crate) fn is_near(&self, input: &[f32]) -> bool {
        let near = |at: usize, own: f32| {
            let to = input[at];
            let distance = if self.sizes[at] { (own.log2() - to.log2()).abs() / OCTAVES } else { (own - to).abs() };
            let limit = if self.sizes[at] { 1.0 } else { SHARE * self.ranges[at] };
            own == to || distance <= limit || !(own.is_finite() || to.is_finite())
        };
        let is_near = |row: &[f32]| row.iter().enumerate().all(|(at, own)| near(at, *own));
        self.sizes.is_empty() || self.rows.chunks(self.sizes.len()).any(is_near)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_near_where_each_value_is_near_that_of_one_input() {
        let domain = Domain::new(vec![true, false], vec![64.0, 0.0, 4096.0, 1.0, 0.0, f32::NAN]);
        assert!(
            [[64.0, 0.0], [16.0, 0.25], [256.0, 0.0], [16384.0, 0.75], [0.0, f32::INFINITY]]
                .iter()
                .all(|i| domain.is_near(i))
        );
        // Too small, too large, of another kind, between the two, no size, a missing value.
        for far in
            [[15.0, 0.0], [16385.0, 1.0], [64.0, 1.0], [512.0, 0.0], [0.0, 0.0], [64.0, f32::NAN], [f32::NAN, 0.0]]
        {
            assert!(!domain.is_near(&far), "{far:?}");
        }
        let first = domain.truncated(1);
        assert!(first.is_near(&[64.0]) && first.is_near(&[1024.0]) && !first.is_near(&[512.0]));
        assert!(Domain::new(Vec::new(), Vec::new()).is_near(&[]), "nothing tells inputs apart");
    }

    #[test]
    fn beside_a_constant_nothing_is_near() {
        let domain = Domain::new(vec![false], vec![4.0, 4.0]);
        assert!(domain.is_near(&[4.0]) && !domain.is_near(&[4.1]));
    }
}
