//! The legal points of a space as a set that can be asked: how many, which one, whether this one, what is next to it.
//!
//! A [`LegalSet`] is a decision diagram. Parameters that share no constraint stand side by side; within those that do,
//! prefixes are followed parameter by parameter, and prefixes that leave the same choice are one state: of the values
//! chosen so far only those parts of the constraints are kept that the parameters to come still need (`bx * tx` for
//! `bx * tx * by <= 1024`). The order of the parameters is chosen for few states. From the last parameter up, states with
//! equal choices become one node, and every arc learns how many points come before it. Ten thousand million points take
//! kilobytes, and a query is one look at each parameter.
//!
//! # Constraints without a value
//!
//! One rule holds for all constraints, wherever they are evaluated. Constraints are taken apart into parts of which all must
//! hold: what `and` joins, the links of a chained comparison, and what `not (.. or ..)` denies. A part is evaluated as
//! Python would, with its short circuits; it has no value where that divides by zero, leaves 64 bits or the finite floats,
//! or computes with words. A point is **illegal where a part is false, an error where no part is false and one has no value,
//! and else legal**. So the order of constraints and of parts says nothing, a false part excuses the errors of all others,
//! and errors excuse each other never. A description with a point that is an error is refused: the fault names a constraint
//! and the values of its parameters at one such point.
//!
//! The rule is decided exactly, for spaces of any size: prefixes on which a part has no value are followed as if it held, in
//! states of their own, and are an error if any of them gets through to the end (`layers`). Parts that are proven to have
//! a value everywhere cost nothing. Where following the others takes too many states, that is said
//! ([`LegalError::TooWide`]) and nothing is assumed. Kernels' rules ([`Description::lenient`]) take no value for false, and
//! closures always have one.

mod arena;
mod blocks;
mod build;
mod component;
mod conflict;
mod description;
mod diagram;
mod error;
mod intern;
mod lanes;
mod layers;
mod lower;
mod narrow;
mod near;
mod project;
mod set;
mod walk;

pub use conflict::Conflict;
pub use description::{Constraint, Description, FromVal};
pub use error::LegalError;
pub use near::Nearness;
pub use set::LegalSet;
pub use walk::{PointList, PointWalk};
