//! One decision for an input: which kernel of a computation, with which configuration, by whatever is known of them.

mod room;
mod shots;

pub use room::problem;
pub use shots::{Shooting, Shots};

use crate::error::Error;
use crate::exporting::ExportError;
use crate::known::{Known, KnownSelector, selector};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use tilewright_core::device::DeviceSpec;
use tilewright_core::id::KernelId;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Measure, Problem};
use tilewright_core::selector::Selector;
use tilewright_core::space::Config;
use tilewright_export::ArtefactError;
use tilewright_runtime::RuntimeError;
use tilewright_runtime::plan::{
    Entrant, PlanSettings, Planned, Ranking, SEARCHED, Sampling, Searching, VariantPlanner,
};
use tilewright_runtime::plan_cache::{Lookup, PlanCache};
use tilewright_runtime::selection::{Ranker, SelectorStore, StoredSelector};
use tilewright_runtime::store::{Fitting, Home, StoreErrorKind, checksum};

/// What a decision is made with. The command line and [`crate::Tuner`] decide by it.
pub struct Planning<'a> {
    /// Where profiles, selectors and plans are kept.
    pub home: &'a Home,
    /// The kernels of a computation that compete, the default one first; see [`VariantPlanner::entrants`].
    pub kernels: &'a [Arc<dyn AnyKernel>],
    /// Whether routines of libraries were asked for: an answer that they had no part in is another answer.
    pub with_libraries: bool,
    /// The device.
    pub device: &'a Arc<DeviceSpec>,
    /// Times configurations, and checks results; None where there is no clock.
    pub measure: Option<&'a mut dyn Measure>,
    /// A predictor of the caller's, in the place of whatever is stored.
    pub predictor: Option<&'a dyn Predictor>,
    /// A selector of the caller's, in the place of the stored one.
    pub selector: Option<&'a dyn Selector>,
    /// The kind of model that is asked for, and the file that it is in; see [`Known::find`].
    pub model: (Option<&'a str>, Option<&'a Path>),
    /// How many configurations a costly model is asked about, where that is said.
    pub candidates: Option<usize>,
    /// See [`VariantPlanner::most`].
    pub searched: usize,
    /// How to decide.
    pub settings: PlanSettings,
    /// See [`VariantPlanner::searching`].
    pub searching: Option<&'a mut Searching<'a>>,
}

/// A selector with the checksum of its file.
type Stored = (StoredSelector, String);

/// A kernel with what is known of it for an input.
type Found<'k> = (Known<'k>, Box<dyn Problem>);

/// Kernels without a part in a decision, and why.
type LeftOut = Vec<(KernelId, String)>;

impl<'a> Planning<'a> {
    /// By whatever is stored, without libraries; nobody hears of it.
    pub fn new(
        home: &'a Home,
        kernels: &'a [Arc<dyn AnyKernel>],
        device: &'a Arc<DeviceSpec>,
        measure: Option<&'a mut dyn Measure>,
        settings: PlanSettings,
    ) -> Self {
        let (with_libraries, predictor, selector, model) = (false, None, None, (None, None));
        let (candidates, searched, searching) = (None, SEARCHED, None);
        Self {
            home,
            kernels,
            with_libraries,
            device,
            measure,
            predictor,
            selector,
            model,
            candidates,
            searched,
            settings,
            searching,
        }
    }

    /// Decides for an input; the chosen kernel's problem, and the answer. Kernels that do not take the input, or that have no model
    /// of the kind that is asked for, are left out where others are there.
    ///
    /// # Errors
    /// Fields that describe no input, nothing legal, nothing that runs or computes right, a device that fails, a predictor that
    /// does not speak of any of the kernels, or a file.
    pub fn decide(self, fields: &Config) -> Result<(Box<dyn Problem>, Planned), Error> {
        self.prepare(fields)?.decide()
    }

