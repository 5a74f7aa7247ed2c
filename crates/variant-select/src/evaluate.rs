//! Grouped cross-validation, and the choice among methods by it.

use crate::blend::Blend;
use crate::extra::ExtraTrees;
use crate::regression::Regression;
use crate::trees::BoostedTrees;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::metrics::ChoiceScores;
use tilewright_core::selector::Selector;
use tilewright_core::setting::SettingError;

/// Deals the cases to folds of about equal size, whole groups at a time. Where there are fewer groups than folds, there are
/// as many folds as groups.
///
/// # Errors
/// Fewer than two folds or groups.
pub fn folds(data: &ChoiceSet, folds: usize, seed: u64) -> Result<Vec<Vec<usize>>, SelectError> {
    let mut of_group: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (i, case) in data.cases().iter().enumerate() {
        of_group.entry(case.group).or_default().push(i);
    }
    let groups = of_group.len();
    if groups < 2 {
        return Err(SelectError::TooFew { what: "groups of cases", found: groups, needed: 2 });
    }
    SettingError::check("folds", folds, folds >= 2, "at least 2")?;
    let mut units: Vec<Vec<usize>> = of_group.into_values().collect();
    units.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    // The large ones first, so that the folds come out even.
    units.sort_by_key(|u| std::cmp::Reverse(u.len()));
    let mut out = vec![Vec::new(); folds.min(groups)];
    for unit in units {
        if let Some(smallest) = out.iter_mut().min_by_key(|f| f.len()) {
            smallest.extend(unit);
        }
    }
    Ok(out)
}

/// Scores of a method on cases that it was not fitted on.
///
/// # Errors
/// As [`folds`] and as the method's.
pub fn cross_validate(
    method: &dyn FitSelector,
    data: &ChoiceSet,
    count: usize,
    seed: u64,
) -> Result<ChoiceScores, SelectError> {
    let folds = folds(data, count, seed)?;
    let score = |held_out: &Vec<usize>| {
        let out: BTreeSet<usize> = held_out.iter().copied().collect();
        let rest: Vec<usize> = (0..data.len()).filter(|i| !out.contains(i)).collect();
        let selector = method.fit(&data.subset(&rest), seed)?;
        Ok(ChoiceScores::of(&*selector, &data.subset(held_out)))
    };
    let scores = folds.par_iter().map(score).collect::<Result<Vec<_>, SelectError>>()?;
    let scores: Vec<ChoiceScores> = scores.into_iter().flatten().collect();
    ChoiceScores::mean(&scores).ok_or(SelectError::NothingLegal)
}

/// At most `most` of `n` indices, evenly spread.
pub(crate) fn spread(n: usize, most: usize) -> Vec<usize> {
    let kept = n.min(most.max(1));
    (0..kept).map(|i| i * n / kept).collect()
}

/// Most cases that methods are compared on: which is better shows on some already.
const COMPARED: usize = 1200;

/// Chooses among methods by cross-validation on the training cases.
pub struct Auto {
    /// Methods by name.
    pub methods: Vec<(String, Box<dyn FitSelector>)>,
    /// Folds of the cross-validation.
    pub folds: usize,
}

impl Auto {
    /// What the project recommends: boosted trees, a blend of them with the cost forest and the Gaussian process, extremely randomised
    /// trees and regression, by three folds.
    pub fn recommended() -> Self {
        let methods: Vec<(String, Box<dyn FitSelector>)> = vec![
            ("trees".into(), Box::new(BoostedTrees::default())),
            ("blend".into(), Box::new(Blend::default())),
            ("extra-trees".into(), Box::new(ExtraTrees::default())),
            ("regression".into(), Box::new(Regression::default())),
        ];
        Self { methods, folds: 3 }
    }

    /// The fitted method with the best mean fraction of the oracle on unseen groups, and its name. A single method is
    /// not cross-validated; a method that cannot be fitted loses.
    ///
    /// # Errors
    /// No method could be fitted: the last one's error.
    pub fn choose(&self, data: &ChoiceSet, seed: u64) -> Result<(String, Box<dyn Selector>), SelectError> {
        let mut last = SelectError::TooFew { what: "methods", found: 0, needed: 1 };
        let mut scored: Vec<(f64, usize)> = Vec::new();
        let some = data.subset(&spread(data.len(), COMPARED));
        for (i, (_, method)) in self.methods.iter().enumerate() {
            let score = || Ok(cross_validate(&**method, &some, self.folds, seed)?.fraction_of_oracle);
            match if self.methods.len() == 1 { Ok(0.0) } else { score() } {
                Ok(score) => scored.push((score, i)),
                Err(error) => last = error,
            }
        }
        // Too little for a cross-validation is no reason to refuse a fit: then the first method that can.
        if scored.is_empty() {
            scored = (0..self.methods.len()).map(|i| (0.0, i)).collect();
        }
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (_, i) in scored {
            let (name, method) = &self.methods[i];
            match method.fit(data, seed) {
                Ok(selector) => return Ok((name.clone(), selector)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl FitSelector for Auto {
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        self.choose(data, seed).map(|(_, selector)| selector)
    }
}
