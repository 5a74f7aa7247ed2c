//! Any predictor of costs as a selector: regression by whatever model the caller has.

use crate::order::{RankScratch, by_score};
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::predictor::{Fit, RowPredictor};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};
use tilewright_core::training::TrainingSet;

/// Fits a predictor on the relative cost of every candidate: one row a candidate, the time over the best of its case.
pub struct ByPredictor<F> {
    /// What fits the predictor.
    pub fit: F,
    /// The name that errors carry.
    pub name: &'static str,
}

impl<F> FitSelector for ByPredictor<F>
where
    F: Fit + Send + Sync,
    F::Model: 'static,
{
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        let fault = |message: String| SelectError::Numeric { method: self.name, message };
        let mut set = TrainingSet::new(data.schema().clone());
        let mut row = Vec::new();
        for (group, case) in data.cases().iter().enumerate() {
            let Some(best) = case.best() else { continue };
            for t in &case.trials {
                row.clear();
                row.extend_from_slice(&case.features);
                row.extend_from_slice(&t.candidate.features);
                set.push(&row, t.relative_cost(best).exp(), group as u32).map_err(|e| fault(e.to_string()))?;
            }
        }
        if set.is_empty() {
            return Err(SelectError::NothingLegal);
        }
        let model = self.fit.fit(&set, seed).map_err(|e| fault(e.to_string()))?;
        Ok(Box::new(PredictorSelector { model, widths: (data.schema().input.len(), data.schema().config.len()) }))
    }
}

struct PredictorSelector<M> {
    model: M,
    widths: (usize, usize),
}

impl<M: RowPredictor> Selector for PredictorSelector<M> {
    fn rank(&self, input_and_device: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        let (inputs, own) = self.widths;
        let padded = |f: &[f32], n: usize, rows: &mut Vec<f32>| {
            rows.extend((0..n).map(|i| f.get(i).copied().unwrap_or(f32::NAN)));
        };
        RankScratch::with(|scratch| {
            scratch.rows.clear();
            scratch.scores.clear();
            for c in candidates {
                padded(input_and_device, inputs, &mut scratch.rows);
                padded(&c.features, own, &mut scratch.rows);
            }
            self.model.predict(&scratch.rows, &mut scratch.scores);
            by_score(&scratch.scores, out);
        });
    }
}
