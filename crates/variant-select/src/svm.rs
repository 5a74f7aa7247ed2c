//! Support vectors (Vuduc, section 4.3): linfa's binary machine, one against one, with an RBF kernel.

use crate::classes::{ClassSelector, Classes};
use crate::encode::{Encoding, FeatureMap};
use crate::evaluate::{cross_validate, spread};
use linfa::dataset::Dataset;
use linfa::traits::Fit;
use linfa_svm::Svm as Binary;
use ndarray::{Array1, Array2};
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::selector::Selector;
use tilewright_core::setting::SettingError;

/// Fits a machine for each pair of classes; the most votes win.
///
/// Width and C are chosen by grouped cross-validation, by what the choices cost; features are standardised. Where
/// more than [`Svm::classes`] variants win somewhere, the most frequent winners are told apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Svm {
    /// Widths of the kernel to try, relative to the number of features: `exp(-|x - y|^2 / (width * features))`.
    pub widths: Vec<f64>,
    /// Penalties to try.
    pub penalties: Vec<f64>,
    /// Most classes.
    pub classes: usize,
    /// Most cases that width and C are chosen on, and that a pair of classes is trained on.
    pub cases: usize,
    /// Folds of the cross-validation.
    pub folds: usize,
}

impl Default for Svm {
    fn default() -> Self {
        Self { widths: vec![0.5, 2.0, 8.0], penalties: vec![1.0, 10.0, 100.0], classes: 10, cases: 600, folds: 3 }
    }
}

/// One setting of the kernel.
struct Fixed<'a> {
    svm: &'a Svm,
    width: f64,
    penalty: f64,
}

impl FitSelector for Svm {
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        for (field, values) in [("widths", &self.widths), ("penalties", &self.penalties)] {
            let good = !values.is_empty() && values.iter().all(|v| v.is_finite() && *v > 0.0);
            SettingError::check(field, format!("{values:?}"), good, "one value or more, positive and finite")?;
        }
        let pairs = self.widths.iter().flat_map(|&w| self.penalties.iter().map(move |&c| (w, c)));
        let settings: Vec<Fixed<'_>> = pairs.map(|(width, penalty)| Fixed { svm: self, width, penalty }).collect();
        let some = data.subset(&spread(data.len(), self.cases));
        let mut best: Option<(f64, usize)> = None;
        if settings.len() > 1 {
            for (i, setting) in settings.iter().enumerate() {
                // Too few groups to validate: the first setting, as if it were the only one.
                let Ok(scores) = cross_validate(setting, &some, self.folds, seed) else { continue };
                if best.is_none_or(|(score, _)| scores.fraction_of_oracle > score) {
                    best = Some((scores.fraction_of_oracle, i));
                }
            }
        }
        settings[best.map_or(0, |(_, i)| i)].fit(data, seed)
    }
}

impl FitSelector for Fixed<'_> {
    fn fit(&self, data: &ChoiceSet, _seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        let classes = Classes::winners(data, self.svm.classes)?;
        let encoding = Encoding::fit(data, FeatureMap::Linear)?;
        let mut members: Vec<Vec<Vec<f64>>> = vec![Vec::new(); classes.len()];
        let mut row = Vec::new();
        for case in data.cases() {
            // The label is the best of the classes; a case in which none of them ran teaches nothing.
            let mut label: Option<(usize, f64)> = None;
            classes.costs(case, |class, cost| {
                if label.is_none_or(|(_, least)| cost < least) {
                    label = Some((class, cost));
                }
            });
            if let Some((class, _)) = label {
                encoding.encode(&case.features, &mut row);
                members[class].push(row[1..].iter().map(|&x| f64::from(x)).collect());
            }
        }
        let mut pairs = Vec::new();
        for a in 0..classes.len() {
            for b in 0..a {
                if let Some(machine) = self.pair(&members[a], &members[b])? {
                    pairs.push((a, b, machine));
                }
            }
        }
        // Share of the training cases that a class won: breaks ties, and stands for pairs without a machine.
        let prior: Vec<f32> = members.iter().map(|m| m.len() as f32 / data.len() as f32).collect();
        Ok(Box::new(ClassSelector::new(classes, move |input, row, scores| {
            encoding.encode(input, row);
            let x: Array1<f64> = row[1..].iter().map(|&x| f64::from(x)).collect();
            scores.iter_mut().zip(&prior).for_each(|(score, prior)| *score = -0.5 * prior);
            for (a, b, machine) in &pairs {
                // The machine says yes to the first class of its pair, no to the second.
                let yes = machine.weighted_sum(&x) - machine.rho >= 0.0;
                scores[if yes { *a } else { *b }] -= 1.0;
            }
        })))
    }
}

impl Fixed<'_> {
    /// The machine that tells two classes apart; none where one has no example.
    fn pair(&self, yes: &[Vec<f64>], no: &[Vec<f64>]) -> Result<Option<Binary<f64, bool>>, SelectError> {
        if yes.is_empty() || no.is_empty() {
            return Ok(None);
        }
        let half = (self.svm.cases / 2).max(1);
        let (yes_kept, no_kept) = (spread(yes.len(), half), spread(no.len(), half));
        let examples: Vec<&Vec<f64>> =
            yes_kept.iter().map(|&i| &yes[i]).chain(no_kept.iter().map(|&i| &no[i])).collect();
        let width = examples[0].len();
        let rows = Array2::from_shape_fn((examples.len(), width), |(i, j)| examples[i][j]);
        let labels: Array1<bool> = (0..examples.len()).map(|i| i < yes_kept.len()).collect();
        let machine = Binary::<f64, bool>::params()
            .eps(1e-3)
            .gaussian_kernel(self.width * width as f64)
            .pos_neg_weights(self.penalty, self.penalty)
            .fit(&Dataset::new(rows, labels));
        let fault = |message: String| SelectError::Numeric { method: "svm", message };
        machine.map(Some).map_err(|e| fault(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_takes_each_index_once() {
        assert_eq!(spread(3, 10), [0, 1, 2]);
        assert_eq!(spread(10, 5), [0, 2, 4, 6, 8]);
        assert!(spread(0, 5).is_empty());
    }
}
