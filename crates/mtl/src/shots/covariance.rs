//! How alike what two variants cost on two inputs is.

use super::Differences;
use crate::experts::Expected;
use crate::sources::{Source, Sources};
use rayon::prelude::*;
use tilewright_core::choice::ChoiceSet;
use tilewright_core::feature::FeatureKind;
use tilewright_core::selector::Candidate;
use tilewright_variant_select::process::CostProcess;

/// The share of the reach over which what the experts expect must be alike.
const LIKENESS: f64 = 0.5;

/// By how much the costs of one input may be off together: only their differences are known.
const OFFSET: f64 = 1.0;

/// The standard deviation of the shift of a variant that no source has.
const UNKNOWN: f64 = 0.5;

/// A variant on an input.
#[derive(Clone, Debug)]
pub(super) struct Point {
    shot: Option<usize>,
    variant: Box<str>,
    /// Whether any source has it.
    known: bool,
    /// Features in units of their spread.
    place: Vec<f64>,
    /// By how much each expert differs from their mean.
    apart: Vec<f64>,
    /// What each expects.
    expected: Vec<f64>,
}

/// Units of features, and standard deviations.
#[derive(Clone, Debug)]
pub(super) struct Covariance {
    differences: Differences,
    /// Mean, reciprocal spread, and whether the logarithm is meant.
    features: Vec<(f64, f64, bool)>,
    varying: f64,
    experts: usize,
}

/// How much each feature of the input counts in how alike two inputs are: the square root of its weight in a Gaussian process of what
/// every variant costs on a source, as a geometric mean over the sources. The root stands for that a weight which one device teaches
/// is right of another in part only.
pub fn likeness(sources: &Sources) -> Vec<f64> {
    const LEAST: f64 = 1e-3;
    let process = CostProcess::default();
    let of_source = |source: &Source| process.weights(&source.cases).ok();
    let all: Vec<Vec<f64>> = sources.all().par_iter().filter_map(of_source).collect();
    let width = all.first().map_or(0, Vec::len);
    let mean = |f: usize| all.iter().map(|weights| weights[f].max(LEAST).ln()).sum::<f64>() / all.len() as f64;
    (0..width).map(|f| (0.5 * mean(f)).exp()).collect()
}

fn number(value: f32, size: bool) -> f64 {
    let value = f64::from(value);
    if size { value.abs().ln_1p().copysign(value) } else { value }
}

impl Covariance {
    pub(super) fn new(differences: Differences, (like, weights): (&ChoiceSet, &[f64]), experts: usize) -> Self {
        let feature = |(f, kind): (usize, FeatureKind)| {
            let size = kind == FeatureKind::Size;
            let all: Vec<f64> =
                like.cases().iter().map(|c| number(c.features[f], size)).filter(|v| v.is_finite()).collect();
            let n = all.len().max(1) as f64;
            let mean = all.iter().sum::<f64>() / n;
            let spread = (all.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
            (mean, if spread > 1e-9 { spread.recip() } else { 0.0 }, size)
        };
        let mut features: Vec<_> = like.schema().input.iter().map(|f| f.kind).enumerate().map(feature).collect();
        let varying = features.iter().filter(|f| f.1 > 0.0).count().max(1) as f64;
        for (feature, weight) in features.iter_mut().zip(weights) {
            feature.1 *= weight;
        }
        Self { differences, features, varying, experts: experts.max(1) }
    }

    /// Features of an input in units of their spread; what is missing is average.
    pub(super) fn place(&self, input: &[f32]) -> Vec<f64> {
        let scaled = |(&(mean, per, size), &value): (&(f64, f64, bool), &f32)| {
            let scaled = (number(value, size) - mean) * per;
            if scaled.is_finite() { scaled } else { 0.0 }
        };
        self.features.iter().zip(input).map(scaled).collect()
    }

    /// A candidate of an input, of which the experts expect this.
    pub(super) fn point(
        &self,
        input: &[f32],
        candidate: &Candidate,
        (expected, at): (&Expected, usize),
        shot: Option<usize>,
    ) -> Point {
        let apart = expected.apart.chunks_exact(self.experts).nth(at).unwrap_or_default();
        Point {
            shot,
            variant: candidate.variant.as_str().into(),
            known: expected.known[at],
            place: self.place(input),
            apart: apart.to_vec(),
            expected: apart.iter().map(|a| a + expected.mean[at]).collect(),
        }
    }

    /// How alike inputs at two places are, from 0 to 1: Matern's covariance of smoothness 3/2.
    pub(super) fn near(&self, a: &[f64], b: &[f64]) -> f64 {
        matern(a, b, self.differences.reach * self.varying.sqrt())
    }

    /// The variance of one variant's difference on an input.
    pub(super) fn of_variant(&self, near: f64) -> f64 {
        self.differences.shift.powi(2) + self.differences.local.powi(2) * near
    }

    pub(super) fn noise(&self) -> f64 {
        self.differences.noise.powi(2)
    }

    pub(super) fn between(&self, a: &Point, b: &Point) -> f64 {
        let shared: f64 = a.apart.iter().zip(&b.apart).map(|(a, b)| a * b).sum();
        let mut sum = self.differences.weight.powi(2) * shared / self.experts as f64;
        if a.variant == b.variant {
            let alike = matern(&a.expected, &b.expected, LIKENESS * (self.experts as f64).sqrt());
            sum += self.of_variant(self.near(&a.place, &b.place) * alike);
            sum += if a.known { 0.0 } else { UNKNOWN * UNKNOWN };
        }
        if a.shot.is_some() && a.shot == b.shot {
            sum += OFFSET;
        }
        sum
    }
}

fn matern(a: &[f64], b: &[f64], reach: f64) -> f64 {
    let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    let far = (3.0 * square).sqrt() / reach;
    (1.0 + far) * (-far).exp()
}
