//! Legal configurations of a parameter space, drawn at random.
//!
//! Four ways behind one trait, [`Sampler`]:
//! - [`Uniform`]: every parameter uniform and independent, illegal points rejected. Exact, and hopeless where legal
//!   points are rare;
//! - [`Categorical`]: the generative model of ISAAC (SC17, section 4.1). Every parameter has a categorical distribution
//!   of its own, independent of the others, learnt from what was accepted, over a Dirichlet prior;
//! - [`Chained`]: ours. The same learnt distributions, but each parameter is drawn only among the values for which the
//!   rules decided so far hold, so that few draws are wasted even where parameters depend on each other;
//! - [`Exact`]: ours. Legal points are counted and drawn by number: what uniform sampling gives, without rejection.
//!
//! Candidates are drawn from the *possible* configurations (ISAAC, section 4): values that a rule excludes for this
//! device and input whatever the other parameters are ([`BoundSpace::domains`]) are left out.
//!
//! ```
//! use rand::SeedableRng;
//! use tilewright_core::space::{Param, ParamSpace, RuleGroup, Symbols};
//! use tilewright_sampler::{Categorical, Sampler, Settings};
//!
//! let space = ParamSpace::builder()
//!     .param(Param::ints("m_s", [1, 2, 4, 8]))
//!     .param(Param::ints("n_s", [1, 2, 4, 8]))
//!     .rule("registers", RuleGroup::Hardware, "m_s * n_s <= registers", "accumulators live in registers")
//!     .build()?;
//! let bound = space.bind(&Symbols::new().with("registers", 16))?;
//! let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
//! let mut sampler = Categorical::new(&space, Settings::default());
//! let draw = sampler.draw(&bound, &mut rng)?;
//! assert!(bound.is_legal(&draw.point));
//! assert_eq!(sampler.acceptance().accepted, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acceptance;
pub mod bacugen;
mod counts;
mod exact;
mod judge;
mod legal;
mod model;
mod t1;
mod uniform;

pub use acceptance::Acceptance;
pub use counts::Counts;
pub use exact::Exact;
pub use judge::{Distance, Judged, judge};
pub use legal::{Conflict, Constraint, Description, FromVal, LegalError, LegalSet, Nearness, PointList, PointWalk};
pub use model::{Categorical, Chained, Generative, Settings};
pub use t1::T1Error;
pub use uniform::Uniform;

use rand::RngCore;
use tilewright_core::space::{BoundSpace, Point};

/// A legal point, and what it cost to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The point, legal in the space that it was drawn from.
    pub point: Point,
    /// Candidates drawn for it, itself included.
    pub attempts: u64,
}

/// Why nothing was drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DrawError {
    /// The attempts were used up.
    #[error(
        "none of {attempts} candidates, of {cartesian} in the space, was legal; the space may be empty{}",
        .rule.as_ref().map_or_else(String::new, |r| format!(" (rule {r:?} rejected most)"))
    )]
    Exhausted {
        /// How many were drawn.
        attempts: u64,
        /// Points of the space, legal or not.
        cartesian: u128,
        /// The rule that rejected most of them.
        rule: Option<String>,
    },
    /// The legal points cannot be counted.
    #[error("the legal points cannot be counted: {0}")]
    Uncounted(String),
    /// The sampler learns about another kernel's parameters.
    #[error("the sampler was made for the parameters {expected}; this space has {found}")]
    OtherSpace {
        /// Names and numbers of values that the sampler was made for.
        expected: String,
        /// Those of the space.
        found: String,
    },
}

/// Draws legal points. The same seed of the generator gives the same points.
///
/// A sampler belongs to a kernel's parameters, and serves any number of bound spaces of it: what it learns on one input
/// it uses on the next.
pub trait Sampler: Send {
    /// Draws candidates until one is legal.
    ///
    /// # Errors
    /// The attempts were used up, the space has other parameters than the sampler was made for, or its points cannot be
    /// counted.
    fn draw(&mut self, space: &BoundSpace, rng: &mut dyn RngCore) -> Result<Draw, DrawError>;

    /// What became of all candidates so far.
    fn acceptance(&self) -> &Acceptance;
}

/// Candidates that one draw may use up before the space counts as possibly empty. A space with one legal point in a
/// million still gives one with 63% probability.
pub const MAX_ATTEMPTS: u64 = 1_000_000;
