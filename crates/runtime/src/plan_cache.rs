//! Decided plans on disk: one small file each, safe with concurrent processes.
//!
//! The name of a file is a hash of what the plan answers: kernel, device, input, objective. What makes the answer
//! valid beyond that (the device's fingerprint, the feature schema, the parameter space, the version of this program)
//! stands in its header: an entry that differs there is stale, and planned anew rather than trusted.

use crate::plan::Look;
use crate::selection::SelectionError;
use crate::store::envelope::{self, Format};
use crate::store::{DeviceRecord, StoreError, StoreErrorKind, files_with_extension, paths, unix_seconds};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tilewright_core::decision::Decision;
use tilewright_core::id::KernelId;
use tilewright_core::objective::Objective;
use tilewright_core::problem::Problem;
use tilewright_core::space::{Config, Point};

const FORMAT: Format = Format { name: "plan", version: 1 };
const EXTENSION: &str = "plan";

/// What an entry answers, and what its answer depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanHeader {
    /// The kernel.
    pub kernel: KernelId,
    /// The device that it was decided on.
    pub device: DeviceRecord,
    /// The input's fields.
    pub input: Config,
    /// What was optimised.
    pub objective: Objective,
    /// Hash of the kernel's own feature schema.
    pub schema: String,
    /// Hash of parameters, values and rules.
    pub space: String,
    /// Version of the program that decided.
    pub version: String,
    /// When, in seconds since 1970.
    pub created: u64,
}

/// A decided plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CachedPlan {
    /// The configuration.
    pub config: Config,
    /// What the model expected, in seconds.
    pub predicted_s: Option<f64>,
    /// What was measured, in seconds.
    pub measured_s: Option<f64>,
    /// Largest error of the verified result, relative to the largest reference; None if it was not verified.
    pub max_rel_error: Option<f64>,
    /// Why it was chosen, and from what.
    pub decision: Decision,
    /// How hard it was looked for, the oldest look first; empty where an older version wrote the entry.
    #[serde(default)]
    pub looks: Vec<Look>,
}

/// What the cache has.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// A plan that is valid here, as a legal point.
    Hit(Box<CachedPlan>, Point),
    /// A plan that is not valid any more, and why.
    Stale(String),
    /// Nothing.
    Miss,
}

/// A file of the cache with its contents, or what is wrong with it.
pub type Entry = (PathBuf, Result<(PlanHeader, CachedPlan), StoreError>);

/// The plans of a directory.
#[derive(Clone, Debug)]
pub struct PlanCache {
    directory: PathBuf,
}

impl PlanCache {
    /// The plans of a directory, [`crate::store::Home::plans`] as a rule; made when first written to.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where the plan of an input is kept.
    pub fn path(&self, problem: &dyn Problem, objective: &Objective) -> PathBuf {
        self.path_of(problem.kernel().as_str(), problem, objective)
    }

    /// Where the answer to a question is kept: the name of a kernel, or of whatever else answers for an input.
    fn path_of(&self, question: &str, problem: &dyn Problem, objective: &Objective) -> PathBuf {
        let device = problem.device();
        let direction = format!("{:?}", objective.direction);
        let input = problem.input().to_string();
        let key = hash_of([question, &device.id, &device.name, &input, &objective.metric, &direction]);
        self.directory.join(&key[..2]).join(format!("{}.{EXTENSION}", &key[2..34]))
    }

    /// What is known about an input.
    ///
    /// # Errors
    /// The file exists and cannot be read, is damaged, or of another version.
    pub fn get(&self, problem: &dyn Problem, objective: &Objective) -> Result<Lookup, StoreError> {
        Ok(self.get_among(problem.kernel().as_str(), &[problem], objective)?.0)
    }

