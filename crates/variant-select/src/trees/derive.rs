//! Rows that trees see: the features of a case and a candidate, and what general rules derive from them.

use std::collections::BTreeSet;
use tilewright_core::choice::ChoiceSet;
use tilewright_core::feature::FeatureKind;
use tilewright_core::selector::Candidate;

/// Most pairs of input sizes whose ratios become features: beyond, the pairs of the first sizes.
const MOST_PAIRS: usize = 45;

/// What is derived, fixed when a model is fitted.
///
/// - Ratios of all pairs of sizes of the input: trees split along one axis, and shapes differ by their ratios.
/// - For every size of a candidate that is not a whole number, a count that is rounded up when it runs (waves of blocks on
///   multiprocessors): how full the last one is, `x / ceil(x)`.
/// - For every size of a candidate, its ratio to the smallest among the candidates of the case: what is large for
///   one input is small for another, and a choice is among candidates.
#[derive(Clone, Debug)]
pub(crate) struct Derived {
    inputs: usize,
    candidates: usize,
    pairs: Vec<(usize, usize)>,
    rounded: Vec<usize>,
    compared: Vec<usize>,
    names: Vec<String>,
}

/// Most variants that are told apart by name, where candidates have no features.
const MOST_NAMES: usize = 64;

/// The variants that are told apart by a flag each: those of candidates without features, which nothing else tells apart.
fn names(data: &ChoiceSet) -> Vec<String> {
    if !data.schema().config.is_empty() {
        return Vec::new();
    }
    let all: BTreeSet<&str> =
        data.cases().iter().flat_map(|c| &c.trials).map(|t| t.candidate.variant.as_str()).collect();
    all.into_iter().take(MOST_NAMES).map(str::to_owned).collect()
}

impl Derived {
    pub(crate) fn fit(data: &ChoiceSet) -> Self {
        let schema = data.schema();
        let sizes: Vec<usize> =
            (0..schema.input.len()).filter(|&i| schema.input[i].kind == FeatureKind::Size).collect();
        let all = sizes.iter().enumerate().flat_map(|(k, &a)| sizes[k + 1..].iter().map(move |&b| (a, b)));
        let pairs = all.take(MOST_PAIRS).collect();
        let trials = || data.cases().iter().flat_map(|c| &c.trials);
        let size = |&i: &usize| schema.config[i].kind == FeatureKind::Size;
        let compared: Vec<usize> = (0..schema.config.len()).filter(size).collect();
        let fractional = |&&i: &&usize| {
            trials().map(|t| t.candidate.features[i]).any(|v| v.is_finite() && v > 1.0 && v.fract() != 0.0)
        };
        let rounded = compared.iter().filter(fractional).copied().collect();
        Self {
            inputs: schema.input.len(),
            candidates: schema.config.len(),
            pairs,
            rounded,
            compared,
            names: names(data),
        }
    }

    /// Numbers in a row.
    pub(crate) fn width(&self) -> usize {
        self.inputs + self.pairs.len() + self.candidates + self.rounded.len() + self.compared.len() + self.names.len()
    }

    /// Appends one row a candidate. Anything that is not finite becomes NaN, which trees take as missing.
    pub(crate) fn rows<'a>(
        &self,
        input: &[f32],
        candidates: impl Iterator<Item = &'a Candidate> + Clone,
        out: &mut Vec<f32>,
    ) {
        let at = |features: &[f32], i: usize| features.get(i).copied().filter(|v| v.is_finite()).unwrap_or(f32::NAN);
        let smallest: Vec<f32> = self
            .compared
            .iter()
            .map(|&i| candidates.clone().map(|c| at(&c.features, i)).fold(f32::NAN, f32::min))
            .collect();
        let first = out.len();
        for (k, candidate) in candidates.enumerate() {
            if k == 0 {
                out.extend((0..self.inputs).map(|i| at(input, i)));
                out.extend(self.pairs.iter().map(|&(a, b)| ratio(at(input, a), at(input, b))));
            } else {
                // The input's share is the same in every row of the case.
                out.extend_from_within(first..first + self.inputs + self.pairs.len());
            }
            let own = &candidate.features;
            out.extend((0..self.candidates).map(|i| at(own, i)));
            out.extend(self.rounded.iter().map(|&i| ratio(at(own, i), at(own, i).ceil())));
            out.extend(self.compared.iter().zip(&smallest).map(|(&i, &least)| ratio(at(own, i), least)));
            out.extend(self.names.iter().map(|n| f32::from(u8::from(*n == candidate.variant))));
        }
    }
}

/// A ratio, missing where it is not finite.
fn ratio(a: f32, b: f32) -> f32 {
    let r = a / b;
    if r.is_finite() { r } else { f32::NAN }
}