    /// Gathers what is known of an input, once.
    ///
    /// # Errors
    /// Fields that describe no input, a predictor that does not speak of any of the kernels, or a file.
    pub fn prepare(self, fields: &Config) -> Result<Prepared<'a>, Error> {
        let (found, left_out) = self.known(fields)?;
        let (mut notes, mut broken) = (Vec::new(), Vec::new());
        let stored = match (self.selector, &*found) {
            (None, [(entry, any), _, ..]) => self.stored((entry.kernel, &**any), &mut notes, &mut broken)?,
            _ => None,
        };
        let transferred = match (self.selector, &stored, &*found) {
            (None, None, [(_, any), _, ..]) => self.transferred(&**any, &mut notes, &mut broken),
            _ => None,
        };
        Ok(Prepared { planning: self, found, left_out, stored, transferred, notes, broken })
    }

    /// What an answer answers: which kernels were asked for.
    fn question(&self) -> String {
        let computation = self.kernels.first().map(|kernel| kernel.computation().to_string()).unwrap_or_default();
        if self.with_libraries { format!("{computation}+libraries") } else { computation }
    }

    /// The kernels that take the input, with what is known of them; and those that do not, with the reason.
    fn known(&self, fields: &Config) -> Result<(Vec<Found<'a>>, LeftOut), Error> {
        let (mut found, mut left_out, mut first) = (Vec::new(), Vec::new(), None);
        for kernel in self.kernels {
            match self.one(&**kernel, fields) {
                Ok(one) => found.push(one),
                Err(error) if is_of_kernel(&error) => {
                    left_out.push((kernel.id(), error.to_string()));
                    first.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        match first {
            Some(error) if found.is_empty() => Err(error),
            _ => Ok((found, left_out)),
        }
    }

    fn one<'k>(&self, kernel: &'k dyn AnyKernel, fields: &Config) -> Result<Found<'k>, Error> {
        let problem = problem(kernel, self.device, fields)?;
        let mut known = match (self.predictor, self.model) {
            (Some(_), _) => Known::nothing(kernel),
            (None, model) => Known::find(self.home, model, kernel, self.device, &problem.input())?,
        };
        if let (Ranking::Sample(how), Some(points)) = (&mut known.ranking, self.candidates) {
            how.points = points;
        }
        Ok((known, problem))
    }

    /// The stored selector; one that is of no use is noted.
    fn stored(
        &self,
        (kernel, problem): (&dyn AnyKernel, &dyn Problem),
        notes: &mut Vec<String>,
        broken: &mut Vec<String>,
    ) -> Result<Option<Stored>, Error> {
        let store = SelectorStore::new(self.home.profiles());
        let computation = problem.computation();
        let Fitting { best, damaged } = store.find(kernel, self.device, &problem.input())?;
        notes.extend(damaged.iter().map(|error| format!("a stored selector is of no use: {error}")));
        broken.extend(damaged.iter().map(ToString::to_string));
        let Some((path, stored)) = best else { return Ok(None) };
        match stored.expect(&path, &computation, self.device, problem.schema()) {
            Ok(()) => Ok(Some((stored, checksum(&path)?))),
            Err(error) => {
                notes.push(format!("the stored selector is of no use: {error}"));
                Ok(None)
            }
        }
    }

    /// What other devices' choices say, and where that comes from or why it is of no use.
    fn transferred(
        &self,
        problem: &dyn Problem,
        notes: &mut Vec<String>,
        broken: &mut Vec<String>,
    ) -> Option<KnownSelector> {
        let found = selector(self.home, problem.computation().as_str(), self.device, problem.schema());
        match found {
            Ok(found) => {
                notes.extend(found.as_ref().map(|known| format!("the selector is {}", known.reason)));
                found
            }
            Err(error) => {
                broken.extend(matches!(&error, Error::Repository(e) if e.is_damage()).then(|| error.to_string()));
                notes.push(format!("no selector was learned from other devices: {error}"));
                None
            }
        }
    }

    fn entrant<'f>(&self, (known, problem): &'f Found<'_>) -> Entrant<'f>
    where
        'a: 'f,
    {
        let ranking = match self.predictor {
            Some(own) if own.is_costly() => Ranking::Sample(Sampling::default()),
            _ => known.ranking.clone(),
        };
        let (home, is_asked) = (self.home, self.settings.asked.strategy.is_some());
        Entrant {
            kernel: known.kernel,
            problem: &**problem,
            predictor: self.predictor.or(known.predictor.as_deref()),
            knowledge: Some(self.predictor.map_or(known.name(), |_| "own")),
            known: self.predictor.map_or(known.reason(), |_| "").to_owned(),
            warm: Box::new(move || known.warm(home, &**problem, is_asked)),
            origin: known.origin.clone(),
            sampler: Known { ranking: ranking.clone(), ..Known::nothing(known.kernel) }.sampler(),
            ranking,
        }
    }
}

