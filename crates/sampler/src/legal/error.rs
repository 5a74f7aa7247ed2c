//! What is wrong with a space.

use tilewright_core::expr::{ParseError, brief};
use tilewright_core::space::{Config, SpaceError};

/// Why a space cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LegalError {
    /// Parameters, rules or points that core refuses.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// A constraint that does not parse.
    #[error("constraint {:?}: {error}", brief(constraint))]
    Parse {
        /// The constraint.
        constraint: String,
        /// Position and expectation.
        error: ParseError,
    },
    /// A constraint on something that is no parameter.
    #[error("constraint {:?} mentions {:?}, which is no parameter: {known}", brief(constraint), brief(name))]
    UnknownName {
        /// The constraint.
        constraint: String,
        /// The name.
        name: String,
        /// The parameters there are.
        known: String,
    },
    /// A constraint without a value at a point where nothing is false, as [`LegalSet`](super::LegalSet) says.
    #[error("constraint {:?} has no value at {at}: {error}", brief(constraint))]
    Undefined {
        /// The constraint.
        constraint: String,
        /// The values of its parameters.
        at: Config,
        /// Division by zero, or another fault of arithmetic.
        error: tilewright_core::expr::EvalError,
    },
    /// More than 2^64 - 1 legal points.
    #[error("the space has more than 2^64 legal points")]
    TooMany,
    /// More states than memory is given to.
    #[error("the constraints leave more than {limit} different states: too entangled to count")]
    TooWide {
        /// The most that are kept.
        limit: usize,
    },
    /// More parameters linked by constraints than are followed together.
    #[error("{found} parameters are linked by constraints; at most {limit} are followed together")]
    TooManyLinked {
        /// Linked parameters.
        found: usize,
        /// The most there may be.
        limit: usize,
    },
    /// A part of a constraint that the states do not hold: a fault of this crate.
    #[error("a constraint could not be ordered")]
    Order,
    /// A closure where an expression is needed.
    #[error("constraint {:?} is a closure and no expression", brief(.0))]
    Closure(String),
}
