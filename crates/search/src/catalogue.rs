//! The strategies by name.

use crate::experience::Experience;
use crate::guided::Guided;
use crate::listing::Listing;
use crate::stop::{Rule, Tail, Tolerance};
use crate::strategy::listed::{Chooser, Listed};
use crate::strategy::{Annealing, Climb, Early, Genetic, Sequence, Shuffle};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tilewright_core::objective::Objective;
use tilewright_core::search::Search;

/// A strategy over a held list of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strategy {
    /// Every point in order.
    Exhaustive,
    /// Uniformly at random.
    Random,
    /// Random, ended by the learned rule: the recommended one.
    EarlyStop,
    /// Random, ended by the paper's rule as printed.
    EarlyStopVuduc,
    /// Random, ended by the rule that assumes nothing.
    EarlyStopConservative,
    /// Hill climbing with restarts.
    Local,
    /// Simulated annealing.
    Annealing,
    /// A genetic algorithm.
    Genetic,
    /// Guided by a surrogate.
    Guided,
    /// Guided, ended when an improvement has become unlikely.
    GuidedStop,
}

/// What a search of a space starts from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The points.
    pub listing: Arc<Listing>,
    /// What is optimised.
    pub objective: Objective,
    /// For strategies that stop by themselves.
    pub tolerance: Tolerance,
    /// For the learned rule.
    pub tail: Arc<Tail>,
    /// What other devices say of the points.
    pub warm: Arc<Experience>,
}

impl Setup {
    /// The defaults on a list of points.
    pub fn new(listing: Arc<Listing>) -> Self {
        Self {
            listing,
            objective: Objective::default(),
            tolerance: Tolerance::default(),
            tail: Arc::new(Tail::default()),
            warm: Arc::new(Experience::default()),
        }
    }
}

/// A name that no strategy has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown strategy {name:?}: expected one of auto {known}")]
pub struct UnknownStrategy {
    /// What was written.
    pub name: String,
    /// The names there are.
    pub known: String,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 10] = [
        Self::Exhaustive,
        Self::Random,
        Self::EarlyStop,
        Self::EarlyStopVuduc,
        Self::EarlyStopConservative,
        Self::Local,
        Self::Annealing,
        Self::Genetic,
        Self::Guided,
        Self::GuidedStop,
    ];

    /// What the project recommends where no budget is given; with one, [`Strategy::Guided`] to its end.
    pub const AUTO: Self = Self::GuidedStop;

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exhaustive => "exhaustive",
            Self::Random => "random",
            Self::EarlyStop => "early-stop",
            Self::EarlyStopVuduc => "early-stop-vuduc",
            Self::EarlyStopConservative => "early-stop-conservative",
            Self::Local => "local",
            Self::Annealing => "annealing",
            Self::Genetic => "genetic",
            Self::Guided => "guided",
            Self::GuidedStop => "guided-stop",
        }
    }

    /// Whether it ends by itself before every point is known.
    pub fn stops(self) -> bool {
        matches!(self, Self::EarlyStop | Self::EarlyStopVuduc | Self::EarlyStopConservative | Self::GuidedStop)
    }

    /// A search; the same seed asks the same questions.
    pub fn make(self, setup: &Setup, seed: u64) -> Box<dyn Search> {
        let guided = |stops| Guided::new(setup.listing.params(), setup.warm.clone(), setup.tolerance, stops);
        let early = |rule| Early::new(rule, setup.listing.len(), setup.tolerance);
        match self {
            Self::Exhaustive => boxed(setup, seed, Sequence::default()),
            Self::Random => boxed(setup, seed, Shuffle),
            Self::EarlyStop => boxed(setup, seed, early(Rule::Learned(setup.tail.clone()))),
            Self::EarlyStopVuduc => boxed(setup, seed, early(Rule::Vuduc)),
            Self::EarlyStopConservative => boxed(setup, seed, early(Rule::Conservative)),
            Self::Local => boxed(setup, seed, Climb::default()),
            Self::Annealing => boxed(setup, seed, Annealing::default()),
            Self::Genetic => boxed(setup, seed, Genetic::default()),
            Self::Guided => boxed(setup, seed, guided(false)),
            Self::GuidedStop => boxed(setup, seed, guided(true)),
        }
    }
}

fn boxed<C: Chooser + 'static>(setup: &Setup, seed: u64, chooser: C) -> Box<dyn Search> {
    Box::new(Listed::new(setup.listing.clone(), setup.objective.clone(), seed, chooser))
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        if name == "auto" {
            return Ok(Self::AUTO);
        }
        Self::ALL.into_iter().find(|s| s.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(" ");
            UnknownStrategy { name: name.to_owned(), known }
        })
    }
}
