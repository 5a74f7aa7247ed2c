//! What a suite reports when an implementation breaks its contract.

use std::fmt;

/// One broken promise: which suite, which check, and the numbers that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The suite, named after the trait.
    pub suite: &'static str,
    /// The check within the suite; stable, so that a test can ask for it.
    pub check: &'static str,
    /// What was expected and what was found.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} suite, check {:?}: {}", self.suite, self.check, self.message)
    }
}

impl std::error::Error for Violation {}

/// What a suite returns.
pub type Conformity = Result<(), Violation>;

/// Returns a [`Violation`] of the named check unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $check:literal, $($message:tt)+) => {
        let holds: bool = $condition;
        if !holds {
            return Err($crate::violation::Violation { suite: SUITE, check: $check, message: format!($($message)+) });
        }
    };
}

pub(crate) use ensure;
