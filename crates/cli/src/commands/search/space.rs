//! What is searched, and what is known from elsewhere.

use crate::commands::data::read;
use crate::failure::{Failure, Kind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tilewright_core::expr::Value;
use tilewright_core::measurement::Outcome;
use tilewright_core::problem::Problem;
use tilewright_core::space::{BoundSpace, Config, Point};
use tilewright_datasets::{RecordedKernel, RecordedProblem};
use tilewright_search::Experience;
use tilewright_search::stop::{Tail, fit_tail};

/// One recorded space.
pub(super) struct Recording {
    problem: RecordedProblem,
    /// What was searched.
    pub(super) about: About,
}

/// What searches are judged by.
pub(super) struct About {
    /// The device.
    pub(super) device: String,
    /// Number of legal points.
    pub(super) points: usize,
    /// Time of the fastest point; on a live device, of the fastest that is known.
    pub(super) optimum_s: f64,
}

impl Recording {
    /// Reads `replay:FILE`, which must hold one device and one input.
    pub(super) fn read(device: Option<&str>) -> Result<Self, Failure> {
        let path = device.and_then(|d| d.strip_prefix("replay:")).ok_or_else(|| {
            let message = "name a kernel and an input to search on a device, or a recording as --device replay:FILE";
            Failure::new(Kind::Usage, "device", message)
        })?;
        let mut problems = problems(Path::new(path))?;
        let problem = match problems.len() {
            0 => return Err(Failure::new(Kind::Nothing, path, "no configuration was recorded")),
            1 => problems.remove(0),
            n => {
                let message = format!("{n} pairs of a device and an input were recorded; a search is about one");
                return Err(Failure::new(Kind::Input, path, message));
            }
        };
        let (_, optimum_s) =
            problem.optimum().ok_or_else(|| Failure::new(Kind::Nothing, path, "every configuration failed"))?;
        let (device, points) = (problem.device().name.clone(), problem.space().count_legal() as usize);
        Ok(Self { problem, about: About { device, points, optimum_s } })
    }

    pub(super) fn space(&self) -> &BoundSpace {
        self.problem.space()
    }

    /// The recorded outcome and clock of a point.
    pub(super) fn look_up(&self, point: &Point) -> Option<(Outcome, f64)> {
        self.problem.look_up(point).map(|(outcome, seconds)| (outcome.clone(), seconds))
    }
}

fn problems(path: &Path) -> Result<Vec<RecordedProblem>, Failure> {
    let fault = |e| Failure::of_file(Kind::Input, path, e);
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

/// What other devices say of the points of a space, matched by the names and values of the parameters: a view of each device, input
/// and variant that has any. Of a file, one that fits is enough: a tuner's database is about many kernels.
pub(super) fn warm(files: &[PathBuf], here: &BoundSpace) -> Result<Experience, Failure> {
    let mut experience = Experience::default();
    for file in files {
        let fault = |e| Failure::of_file(Kind::Input, file, e);
        let kernel = RecordedKernel::new(Arc::new(read(file)?)).map_err(fault)?;
        let variant = kernel.dataset().schema().columns.variant.clone();
        // Where the searched space has the variant, it is a parameter like any other.
        let variant = variant.filter(|name| here.params().iter().all(|p| p.name != *name)).unwrap_or_default();
        let mut found = false;
        for problem in kernel.problems().map_err(fault)? {
            let mut views: BTreeMap<String, Vec<(Point, f64)>> = BTreeMap::new();
            for (point, outcome) in problem.recorded() {
                let config = problem.space().config(point);
                let of = config.get(&variant).map_or_else(String::new, Value::to_string);
                let point = as_here(config, &variant, problem.space(), here).to_point(here.params(), None);
                if let (Ok(point), Ok(measured)) = (point, outcome)
                    && here.is_legal(&point)
                {
                    views.entry(of).or_default().push((point, measured.time_s));
                }
            }
            found |= !views.is_empty();
            views.into_values().for_each(|costs| experience.add(costs));
        }
        if !found {
            let message = "none of its configurations is one of the searched space";
            return Err(Failure::of_file(Kind::Input, file, message));
        }
    }
    Ok(experience)
}

/// A recorded configuration in the words of the searched space. What has one value on one side may be missing on the other; so may the
/// variant, and what the variant lacks.
fn as_here(config: Config, variant: &str, recorded: &BoundSpace, here: &BoundSpace) -> Config {
    let values =
        |space: &BoundSpace, name: &str| space.params().iter().find(|p| p.name == name).map(|p| p.values.len());
    let kept = |(name, value): &(String, Value)| match values(here, name) {
        Some(_) => value.as_str() != Some(""),
        None => name != variant && value.as_str() != Some("") && values(recorded, name) != Some(1),
    };
    let mut config = Config(config.0.into_iter().filter(kept).collect());
    for param in here.params() {
        if let ([only], None) = (param.values.as_slice(), config.get(&param.name)) {
            config.0.push((param.name.clone(), only.clone()));
        }
    }
    config
}
