//! What is searched, and what is known from elsewhere.

use crate::commands::data::read;
use crate::failure::{Failure, Kind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tilewright_core::measurement::{Failure as Failed, FailureKind, Outcome};
use tilewright_core::problem::Problem;
use tilewright_core::space::Point;
use tilewright_datasets::{RecordedKernel, RecordedProblem};
use tilewright_search::stop::{Tail, fit_tail};
use tilewright_search::{Experience, Listing};

/// One recorded space.
pub(super) struct Recording {
    problem: RecordedProblem,
    pub(super) device: String,
    pub(super) listing: Arc<Listing>,
    /// Time of the fastest point.
    pub(super) optimum_s: f64,
}

impl Recording {
    /// Reads `replay:FILE`, which must hold one device and one input.
    pub(super) fn read(device: &str) -> Result<Self, Failure> {
        let path = device.strip_prefix("replay:").ok_or_else(|| {
            Failure::new(Kind::Usage, "device", format!("{device:?}: a search replays recordings, as replay:FILE"))
        })?;
        let mut problems = problems(Path::new(path))?;
        let problem = match problems.len() {
            0 => return Err(Failure::new(Kind::Nothing, path, "no configuration was recorded")),
            1 => problems.remove(0),
            n => {
                let message = format!("{n} devices and inputs were recorded; a search is about one");
                return Err(Failure::new(Kind::Input, path, message));
            }
        };
        let (_, optimum_s) =
            problem.optimum().ok_or_else(|| Failure::new(Kind::Nothing, path, "every configuration failed"))?;
        let listing = Listing::new(problem.space()).map_err(|e| Failure::new(Kind::Input, path, e))?;
        Ok(Self { device: problem.device().name.clone(), problem, listing: Arc::new(listing), optimum_s })
    }

    /// The recorded outcome and clock of a point.
    pub(super) fn evaluate(&self, point: &Point) -> (Outcome, f64) {
        match self.problem.look_up(point) {
            Some((outcome, seconds)) => (outcome.clone(), seconds),
            None => {
                let message = format!("{point:?} was not recorded");
                (Err(Failed { kind: FailureKind::Illegal, message }), 0.0)
            }
        }
    }
}

fn problems(path: &Path) -> Result<Vec<RecordedProblem>, Failure> {
    let fault = |e| Failure::new(Kind::Input, &path.display().to_string(), e);
    RecordedKernel::new(Arc::new(read(path)?)).and_then(|k| k.problems()).map_err(fault)
}

/// The tail relation of other recordings.
pub(super) fn prior(files: &[PathBuf], epsilon: f64, seed: u64) -> Result<Tail, Failure> {
    let mut spaces = Vec::new();
    for file in files {
        for problem in problems(file)? {
            let cost = |o: &Outcome| o.as_ref().map_or(f64::INFINITY, |m| m.time_s);
            let mut recorded: Vec<_> = problem.recorded().collect();
            recorded.sort_by_key(|(point, _)| *point);
            spaces.push(recorded.into_iter().map(|(_, o)| cost(o)).collect());
        }
    }
    fit_tail(&spaces, epsilon, seed).map_err(|e| Failure::new(Kind::Input, "prior", e))
}

/// What other devices say of the points of this one, matched by the names and values of the parameters.
pub(super) fn warm(files: &[PathBuf], here: &Recording) -> Result<Experience, Failure> {
    let mut experience = Experience::new(here.listing.len());
    for file in files {
        for problem in problems(file)? {
            let params = problem.space().params();
            let mut matched = 0;
            let costs = (0..here.listing.len() as u32).map(|number| {
                let config = here.problem.space().config(here.listing.indices(number));
                let point = config.to_point(params, None).ok();
                let seconds = point.and_then(|p| problem.outcome(&p)?.as_ref().ok().map(|m| m.time_s));
                matched += usize::from(seconds.is_some());
                seconds
            });
            let costs: Vec<Option<f64>> = costs.collect();
            if matched == 0 {
                let message = "none of its configurations is one of the searched space";
                return Err(Failure::new(Kind::Input, &file.display().to_string(), message));
            }
            experience.add(costs);
        }
    }
    Ok(experience)
}
