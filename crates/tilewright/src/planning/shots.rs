//! A few inputs timed on a device that has no selector of its own, the most informative first: what others recorded says which
//! kernel is fast there, and these say how this device differs.

use super::{Planning, problem};
use crate::error::Error;
use crate::known::{KnownSelector, record_cases, selector};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tilewright_core::choice::{Case, ChoiceSet, Trial};
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::FeatureSchema;
use tilewright_core::problem::{AnyKernel, Measure, Problem};
use tilewright_core::selector::Candidate;
use tilewright_core::space::Config;
use tilewright_mtl::shots::{Pool, Worth};
use tilewright_runtime::RuntimeError;
use tilewright_runtime::plan::{PlanSettings, Planned};
use tilewright_runtime::selection::SelectorStore;
use tilewright_runtime::store::Home;
use tilewright_runtime::tune::TuneSettings;

/// Inputs that are drawn, of which some are timed.
const DRAWN: usize = 48;

/// The most that one input takes, but for what its data and references cost.
const EACH: Duration = Duration::from_secs(2);

/// What timing a few inputs came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shots {
    /// The inputs that were timed, with all kernels.
    pub inputs: Vec<Config>,
    /// What choices are expected to lose now, as a mean log cost; none where nothing was timed.
    pub expected_loss: Option<f64>,
    /// By how much one more input is expected to lessen that; 0 where none is left.
    pub next_saves: f64,
}

/// Who times what.
pub struct Shooting<'a> {
    /// Where records and plans are kept.
    pub home: &'a Home,
    /// The kernels that compete.
    pub kernels: &'a [Arc<dyn AnyKernel>],
    /// See [`Planning::with_libraries`].
    pub with_libraries: bool,
    /// The device.
    pub device: &'a Arc<DeviceSpec>,
    /// Fields that all inputs share.
    pub fixed: &'a Config,
    /// Seed of drawing and planning.
    pub seed: u64,
}

/// An input that could be timed.
struct Drawn {
    input: Config,
    case: Case,
}

