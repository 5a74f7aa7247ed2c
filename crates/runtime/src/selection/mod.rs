//! Choosing among the kernels of a computation: what campaigns learn of that, where it is kept, and how it ranks.

mod cases;
mod learn;
#[cfg(feature = "select")]
mod led;
mod store;
mod suited;

pub use cases::{Cases, cases};
pub use learn::{FLOOR, learn, learn_from};
pub(crate) use suited::{lead, leader};

pub use store::{SelectorHeader, SelectorStats, SelectorStore, StoredIncumbent, StoredSelector};

use tilewright_core::choice::SelectError;
use tilewright_core::decision::Selection;
use tilewright_core::id::{ComputationId, KernelId};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// What is wrong with a selector, or with what it says. Where a plan can still be made, its reason says this.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SelectionError {
    /// It ranks a kernel that is none of those it was asked about.
    #[error("selector: it ranks number {index} of {of} kernels, counted from 0: there is none, so it was left out")]
    UnknownVariant {
        /// What it named.
        index: usize,
        /// How many there are.
        of: usize,
    },
    /// It ranks a kernel twice.
    #[error("selector: it ranks {kernel} twice; the first place counts")]
    Twice {
        /// The kernel.
        kernel: KernelId,
    },
    /// It ranks none of the kernels.
    #[error("selector: it ranks none of {of} kernels, so all were tried")]
    Nothing {
        /// How many there are.
        of: usize,
    },
    /// A kernel that an answer was made with is not there any more.
    #[error("kernel: {kernel}, which the cached plan is of, is not there any more")]
    Gone {
        /// The kernel.
        kernel: KernelId,
    },
    /// A stored selector was learned by a method that this program does not have.
    #[error("selector: there is no method {method:?}: {known}")]
    UnknownMethod {
        /// The method.
        method: String,
        /// Those that there are.
        known: String,
    },
    /// It could not be learned.
    #[error("selector of {computation}: {source}")]
    Learn {
        /// The computation.
        computation: ComputationId,
        /// Why.
        source: SelectError,
    },
}

/// What ranks the kernels of a computation for an input.
pub enum Ranker<'a> {
    /// The caller's own, which sees features of the input and the kernels' names.
    Own(&'a dyn Selector),
    /// One that a campaign learned, and the checksum of its file.
    Stored(&'a StoredSelector, String),
    /// One that was learned from other devices.
    Transferred {
        /// It sees features of the input, and kernels by their names.
        selector: &'a dyn Selector,
        /// The kernels that it was learned on.
        variants: &'a [String],
        /// The inputs that it was learned on.
        inputs: u64,
    },
}

/// What a [`Ranker`] said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankedVariants {
    /// Indices of the kernels that it ranks, the best first.
    pub order: Vec<usize>,
    /// The share of the best performance that the first is expected to lose, where that is known.
    pub expected_loss: Option<f64>,
    /// What was wrong with its order.
    pub faults: Vec<SelectionError>,
}

impl Ranker<'_> {
    /// Ranks kernels for an input by its features. A learned selector ranks the kernels that it was learned on and no other.
    ///
    /// # Errors
    /// A stored selector that cannot be fitted again.
    pub fn rank(&self, features: &[f32], kernels: &[KernelId]) -> Result<RankedVariants, SelectionError> {
        let fitted;
        let (selector, known): (&dyn Selector, Vec<usize>) = match self {
            Self::Own(selector) => (*selector, (0..kernels.len()).collect()),
            Self::Stored(stored, _) => {
                fitted = stored.fit()?;
                let known = |at: &usize| stored.header.variants.contains(&kernels[*at]);
                (&*fitted, (0..kernels.len()).filter(known).collect())
            }
            Self::Transferred { selector, variants, .. } => {
                let known = |at: &usize| variants.iter().any(|v| *v == kernels[*at].to_string());
                (*selector, (0..kernels.len()).filter(known).collect())
            }
        };
        let candidate = |at: &usize| Candidate { variant: kernels[*at].to_string(), features: Vec::new() };
        let candidates: Vec<Candidate> = known.iter().map(candidate).collect();
        let (mut ranks, mut out) = (VariantOrder::new(), RankedVariants::default());
        if !candidates.is_empty() {
            selector.rank(features, &candidates, &mut ranks);
            out.expected_loss = selector.expected_loss(features, &candidates);
        }
        for index in ranks {
            match known.get(index) {
                None => out.faults.push(SelectionError::UnknownVariant { index, of: known.len() }),
                Some(at) if out.order.contains(at) => {
                    out.faults.push(SelectionError::Twice { kernel: kernels[*at].clone() });
                }
                Some(at) => out.order.push(*at),
            }
        }
        if out.order.is_empty() {
            out.faults.push(SelectionError::Nothing { of: kernels.len() });
        }
        Ok(out)
    }

    /// Fractions of the best that the selector reaches on the campaign's inputs by cross-validation: with the kernel in the lead that rates its
    /// default highest, and alone. None where alone is better, or nobody looked.
    pub fn led_worth(&self) -> Option<[f64; 2]> {
        let Self::Stored(stored, _) = self else { return None };
        let SelectorStats { fraction_of_oracle, suited, .. } = stored.header.stats;
        Some([suited?, fraction_of_oracle?]).filter(|[suited, learned]| suited >= learned)
    }

    /// The one of the kernels that it ranks which it leaves only where that is surely worth it, if any.
    pub fn incumbent(&self, ranked: &[KernelId]) -> Option<&StoredIncumbent> {
        let Self::Stored(stored, _) = self else { return None };
        stored.header.incumbent.as_ref().filter(|of| ranked.contains(&of.kernel))
    }

    /// What it is, with the kernels in an order that it gave, and what their first is expected to lose.
    pub fn said(&self, ranked: Vec<KernelId>, expected_loss: Option<f64>) -> Selection {
        let (method, inputs, fraction_of_oracle) = match self {
            Self::Own(_) => ("own".into(), 0, None),
            Self::Transferred { inputs, .. } => ("transfer".into(), *inputs, None),
            Self::Stored(stored, _) => {
                let SelectorHeader { method, stats, .. } = &stored.header;
                let fraction = self.incumbent(&ranked).map_or(stats.fraction_of_oracle, |of| of.fraction_of_oracle);
                (method.clone(), stats.inputs, fraction)
            }
        };
        Selection { method, inputs, fraction_of_oracle, ranked, expected_loss }
    }
}

#[cfg(test)]
mod tests;
