//! The domain of a model: the inputs that it was fitted on, and whether another one is near some of them.

use std::collections::BTreeSet;

use tilewright_core::feature::FeatureKind;
use tilewright_core::predictor::Coverage;
use tilewright_core::training::TrainingSet;

/// The most inputs that are kept: what is near one of more is mostly near one of these.
const MOST: usize = 1024;

/// How far a size may be from that of an input, as a log to base two: a factor of four.
const OCTAVES: f32 = 2.0;

/// How far another value may be: a share of the range of all inputs.
const SHARE: f32 = 0.25;

/// How many inputs must be near for a word that promises much to be heard.
const FEW: usize = 1;

/// How many inputs must be near for any word to be relied upon: models of a few tens of random inputs were worse than defaults beside single ones.
const SOME: usize = 4;

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

    /// How well these cover an input: in full where it is one of them, or near several in every column. Where the columns are none, all inputs
    /// are the same.
    pub(crate) fn coverage(&self, input: &[f32]) -> Coverage {
        // Missing values are alike.
        let is_same = |own: f32, to: f32| own == to || !(own.is_finite() || to.is_finite());
        let near = |at: usize, own: f32| {
            let to = input[at];
            let distance = if self.sizes[at] { (own.log2() - to.log2()).abs() / OCTAVES } else { (own - to).abs() };
            let limit = if self.sizes[at] { 1.0 } else { SHARE * self.ranges[at] };
            is_same(own, to) || distance <= limit
        };
        let is_near = |row: &&[f32]| row.iter().enumerate().all(|(at, own)| near(at, *own));
        let rows = || self.rows.chunks(self.sizes.len().max(1));
        let is_known = rows().any(|row| row.iter().zip(input).all(|(own, to)| is_same(*own, *to)));
        match rows().filter(is_near).take(SOME).count() {
            _ if self.sizes.is_empty() || is_known => Coverage::Full,
            near if near < FEW => Coverage::None,
            near if near < SOME => Coverage::Sparse,
            _ => Coverage::Full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_full(domain: &Domain, input: &[f32]) -> bool {
        domain.coverage(input) == Coverage::Full
    }

    #[test]
    fn several_inputs_are_near_in_every_column() {
        let rows = [[64.0, 0.0], [4096.0, 1.0], [0.0, f32::NAN]].map(|row| [row; SOME]).concat().concat();
        let domain = Domain::new(vec![true, false], rows);
        let near = [[64.0, 0.0], [16.0, 0.25], [256.0, 0.0], [16384.0, 0.75], [0.0, f32::INFINITY]];
        assert!(near.iter().all(|input| is_full(&domain, input)));
        // Too small, too large, of another kind, between the two, no size, a missing value.
        let far =
            [[15.0, 0.0], [16385.0, 1.0], [64.0, 1.0], [512.0, 0.0], [0.0, 0.0], [64.0, f32::NAN], [f32::NAN, 0.0]];
        assert!(!far.iter().any(|input| is_full(&domain, input)));
        let first = domain.truncated(1);
        assert!(is_full(&first, &[64.0]) && is_full(&first, &[1024.0]) && !is_full(&first, &[512.0]));
        assert!(is_full(&Domain::new(Vec::new(), Vec::new()), &[]), "nothing tells inputs apart");
    }

    #[test]
    fn an_input_of_training_is_covered_and_its_neighbours_want_several() {
        let few = Domain::new(vec![true], vec![100.0, 120.0, 130.0]);
        assert!(
            is_full(&few, &[120.0])
                && few.coverage(&[110.0]) == Coverage::Sparse
                && few.coverage(&[800.0]) == Coverage::None
        );
        assert!(is_full(&Domain::new(vec![false], vec![f32::NAN, 1.0]), &[f32::NAN]), "a missing value is one, too");
        assert!(is_full(&Domain::new(vec![true], vec![100.0, 120.0, 130.0, 140.0]), &[110.0]));
    }

    #[test]
    fn beside_a_constant_nothing_is_near() {
        let domain = Domain::new(vec![false], vec![4.0; SOME]);
        assert!(is_full(&domain, &[4.0]) && domain.coverage(&[4.1]) == Coverage::None);
    }
}