impl Shooting<'_> {
    /// Times all kernels on so many inputs, and records that for every later plan of the computation on this device. Nothing is timed where the
    /// device has a selector of its own, which knows better.
    ///
    /// # Errors
    /// A single kernel, of which there is nothing to choose; no other device that recorded anything; a device that fails, or a file.
    pub fn time(
        &self,
        measure: &mut dyn Measure,
        count: usize,
        told: &mut dyn FnMut(&Config, usize),
    ) -> Result<Shots, Error> {
        let refused =
            |message: &str| Error::Runtime(RuntimeError::Setting { field: "shots", message: message.to_owned() });
        let [first, _, ..] = self.kernels else {
            return Err(refused("there is one kernel, so that there is nothing to choose"));
        };
        let (computation, schema) = (first.computation(), first.schema());
        let store = SelectorStore::new(self.home.profiles());
        if store.find(&**first, self.device, self.fixed)?.best.is_some() {
            return Ok(Shots::default());
        }
        let nothing =
            || refused("no other device recorded anything to learn from: `tilewright tune` learns from this one");
        let mut known = selector(self.home, computation.as_str(), self.device, &schema)?.ok_or_else(nothing)?;
        let drawn = self.drawn(&known)?;
        let mut cases = ChoiceSet::new(FeatureSchema { input: schema.input, config: Vec::new() });
        drawn.iter().try_for_each(|d| cases.push(d.case.clone())).map_err(tilewright_mtl::MtlError::from)?;
        let mut pool = Pool::new(&known.selector, &cases);
        let (mut taken, mut out) = (Vec::new(), Shots::default());
        let mut next = pool.next(&known.selector, &taken);
        while let Some(Worth { case, .. }) = next.filter(|_| taken.len() < count) {
            told(&drawn[case].input, taken.len());
            pool.take(&known.selector, case);
            taken.push(case);
            out.inputs.push(drawn[case].input.clone());
            known.shots.extend(self.shot(measure, &drawn[case])?);
            known.selector.learn(&known.shots)?;
            next = pool.next(&known.selector, &taken);
        }
        out.expected_loss = next.map(|worth| worth.expected_loss).filter(|_| !taken.is_empty());
        out.next_saves = next.map_or(0.0, |worth| worth.saved);
        Ok(out)
    }

    /// Inputs that at least two of the known kernels take.
    fn drawn(&self, known: &KnownSelector) -> Result<Vec<Drawn>, Error> {
        let (mut rng, limits) = (ChaCha8Rng::seed_from_u64(self.seed), TuneSettings::default().limits);
        let (mut seen, mut out) = (HashSet::new(), Vec::new());
        for _ in 0..DRAWN {
            let draw = self.kernels[0].draw(self.fixed, &limits, &mut || rng.random());
            let input = draw.map_err(RuntimeError::from)?;
            if !seen.insert(input.to_string()) {
                continue;
            }
            let bound = self.kernels.iter().filter_map(|kernel| problem(&**kernel, self.device, &input).ok());
            let runs =
                |p: &dyn Problem| known.variants.contains(&p.kernel().to_string()) && p.space().first_legal().is_some();
            let problems: Vec<Box<dyn Problem>> = bound.filter(|p| runs(&**p)).collect();
            let [any, _, ..] = &problems[..] else { continue };
            let mut features = Vec::new();
            any.input_features(&mut features);
            let candidate = |p: &dyn Problem| Candidate { variant: p.kernel().to_string(), features: Vec::new() };
            let trials = problems.iter().map(|p| Trial { candidate: candidate(&**p), cost: None }).collect();
            out.push(Drawn { input, case: Case { features, trials, group: 0 } });
        }
        Ok(out)
    }

    /// Times all kernels on an input; the times of those that ran. An input that none of them can do tells nothing.
    fn shot(&self, measure: &mut dyn Measure, drawn: &Drawn) -> Result<Option<Case>, Error> {
        let settings = PlanSettings { seed: self.seed, refine: EACH, budget: EACH, ..PlanSettings::default() };
        let planning = Planning {
            with_libraries: self.with_libraries,
            searched: usize::MAX,
            ..Planning::new(self.home, self.kernels, self.device, Some(measure), settings)
        };
        match planning.decide(&drawn.input) {
            Ok((_, planned)) => Ok(timed(&drawn.case.features, &planned)),
            Err(Error::Runtime(RuntimeError::Device(error))) => Err(Error::Runtime(RuntimeError::Device(error))),
            Err(error) => {
                tracing::warn!(input = %drawn.input, %error, "an input is not timed");
                Ok(None)
            }
        }
    }
}

/// The kernels of a plan that were timed beside each other, as a case; none of fewer than two.
fn timed(features: &[f32], planned: &Planned) -> Option<Case> {
    let trial = |variant: &tilewright_core::decision::Variant| {
        let candidate = Candidate { variant: variant.name.to_string(), features: Vec::new() };
        Some(Trial { candidate, cost: Some(variant.measured_s?) })
    };
    let trials: Vec<Trial> = planned.decision.variants.iter().filter_map(trial).collect();
    // Inputs are a group each, by what they are.
    let hash = blake3::hash(planned.input.to_string().as_bytes());
    let group = u32::from_le_bytes(*hash.as_bytes().first_chunk()?);
    (trials.len() > 1).then(|| Case { features: features.to_vec(), trials, group })
}

/// Records how kernels compared on an input, for later plans on this device. What cannot be written is said in the log.
pub(super) fn remember(home: &Home, device: &DeviceSpec, problem: &dyn Problem, planned: &Planned) {
    if planned.cached {
        return;
    }
    let mut features = Vec::new();
    problem.input_features(&mut features);
    let Some(case) = timed(&features, planned) else { return };
    let schema = FeatureSchema { input: problem.schema().input.clone(), config: Vec::new() };
    let mut cases = ChoiceSet::new(schema);
    let recorded = cases.push(case).map_err(tilewright_mtl::MtlError::from).map_err(Error::from);
    let recorded = recorded.and_then(|()| record_cases(home, device, problem.computation().as_str(), &cases));
    if let Err(error) = recorded {
        tracing::warn!(%error, "what was timed is not recorded");
    }
}
