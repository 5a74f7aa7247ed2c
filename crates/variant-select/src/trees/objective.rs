//! What boosting minimises.

use serde::Serialize;
use std::ops::Range;

/// What the trees are trained on; costs are the log of the time relative to the best of the case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Objective {
    /// Squared error of the relative cost.
    Relative,
    /// Cross-entropy between the distributions that the measured and the predicted costs give at a temperature: only the
    /// order near the front counts, and by how much it matters.
    Listwise {
        /// Difference of log time that matters by a factor of e.
        temperature: f32,
    },
}

/// Cases and their targets.
pub(crate) struct Targets {
    /// Rows of each case.
    pub(crate) cases: Vec<Range<usize>>,
    /// Capped log of the cost over the best of the case, one a row.
    pub(crate) relative: Vec<f32>,
}

impl Objective {
    /// Writes the gradient and the curvature for each row of the given predictions.
    pub(crate) fn derivatives(self, targets: &Targets, predicted: &[f32], gradient: &mut [f32], curvature: &mut [f32]) {
        match self {
            Self::Relative => {
                for (i, (&y, &f)) in targets.relative.iter().zip(predicted).enumerate() {
                    (gradient[i], curvature[i]) = (f - y, 1.0);
                }
            }
            Self::Listwise { temperature } => {
                let (mut p, mut q) = (Vec::new(), Vec::new());
                for case in &targets.cases {
                    weights(&targets.relative[case.clone()], temperature, &mut p);
                    weights(&predicted[case.clone()], temperature, &mut q);
                    for (i, (&p, &q)) in case.clone().zip(p.iter().zip(&q)) {
                        gradient[i] = temperature * (p - q);
                        curvature[i] = (q * (1.0 - q)).max(1e-3);
                    }
                }
            }
        }
    }
}

/// Softmax of the negated costs.
fn weights(costs: &[f32], temperature: f32, out: &mut Vec<f32>) {
    let least = costs.iter().copied().fold(f32::INFINITY, f32::min);
    out.clear();
    out.extend(costs.iter().map(|c| ((least - c) / temperature).exp()));
    let sum: f32 = out.iter().sum();
    out.iter_mut().for_each(|w| *w /= sum);
}
