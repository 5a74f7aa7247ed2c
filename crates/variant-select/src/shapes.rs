//! Features of an input, and what follows from pairs of its sizes.

use tilewright_core::feature::{FeatureKind, FeatureSchema};

/// The features of an input, ratios of pairs of its sizes (trees split along one axis, and shapes differ by their ratios), and
/// where they are wanted products of these pairs: storage and work often are products of sizes.
#[derive(Clone, Debug)]
pub(crate) struct Shapes {
    inputs: usize,
    pairs: Vec<(usize, usize)>,
    pub(crate) products: bool,
}

/// Positions of the sizes among the features of the input.
pub(crate) fn sizes(schema: &FeatureSchema) -> Vec<usize> {
    (0..schema.input.len()).filter(|&i| schema.input[i].kind == FeatureKind::Size).collect()
}

impl Shapes {
    /// At most so many pairs: beyond, those of the first sizes.
    pub(crate) fn new(schema: &FeatureSchema, most: usize, products: bool) -> Self {
        let sizes = sizes(schema);
        let pairs = sizes.iter().enumerate().flat_map(|(k, &a)| sizes[k + 1..].iter().map(move |&b| (a, b)));
        Self { inputs: schema.input.len(), pairs: pairs.take(most).collect(), products }
    }

    /// How many numbers there are.
    pub(crate) fn width(&self) -> usize {
        self.inputs + self.pairs.len() * if self.products { 2 } else { 1 }
    }

    /// Appends the numbers of an input; NaN for what is missing or not finite.
    pub(crate) fn write(&self, input: &[f32], out: &mut Vec<f32>) {
        out.extend((0..self.inputs).map(|i| at(input, i)));
        out.extend(self.pairs.iter().map(|&(a, b)| finite(at(input, a) / at(input, b))));
        if self.products {
            out.extend(self.pairs.iter().map(|&(a, b)| finite(at(input, a) * at(input, b))));
        }
    }

    /// One of the numbers that [`Shapes::write`] appends.
    pub(crate) fn value(&self, i: usize, input: &[f32]) -> f32 {
        let Some(pair) = i.checked_sub(self.inputs) else { return at(input, i) };
        let (a, b) = self.pairs[pair % self.pairs.len()];
        finite(if pair < self.pairs.len() { at(input, a) / at(input, b) } else { at(input, a) * at(input, b) })
    }
}

/// A feature; NaN where it is missing or not finite.
pub(crate) fn at(features: &[f32], i: usize) -> f32 {
    features.get(i).map_or(f32::NAN, |&v| finite(v))
}

/// What is not finite is missing.
pub(crate) fn finite(v: f32) -> f32 {
    if v.is_finite() { v } else { f32::NAN }
}
