//! The legal points of a space as a set that can be asked: how many, which one, whether this one, what is next to it.
//!
//! A [`LegalSet`] is a decision diagram. Parameters that share no constraint stand side by side; within those that do,
//! prefixes are followed parameter by parameter, and prefixes that leave the same choice are one state: of the values
//! chosen so far only those parts of the constraints are kept that the parameters to come still need (`bx * tx` for
//! `bx * tx * by <= 1024`). The order of the parameters is chosen for few states. From the last parameter up, states with
//! equal choices become one node, and every arc learns how many points come before it. Ten thousand million points take
//! kilobytes, and a query is one look at each parameter.

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
