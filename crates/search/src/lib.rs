//! Search over parameter spaces.
//!
//! [`exhaustive`] looks at every legal point with a model: the space is streamed in parallel, features are computed in
//! blocks, the top k are kept, and no list of points is ever held. [`sampled`] looks at a random sample and climbs from there, for
//! models whose word costs too much to ask for everything. The strategies of [`strategy`] look at few points by
//! measuring them: they implement [`tilewright_core::search::Search`], which asks for points and is told outcomes, and look around
//! in one [`Neighbourhood`]. [`drive()`] lets a strategy ask a live device or a recording.
//!
//! ```
//! use tilewright_core::predictor::Predictor;
//! use tilewright_core::problem::Problem;
//! use tilewright_search::{Options, exhaustive};
//!
//! fn best_five(problem: &dyn Problem, model: &dyn Predictor) -> Result<(), Box<dyn std::error::Error>> {
//!     let scorer = model.bind(problem)?;
//!     let found = exhaustive(problem, &*scorer, &Options::top(5));
//!     for (point, seconds) in &found.ranked.points {
//!         println!("{} is expected to take {seconds:e} s", problem.space().config(point));
//!     }
//!     println!("of {} legal points", found.statistics.legal);
//!     Ok(())
//! }
//! ```

mod catalogue;
mod convergence;
mod draws;
pub mod drive;
mod exhaustive;
mod experience;
mod guided;
mod history;
mod listing;
mod model;
mod neighbourhood;
mod sampled;
mod spread;
pub mod stop;
pub mod strategy;
mod suggest;

pub use catalogue::{Choice, LazyListing, Setup, Strategy, UnknownStrategy};
pub use convergence::{Convergence, convergence};
pub use draws::Source;
pub use drive::{Evaluator, drive};
pub use exhaustive::{Found, Options, Progress, Stage, Statistics, exhaustive};
pub use experience::Experience;
pub use listing::{Listing, MAX_POINTS, TooLarge};
pub use model::Model;
pub use neighbourhood::{Members, Neighbourhood, Reach};
pub use sampled::{Sampled, Sampling, sampled};
pub use spread::{RANKED_PER_TIMED, spread};
pub use suggest::suggest;
