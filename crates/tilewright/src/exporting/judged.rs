//! Right results, and what choices lose on inputs that the tree has not seen.

use super::timed::contenders;
use super::{Candidate, Exporting, Phase};
use crate::error::Error;
use crate::planning::problem;
use std::collections::HashSet;
use std::time::{Duration, Instant};
use tilewright_core::problem::{Measure, Problem};
use tilewright_core::program::DeviceError;
use tilewright_core::space::{Config, Point};
use tilewright_export::{Artefact, Loss, Regret};
use tilewright_runtime::RuntimeError;
use tilewright_runtime::paired::PairedSettings;
use tilewright_runtime::verify::{Verifier, VerifyError, VerifySettings};
use tilewright_search::drive::Limits;

/// Rounds in which a tree's choice and a plan's are timed in turn.
const ROUNDS: u32 = 15;

/// Of the time for a held-out input, the part that its plan takes.
const PLANNED: f64 = 0.6;

/// An input that judged an artefact.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOut {
    /// The input.
    pub input: Config,
    /// What the artefact chose.
    pub chosen: Config,
    /// What a plan chose.
    pub planned: Config,
    /// Seconds of both, timed in turn; none where they are the same.
    pub seconds: Option<[f64; 2]>,
    /// The logarithm of the first by the second.
    pub loss: f64,
}

/// Configurations that were found right.
#[derive(Default)]
pub(super) struct Checked(HashSet<usize>);

impl Checked {
    /// The first of these candidates whose result is wrong, each on the smallest input that it is legal for.
    pub(super) fn first_wrong(
        &mut self,
        measure: &mut dyn Measure,
        problems: &[Box<dyn Problem>],
        candidates: &[Candidate],
        chosen: &[usize],
    ) -> Result<Option<(usize, String)>, Error> {
        let mut by_work: Vec<&dyn Problem> = problems.iter().map(|problem| &**problem).collect();
        by_work.sort_by(|a, b| (a.work().flops + a.work().bytes).total_cmp(&(b.work().flops + b.work().bytes)));
        for &at in chosen {
            let point = &candidates[at].point;
            let legal: Vec<&dyn Problem> = by_work.iter().copied().filter(|p| p.space().is_legal(point)).collect();
            // Those without work say little.
            let of = legal.iter().find(|p| p.work().flops > 0.0).or(legal.first()).copied();
            let Some(problem) = of.filter(|_| !self.0.contains(&at)) else { continue };
            if let Some(complaint) = complaint(measure, problem, point)? {
                return Ok(Some((at, complaint)));
            }
            self.0.insert(at);
        }
        Ok(None)
    }
}

/// What is wrong with the result of a point; nothing where the device cannot say.
pub(super) fn complaint(
    measure: &mut dyn Measure,
    problem: &dyn Problem,
    point: &Point,
) -> Result<Option<String>, Error> {
    let Some(device) = measure.device() else { return Ok(None) };
    match Verifier::new(VerifySettings::default()).check(device, problem, point) {
        Ok(found) => Ok(found.complaint()),
        Err(VerifyError::Device(error @ (DeviceError::Missing { .. } | DeviceError::Run(_)))) => {
            Err(RuntimeError::from(error).into())
        }
        Err(error) => Ok(Some(error.to_string())),
    }
}

/// Plans each input and times the artefact's choice beside the plan's, until a time since the clock's start.
pub(super) fn judge(
    of: &mut Exporting<'_>,
    measure: &mut dyn Measure,
    artefact: &Artefact,
    inputs: &[Config],
    (until, clock): (Duration, &Instant),
) -> Result<Vec<HeldOut>, Error> {
    let mut out = Vec::new();
    for (at, input) in inputs.iter().enumerate() {
        (of.told)(Phase::Judging, at, inputs.len());
        let left = until.saturating_sub(clock.elapsed()) / (inputs.len() - at) as u32;
        if left == Duration::ZERO && !out.is_empty() {
            break;
        }
        let time = left.max(Duration::from_millis(2));
        let Some(planned) = of.plan(measure, input, time.mul_f64(PLANNED))? else { continue };
        let problem = problem(&**of.kernel, of.device, input)?;
        let chosen = artefact.choose(input).ok().flatten().map(|at| artefact.contents().choices[at].config.clone());
        // Where the artefact has no legal answer, the kernel's default stands in, as a plan by the artefact says.
        let point = chosen.and_then(|config| config.to_point(problem.space().params(), None).ok());
        let point = point.filter(|point| problem.space().is_legal(point)).or_else(|| problem.default_point());
        let Some(point) = point else { continue };
        out.push(beside(measure, &*problem, [point, planned.point], time.mul_f64(1.0 - PLANNED))?);
    }
    Ok(out)
}

/// Two points of a problem, in turn; a wrong or failing choice loses a lot.
fn beside(
    measure: &mut dyn Measure,
    problem: &dyn Problem,
    [chosen, planned]: [Point; 2],
    time: Duration,
) -> Result<HeldOut, Error> {
    let config = |point: &Point| problem.space().config(point);
    let mut out = HeldOut {
        input: problem.input(),
        chosen: config(&chosen),
        planned: config(&planned),
        seconds: None,
        loss: 0.0,
    };
    if chosen == planned {
        return Ok(out);
    }
    let wrong = complaint(measure, problem, &chosen)?;
    let paired = PairedSettings {
        rounds: ROUNDS,
        tie_band: 0.0,
        tie_most: 0.0,
        most_rounds: 0,
        drop_beyond: f64::INFINITY,
        max_time: time,
    };
    let limits = Limits { cut_off: f64::INFINITY, rough: f64::INFINITY };
    let found = contenders(problem, measure, &[chosen, planned], (&paired, limits))?;
    let cost =
        |index: usize| found.iter().find(|one| one.index == index).map(|one| one.settled).filter(|s| s.is_finite());
    match (cost(0).filter(|_| wrong.is_none()), cost(1)) {
        (Some(own), Some(best)) => (out.seconds, out.loss) = (Some([own, best]), (own / best).ln()),
        (None, Some(_)) => out.loss = FAILED,
        _ => {}
    }
    if let Some(complaint) = wrong {
        tracing::error!(input = %out.input, config = %out.chosen, %complaint, "wrong result");
    }
    Ok(out)
}

/// What a choice loses that fails, as the logarithm of a factor.
const FAILED: f64 = 3.0;

/// The artefact with what held-out inputs say.
pub(super) fn with_regret(artefact: Artefact, judged: &[HeldOut]) -> Artefact {
    let losses: Vec<f64> = judged.iter().map(|one| one.loss).collect();
    let regret = Regret { held_out: Loss::of(&losses), ..artefact.contents().regret };
    artefact.with_regret(regret)
}