/// A decision with everything that is known of its input.
pub struct Prepared<'a> {
    planning: Planning<'a>,
    found: Vec<Found<'a>>,
    left_out: LeftOut,
    stored: Option<Stored>,
    transferred: Option<KnownSelector>,
    notes: Vec<String>,
    /// Stored selectors, and records of other devices, that cannot be read.
    broken: Vec<String>,
}

impl Prepared<'_> {
    /// Whether anything stored says more of the input than the defaults of its kernels: a plan, a model, a selector.
    ///
    /// # Errors
    /// A damaged entry of the plan cache.
    pub fn is_anything_known(&self) -> Result<bool, Error> {
        let has_model = self.found.iter().any(|(known, _)| known.predictor.is_some());
        if has_model || self.stored.is_some() || self.transferred.is_some() {
            return Ok(true);
        }
        let problems: Vec<&dyn Problem> = self.found.iter().map(|(_, problem)| &**problem).collect();
        let (cache, objective) = (PlanCache::new(self.planning.home.plans()), &self.planning.settings.objective);
        let plan = match problems[..] {
            [one] => cache.get(one, objective),
            _ => cache.get_among(&self.planning.question(), &problems, objective).map(|(found, _)| found),
        };
        Ok(matches!(plan.map_err(RuntimeError::from)?, Lookup::Hit(..)))
    }

    /// See [`Planning::decide`].
    ///
    /// # Errors
    /// As there.
    pub fn decide(self) -> Result<(Box<dyn Problem>, Planned), Error> {
        let Self { mut planning, mut found, left_out, stored, transferred, notes, broken } = self;
        let ranker = match (planning.selector, &stored) {
            (Some(own), _) => Some(Ranker::Own(own)),
            (None, Some((stored, origin))) => Some(Ranker::Stored(stored, origin.clone())),
            (None, None) => transferred.as_ref().map(|KnownSelector { selector, variants, inputs, .. }| {
                Ranker::Transferred { selector, variants, inputs: *inputs }
            }),
        };
        let remembers = planning.settings.remember;
        let mut silent = |_: &dyn AnyKernel, _: Option<&dyn Predictor>, _: &PlanSettings| {};
        let (cache, question) = (PlanCache::new(planning.home.plans()), planning.question());
        let mut planner = VariantPlanner {
            entrants: found.iter().map(|found| planning.entrant(found)).collect(),
            left_out,
            notes,
            ranker,
            most: planning.searched,
            device: planning.device,
            measure: match &mut planning.measure {
                Some(measure) => Some(&mut **measure),
                None => None,
            },
            cache: Some(&cache),
            question,
            settings: planning.settings,
            searching: match &mut planning.searching {
                Some(searching) => &mut **searching,
                None => &mut silent,
            },
        };
        let (at, mut planned) = planner.plan()?;
        drop(planner);
        if let (Some(_), true) = (&transferred, remembers) {
            shots::remember(planning.home, planning.device, &*found[at].1, &planned);
        }
        planned.damaged.extend(broken);
        planned.damaged.extend(found.iter().flat_map(|(known, _)| known.damaged.iter().cloned()));
        // What is wrong with the whole repository, every kernel has found.
        let mut seen = HashSet::new();
        planned.damaged.retain(|one| seen.insert(one.clone()));
        Ok((found.swap_remove(at).1, planned))
    }
}

/// Whether an error says something of one kernel only, so that others may still have a plan.
fn is_of_kernel(error: &Error) -> bool {
    match error {
        Error::Runtime(RuntimeError::Problem(_)) | Error::NoProfile { .. } => true,
        Error::Named { error, .. } => is_of_kernel(error),
        Error::Export(error) => matches!(**error, ExportError::Artefact(ArtefactError::OtherKernel { .. })),
        Error::Runtime(RuntimeError::Store(e)) => matches!(e.kind, StoreErrorKind::OtherKernel { .. }),
        _ => false,
    }
}