    /// What is known of a question that several kernels compete to answer for one input, and which of them the answer is of.
    /// An answer of a kernel that is not among them is stale.
    ///
    /// # Errors
    /// As [`PlanCache::get`].
    pub fn get_among(
        &self,
        question: &str,
        problems: &[&dyn Problem],
        objective: &Objective,
    ) -> Result<(Lookup, usize), StoreError> {
        let Some(first) = problems.first() else { return Ok((Lookup::Miss, 0)) };
        let path = self.path_of(question, *first, objective);
        let (header, plan): (PlanHeader, CachedPlan) = match envelope::read(&path, FORMAT) {
            Ok(read) => read,
            Err(e) if e.is_missing() => return Ok((Lookup::Miss, 0)),
            Err(e) => return Err(e),
        };
        let of = problems.iter().position(|problem| problem.kernel() == header.kernel);
        let Some(at) = of else {
            let gone = SelectionError::Gone { kernel: header.kernel };
            return Ok((Lookup::Stale(gone.to_string()), 0));
        };
        let now = PlanHeader::new(problems[at], objective.clone());
        if let Some(what) = header.differs(&now) {
            return Ok((Lookup::Stale(format!("the cached plan is of {what}")), at));
        }
        let space = problems[at].space();
        let point = match plan.config.to_point(space.params(), None) {
            Ok(point) => point,
            Err(e) => return Ok((Lookup::Stale(format!("the cached plan is none of this space: {e}")), at)),
        };
        if let Err(illegal) = space.check(&point) {
            return Ok((Lookup::Stale(format!("the cached plan is not legal any more: {illegal}")), at));
        }
        Ok((Lookup::Hit(Box::new(plan), point), at))
    }

    /// Keeps a plan, in the place of an older one.
    ///
    /// # Errors
    /// See [`crate::store::write_atomically`].
    pub fn put(&self, problem: &dyn Problem, objective: &Objective, plan: &CachedPlan) -> Result<PathBuf, StoreError> {
        self.put_among(problem.kernel().as_str(), problem, objective, plan)
    }

    /// Keeps the answer to a question that several kernels competed for: a plan of the problem's kernel.
    ///
    /// # Errors
    /// As [`PlanCache::put`].
    pub fn put_among(
        &self,
        question: &str,
        problem: &dyn Problem,
        objective: &Objective,
        plan: &CachedPlan,
    ) -> Result<PathBuf, StoreError> {
        let path = self.path_of(question, problem, objective);
        envelope::write(&path, FORMAT, &PlanHeader::new(problem, objective.clone()), plan)?;
        Ok(path)
    }

    /// Every entry's path with its contents, or what is wrong with it; for `doctor`.
    ///
    /// # Errors
    /// A directory cannot be listed.
    pub fn entries(&self) -> Result<Vec<Entry>, StoreError> {
        let mut out = Vec::new();
        for shard in paths(&self.directory)?.into_iter().filter(|path| path.is_dir()) {
            for path in files_with_extension(&shard, EXTENSION)? {
                let contents = envelope::read(&path, FORMAT);
                out.push((path, contents));
            }
        }
        Ok(out)
    }
}

/// Header and plan of an entry's bytes.
///
/// # Errors
/// The bytes are no entry of this version, or are damaged.
pub fn entry_from_bytes(bytes: &[u8]) -> Result<(PlanHeader, CachedPlan), StoreErrorKind> {
    envelope::decode(FORMAT, bytes)
}

impl PlanHeader {
    fn new(problem: &dyn Problem, objective: Objective) -> Self {
        Self {
            kernel: problem.kernel(),
            device: problem.device().into(),
            input: problem.input(),
            objective,
            schema: problem.schema().hash(),
            space: space_hash(problem),
            version: env!("CARGO_PKG_VERSION").into(),
            created: unix_seconds(),
        }
    }

    /// What keeps an entry with this header from answering for `now`.
    fn differs(&self, now: &Self) -> Option<&'static str> {
        let differences = [
            (self.device.fingerprint != now.device.fingerprint, "another state of the device"),
            (self.kernel != now.kernel, "another kernel"),
            (self.input != now.input, "another input"),
            (self.objective != now.objective, "another objective"),
            (self.schema != now.schema, "another feature schema"),
            (self.space != now.space, "another parameter space"),
            (self.version != now.version, "another version of this program"),
        ];
        differences.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
    }
}

/// A hash of parameters, values and rules, so that a changed kernel does not inherit plans.
fn space_hash(problem: &dyn Problem) -> String {
    let mut texts = Vec::new();
    for p in problem.space().params() {
        texts.push(p.name.clone());
        texts.extend(p.values.iter().map(ToString::to_string));
    }
    texts.extend(problem.space().rules().iter().flat_map(|r| [r.name.clone(), r.expr.to_string()]));
    hash_of(texts.iter().map(String::as_str))[..32].to_owned()
}

/// A hash of texts and of where each of them ends.
fn hash_of<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests;
