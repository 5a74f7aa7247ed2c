//! The strategies by name, and what any strategy is made from.

use crate::draws::Source;
use crate::experience::Experience;
use crate::guided::Guided;
use crate::listing::{Listing, TooLarge};
use crate::model::Model;
use crate::stop::{Rule, Tail, Tolerance};
use crate::strategy::listed::{Chooser, Listed};
use crate::strategy::{Annealing, Climb, Early, EarlyStop, Genetic, Local, Random, Refine, Sequence, Shuffle};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use tilewright_core::objective::Objective;
use tilewright_core::search::Search;
use tilewright_core::space::{BoundSpace, Point};

/// Combinations of values up to which strategies that can do without a list hold one.
const HELD: u128 = 1 << 20;

/// A strategy of the catalogue.
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
    /// Around a model's best, by the model and by what it turns out not to know.
    Refine,
}

/// What a search of a space starts from. Only the space is needed.
#[derive(Clone)]
pub struct Setup<'a> {
    /// The space.
    pub space: &'a BoundSpace,
    /// Its legal points, held when a strategy needs them.
    pub listing: LazyListing<'a>,
    /// What is optimised.
    pub objective: Objective,
    /// For strategies that stop by themselves.
    pub tolerance: Tolerance,
    /// For the learned rule.
    pub tail: Arc<Tail>,
    /// What other devices and earlier searches say of the points.
    pub warm: Arc<Experience>,
    /// What predicts costs.
    pub model: Option<Model<'a>>,
    /// The model's best points, best first.
    pub ranked: Arc<Vec<Point>>,
    /// What is worth trying first, in this order.
    pub starts: Arc<Vec<Point>>,
    /// Draws legal points; uniform ones without it.
    pub source: Option<&'a dyn Source>,
}

/// The legal points of a space, listed when they are asked for first. Clones share the list.
#[derive(Clone)]
pub struct LazyListing<'a> {
    space: &'a BoundSpace,
    held: Arc<OnceLock<Result<Arc<Listing>, TooLarge>>>,
}

impl<'a> LazyListing<'a> {
    /// Nothing listed yet.
    pub fn new(space: &'a BoundSpace) -> Self {
        Self { space, held: Arc::default() }
    }

    /// The list.
    ///
    /// # Errors
    /// More points than a list holds.
    pub fn get(&self) -> Result<Arc<Listing>, TooLarge> {
        self.held.get_or_init(|| Listing::new(self.space).map(Arc::new)).clone()
    }
}

impl<'a> Setup<'a> {
    /// The defaults on a space: nothing is known of it.
    pub fn new(space: &'a BoundSpace) -> Self {
        Self {
            space,
            listing: LazyListing::new(space),
            objective: Objective::default(),
            tolerance: Tolerance::default(),
            tail: Arc::new(Tail::default()),
            warm: Arc::new(Experience::default()),
            model: None,
            ranked: Arc::default(),
            starts: Arc::default(),
            source: None,
        }
    }

    /// Whether the space is listed even for strategies that can do without.
    fn is_small(&self) -> bool {
        self.space.listed_points().is_some() || self.space.cartesian() <= HELD
    }

    fn listed<C: Chooser + 'static>(&self, seed: u64, chooser: C) -> Result<Box<dyn Search + 'a>, TooLarge> {
        Ok(Box::new(Listed::new(self.listing.get()?, self.objective.clone(), seed, chooser)))
    }

    fn guided(&self, seed: u64, stops: bool) -> Result<Box<dyn Search + 'a>, TooLarge> {
        let listing = self.listing.get()?;
        let warm = self.warm.on(&listing);
        self.listed(seed, Guided::new((self.space.params(), listing.len()), warm, self.tolerance, stops))
    }

    fn early(&self, seed: u64, rule: Rule) -> Result<Box<dyn Search + 'a>, TooLarge> {
        if !self.is_small() {
            return Ok(Box::new(EarlyStop::new(self.space, self.objective.clone(), rule, self.tolerance, seed)));
        }
        let size = self.listing.get()?.len();
        self.listed(seed, Early::new(rule, size, self.tolerance))
    }

    fn random(&self, seed: u64) -> Random<'a> {
        Random::new(self.space, self.objective.clone(), seed)
    }
}

