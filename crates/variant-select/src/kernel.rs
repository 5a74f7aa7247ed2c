//! Ridge regression with a Gaussian kernel on what every variant loses: smooth where trees have steps.

use crate::classes::Classes;
use crate::encode::{Encoding, FeatureMap};
use crate::evaluate::{folds, spread};
use crate::linear::Cholesky;
use rayon::prelude::*;
use std::collections::BTreeSet;
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// Fits the share of the best performance that each variant loses, as a smooth function of the standardised features and of
/// their ratios. Width and penalty are those with the best choices in a grouped cross-validation.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelRidge {
    /// Widths of the kernel to choose from, in standard deviations of a feature.
    pub widths: Vec<f64>,
    /// Penalties to choose from: how much of a case's loss is taken for chance, relative to the kernel's value at 0.
    pub penalties: Vec<f64>,
    /// Most ratios of sizes that become features.
    pub ratios: usize,
    /// Most variants, those that win most often.
    pub classes: usize,
    /// Most cases to fit on, evenly spread: the time grows with their third power.
    pub cases: usize,
    /// Folds of the cross-validation.
    pub folds: usize,
}

impl Default for KernelRidge {
    fn default() -> Self {
        Self {
            widths: vec![0.3, 0.6, 1.2],
            penalties: vec![0.02, 0.1, 0.5],
            ratios: 45,
            classes: 16,
            cases: 1500,
            folds: 3,
        }
    }
}

/// Most cases that settings are compared on.
const COMPARED: usize = 600;

/// Encoded cases with what every class loses in them.
struct Cases {
    width: usize,
    rows: Vec<f32>,
    /// One row a case, one number a class.
    losses: Vec<f64>,
    means: Vec<f64>,
}

impl KernelRidge {
    fn check(&self) -> Result<(), SelectError> {
        let positive = |field, values: &[f64]| match values.iter().find(|v| !(v.is_finite() && **v > 0.0)) {
            Some(bad) => Err(SelectError::Setting { field, value: bad.to_string(), limit: "positive" }),
            None if values.is_empty() => {
                Err(SelectError::Setting { field, value: "none".into(), limit: "at least one" })
            }
            None => Ok(()),
        };
        positive("widths", &self.widths)?;
        positive("penalties", &self.penalties)?;
        let least = |field, value: usize| match value {
            0 => Err(SelectError::Setting { field, value: "0".into(), limit: "at least 1" }),
            _ => Ok(()),
        };
        least("classes", self.classes)?;
        least("cases", self.cases)
    }

    fn settings(&self) -> impl Iterator<Item = (f64, f64)> {
        self.widths.iter().flat_map(|&w| self.penalties.iter().map(move |&p| (w, p)))
    }

    /// Fits, and keeps the concrete type.
    ///
    /// # Errors
    /// A setting out of range, no case with a variant that ran, no feature that varies.
    pub(crate) fn fit_kernel(&self, data: &ChoiceSet, seed: u64) -> Result<KernelSelector, SelectError> {
        self.check()?;
        let classes = Classes::winners(data, self.classes)?;
        let encoding = Encoding::fit_with(data, FeatureMap::Linear, self.ratios)?;
        let (width, penalty) = self.best(data, &classes, &encoding, seed);
        let some = data.subset(&spread(data.len(), self.cases));
        let cases = Cases::of(&some, &classes, &encoding);
        let weights = cases.solve(width, penalty).ok_or_else(|| SelectError::Numeric {
            method: "kernel",
            message: "the kernel's matrix is not positive definite".into(),
        })?;
        let Cases { width: columns, rows, means, .. } = cases;
        let means = means.into_iter().map(|m| m as f32).collect();
        Ok(KernelSelector { classes, encoding, columns, rows, weights, means, scale: scale(width, columns) })
    }

    /// The settings with the least loss of choices on unseen groups; the first where there are too few groups.
    fn best(&self, data: &ChoiceSet, classes: &Classes, encoding: &Encoding, seed: u64) -> (f64, f64) {
        let all: Vec<(f64, f64)> = self.settings().collect();
        let some = data.subset(&spread(data.len(), COMPARED));
        let dealt = folds(&some, self.folds, seed).unwrap_or_default();
        if all.len() < 2 || dealt.is_empty() {
            return all[0];
        }
        let parts: Vec<(Cases, Cases)> = dealt
            .iter()
            .map(|held_out| {
                let out: BTreeSet<usize> = held_out.iter().copied().collect();
                let rest: Vec<usize> = (0..some.len()).filter(|i| !out.contains(i)).collect();
                let of = |rows: &[usize]| Cases::of(&some.subset(rows), classes, encoding);
                (of(&rest), of(held_out))
            })
            .collect();
        let loss = |&(width, penalty): &(f64, f64)| {
            parts.iter().map(|(train, test)| train.loss(test, width, penalty)).sum::<f64>()
        };
        let losses: Vec<f64> = all.par_iter().map(loss).collect();
        let best = (0..all.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b]));
        all[best.unwrap_or(0)]
    }
}

/// What squared distances are multiplied by: the width is that of one feature, so distances are their mean.
fn scale(width: f64, columns: usize) -> f32 {
    (-0.5 / (width * width * columns.max(1) as f64)) as f32
}

