//! How much better choices become by each input that is timed on the target.

use super::{Adapted, Differences, Pool};
use crate::confidence::{Confidence, ConfidenceScores};
use crate::error::MtlError;
use crate::experts::Experts;
use serde::Serialize;
use tilewright_core::choice::{Case, ChoiceSet};
use tilewright_core::metrics::ChoiceScores;

/// What so many shots gave. Log costs are natural, and relative to the best of an input.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ShotScores {
    /// How many inputs of the target were asked for.
    pub shots: usize,
    /// How many were timed: there may be fewer.
    pub timed: usize,
    /// Choices on held-out inputs.
    #[serde(flatten)]
    pub scores: ChoiceScores,
    /// How well the selector knows what its choices lose; none where nothing was rehearsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<ConfidenceScores>,
    /// What choices are expected to lose: the mean over the inputs that could be timed of how much better the others may be.
    pub expected_loss: f64,
    /// By how much timing one more is expected to lessen that; 0 where there is none left.
    pub next_saves: f64,
}

impl ShotScores {
    /// The mean over splits.
    pub(crate) fn mean(splits: &[Self]) -> Option<Self> {
        let mean = |of: fn(&Self) -> f64| splits.iter().map(of).sum::<f64>() / splits.len() as f64;
        let scores: Vec<ChoiceScores> = splits.iter().map(|s| s.scores).collect();
        Some(Self {
            shots: splits.first()?.shots,
            timed: splits.iter().map(|s| s.timed).min()?,
            scores: ChoiceScores::mean(&scores)?,
            confidence: ConfidenceScores::mean(&splits.iter().filter_map(|s| s.confidence).collect::<Vec<_>>()),
            expected_loss: mean(|s| s.expected_loss),
            next_saves: mean(|s| s.next_saves),
        })
    }
}

/// Judges choices after each of these numbers of shots, ascending, taken from the target's own cases, the most informative first. Where
/// nothing of what is held out ran, there is nothing to say.
///
/// # Errors
/// As [`Adapted::learn`]'s.
pub(crate) fn curve(
    (experts, confidence): (Experts, Option<Confidence>),
    like: (&ChoiceSet, &[f64]),
    own: &ChoiceSet,
    held_out: &ChoiceSet,
    counts: &[usize],
) -> Result<Vec<ShotScores>, MtlError> {
    let mut adapted = Adapted::new(experts, Differences::default(), like).with_confidence(confidence);
    // An input on which nothing runs tells nothing, and nobody who times it learns more.
    let ran: Vec<usize> = (0..own.len()).filter(|&i| own.cases()[i].best().is_some()).collect();
    let own = own.subset(&ran);
    let mut pool = Pool::new(&adapted, &own);
    let (mut taken, mut out) = (Vec::<usize>::new(), Vec::new());
    for &shots in counts {
        let mut next = pool.next(&adapted, &taken);
        while let Some(worth) = next.filter(|_| taken.len() < shots) {
            pool.take(&adapted, worth.case);
            taken.push(worth.case);
            let cases: Vec<Case> = taken.iter().map(|&i| own.cases()[i].clone()).collect();
            adapted.learn(&cases)?;
            next = pool.next(&adapted, &taken);
        }
        let Some(scores) = ChoiceScores::of(&adapted, held_out) else { return Ok(Vec::new()) };
        let confidence = ConfidenceScores::of(&adapted, held_out);
        let (expected_loss, next_saves) = next.map_or((0.0, 0.0), |worth| (worth.expected_loss, worth.saved));
        out.push(ShotScores { shots, timed: taken.len(), scores, confidence, expected_loss, next_saves });
    }
    Ok(out)
}