/// A name that no strategy has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown strategy {name:?}: it is one of auto {known}")]
pub struct UnknownStrategy {
    /// What was written.
    pub name: String,
    /// The names there are.
    pub known: String,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 11] = [
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
        Self::Refine,
    ];

    /// What the project recommends on recordings where no budget is given; with one, [`Strategy::Guided`] to its end.
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
            Self::Refine => "refine",
        }
    }

    /// Whether it ends by itself before every point is known.
    pub fn stops(self) -> bool {
        matches!(self, Self::EarlyStop | Self::EarlyStopVuduc | Self::EarlyStopConservative | Self::GuidedStop)
    }

    /// Whether it promises something that a bound on the probability of a miss can end: see [`Search::bound`].
    pub fn promises(self) -> bool {
        self.stops() || self == Self::Guided
    }

    /// Whether its promise holds for a uniform sample only, so that nothing may be told that it did not ask for.
    pub fn is_uniform(self) -> bool {
        self.promises() && !matches!(self, Self::Guided | Self::GuidedStop)
    }

    /// What is to be said of its bound where a rule ends it that was learned at another epsilon.
    pub fn caution(self, tail: &Tail, epsilon: f64) -> Option<String> {
        match self {
            Self::EarlyStop => tail.caution(epsilon),
            Self::GuidedStop => crate::guided::caution(epsilon),
            _ => None,
        }
    }

    /// A search; the same seed and outcomes ask the same questions.
    ///
    /// # Errors
    /// A space that is too large to be held, for the strategies that hold it: all but `refine`, `local`, `random` and the
    /// `early-stop` ones.
    pub fn make<'a>(self, setup: &Setup<'a>, seed: u64) -> Result<Box<dyn Search + 'a>, TooLarge> {
        match self {
            Self::Exhaustive => setup.listed(seed, Sequence::default()),
            Self::Random if setup.is_small() => setup.listed(seed, Shuffle),
            Self::Random => Ok(Box::new(setup.random(seed))),
            Self::EarlyStop => setup.early(seed, Rule::Learned(setup.tail.clone())),
            Self::EarlyStopVuduc => setup.early(seed, Rule::Vuduc),
            Self::EarlyStopConservative => setup.early(seed, Rule::Conservative),
            Self::Local if setup.is_small() => setup.listed(seed, Climb::default()),
            Self::Local => Ok(Box::new(Local::new(setup.space, setup.objective.clone(), setup.starts.to_vec(), seed))),
            Self::Annealing => setup.listed(seed, Annealing::default()),
            Self::Genetic => setup.listed(seed, Genetic::default()),
            Self::Guided => setup.guided(seed, false),
            Self::GuidedStop => setup.guided(seed, true),
            Self::Refine => Ok(Box::new(Refine::new(setup, seed))),
        }
    }
}

/// Makes a search that the catalogue does not have, from what is known and a seed.
type Make = dyn for<'a> Fn(&Setup<'a>, u64) -> Box<dyn Search + 'a> + Send + Sync;

/// A strategy of the catalogue, or one's own.
#[derive(Clone)]
pub struct Choice(Kind);

#[derive(Clone)]
enum Kind {
    Known(Strategy),
    Own { name: Arc<str>, make: Arc<Make> },
}

impl Choice {
    /// A strategy that is made outside this crate: whatever it needs is in the [`Setup`].
    pub fn own<F>(name: &str, make: F) -> Self
    where
        F: for<'a> Fn(&Setup<'a>, u64) -> Box<dyn Search + 'a> + Send + Sync + 'static,
    {
        Self(Kind::Own { name: name.into(), make: Arc::new(make) })
    }

    /// The name.
    pub fn name(&self) -> &str {
        match &self.0 {
            Kind::Known(strategy) => strategy.name(),
            Kind::Own { name, .. } => name,
        }
    }

    /// The strategy of the catalogue; none for one's own.
    pub fn known(&self) -> Option<Strategy> {
        match &self.0 {
            Kind::Known(strategy) => Some(*strategy),
            Kind::Own { .. } => None,
        }
    }

    /// A search; the same seed and outcomes ask the same questions.
    ///
    /// # Errors
    /// See [`Strategy::make`].
    pub fn make<'a>(&self, setup: &Setup<'a>, seed: u64) -> Result<Box<dyn Search + 'a>, TooLarge> {
        match &self.0 {
            Kind::Known(strategy) => strategy.make(setup, seed),
            Kind::Own { make, .. } => Ok(make(setup, seed)),
        }
    }
}

impl From<Strategy> for Choice {
    fn from(strategy: Strategy) -> Self {
        Self(Kind::Known(strategy))
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Choice").field(&self.name()).finish()
    }
}

/// Two of one's own are equal only as clones of each other.
impl PartialEq for Choice {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Known(a), Kind::Known(b)) => a == b,
            (Kind::Own { make: a, .. }, Kind::Own { make: b, .. }) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
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