impl Cases {
    fn of(data: &ChoiceSet, classes: &Classes, encoding: &Encoding) -> Self {
        let n = classes.len();
        let (mut rows, mut losses, mut row) = (Vec::new(), Vec::new(), Vec::new());
        for case in data.cases() {
            let mut of_case = vec![f64::NAN; n];
            if classes.relative_costs(case, |class, log| of_case[class] = 1.0 - (-log).exp()).is_some() {
                encoding.encode(&case.features, &mut row);
                rows.extend_from_slice(&row[1..]);
                losses.extend(of_case);
            }
        }
        let known = |class: usize| losses.iter().skip(class).step_by(n).copied().filter(|l| !l.is_nan());
        let mean = |class| known(class).sum::<f64>() / known(class).count().max(1) as f64;
        let means: Vec<f64> = (0..n).map(mean).collect();
        // A class that was not tried loses what it loses on average.
        losses.iter_mut().enumerate().filter(|(_, l)| l.is_nan()).for_each(|(i, l)| *l = means[i % n]);
        Self { width: encoding.width() - 1, rows, losses, means }
    }

    fn row(&self, i: usize) -> &[f32] {
        &self.rows[i * self.width..(i + 1) * self.width]
    }

    fn len(&self) -> usize {
        self.rows.len() / self.width
    }

    /// One row a case, one weight a class.
    fn solve(&self, width: f64, penalty: f64) -> Option<Vec<f32>> {
        let (n, classes) = (self.len(), self.means.len());
        let by = scale(width, self.width);
        let lower: Vec<Vec<f64>> = (0..n)
            .into_par_iter()
            .map(|i| {
                let mut row: Vec<f64> = (0..=i).map(|j| f64::from(near(self.row(i), self.row(j), by))).collect();
                row[i] += penalty;
                row
            })
            .collect();
        let factor = Cholesky::of(lower)?;
        let mut weights = vec![0.0f32; n * classes];
        for class in 0..classes {
            let of_class = self.losses.iter().skip(class).step_by(classes);
            let mut x: Vec<f64> = of_class.map(|l| l - self.means[class]).collect();
            factor.solve(&mut x);
            weights.iter_mut().skip(class).step_by(classes).zip(&x).for_each(|(w, &x)| *w = x as f32);
        }
        weights.iter().all(|w| w.is_finite()).then_some(weights)
    }

    /// What the choices for other cases lose in all; infinite where nothing can be solved.
    fn loss(&self, other: &Self, width: f64, penalty: f64) -> f64 {
        let Some(weights) = self.solve(width, penalty) else { return f64::INFINITY };
        let classes = self.means.len();
        let means: Vec<f32> = self.means.iter().map(|&m| m as f32).collect();
        let by = scale(width, self.width);
        let mut scores = vec![0.0; classes];
        let of_case = |i: usize| {
            scores.copy_from_slice(&means);
            add(other.row(i), &self.rows, &weights, by, &mut scores);
            let chosen = (0..classes).min_by(|&a, &b| scores[a].total_cmp(&scores[b]));
            other.losses[i * classes + chosen.unwrap_or(0)]
        };
        (0..other.len()).map(of_case).sum()
    }
}

fn near(a: &[f32], b: &[f32], by: f32) -> f32 {
    let square: f32 = a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum();
    (by * square).exp()
}

fn add(row: &[f32], rows: &[f32], weights: &[f32], by: f32, scores: &mut [f32]) {
    for (other, weights) in rows.chunks_exact(row.len()).zip(weights.chunks_exact(scores.len())) {
        let near = near(row, other, by);
        scores.iter_mut().zip(weights).for_each(|(s, w)| *s += near * w);
    }
}

impl FitSelector for KernelRidge {
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        Ok(Box::new(self.fit_kernel(data, seed)?))
    }
}

/// A fitted regression.
pub(crate) struct KernelSelector {
    classes: Classes,
    encoding: Encoding,
    columns: usize,
    rows: Vec<f32>,
    weights: Vec<f32>,
    means: Vec<f32>,
    scale: f32,
}

impl KernelSelector {
    fn add(&self, input: &[f32], row: &mut Vec<f32>, scores: &mut [f32]) {
        self.encoding.encode(input, row);
        scores.copy_from_slice(&self.means);
        add(&row[1..=self.columns], &self.rows, &self.weights, self.scale, scores);
    }

    /// Expected loss of every candidate; none where one is no class.
    pub(crate) fn losses(&self, input: &[f32], candidates: &[Candidate]) -> Option<Vec<f32>> {
        let classes: Vec<usize> = candidates.iter().map(|c| self.classes.class(c)).collect::<Option<_>>()?;
        let mut scores = vec![0.0; self.classes.len()];
        self.add(input, &mut Vec::new(), &mut scores);
        Some(classes.into_iter().map(|c| scores[c]).collect())
    }
}

impl Selector for KernelSelector {
    fn rank(&self, input_and_device: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        self.classes.rank(candidates, out, |row, scores| self.add(input_and_device, row, scores));
    }
}
