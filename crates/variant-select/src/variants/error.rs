//! What can be wrong with a set of variants or a call.

use tilewright_core::choice::{ChoiceError, SelectError};

/// A set that makes no sense, a record that is refused, a call without an answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum VariantError {
    /// A set without variants.
    #[error("{set}: no variants")]
    Empty {
        /// The set.
        set: String,
    },
    /// Two variants or two features of one name.
    #[error("{name:?} is named twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// A name that is no variant.
    #[error("{name:?} is no variant")]
    Unknown {
        /// The name.
        name: String,
    },
    /// A set that does not say what runs before anything is tuned.
    #[error("{set}: no default variant; name one that is legal for every input, or waive it by without_default")]
    NoDefault {
        /// The set.
        set: String,
    },
    /// A default that is not always legal.
    #[error("{name:?} is the default and may not have a constraint")]
    ConstrainedDefault {
        /// The variant.
        name: String,
    },
    /// No variant is legal for the input, or none has a time.
    #[error("{set}: no variant is legal for this input: {reasons}")]
    NothingLegal {
        /// The set.
        set: String,
        /// The constraints that do not hold.
        reasons: String,
    },
    /// A record that cannot be learned from.
    #[error(transparent)]
    Record(#[from] ChoiceError),
    /// A selector that could not be fitted.
    #[error(transparent)]
    Select(#[from] SelectError),
}
