//! Random legal plans of all kernels on odd inputs, against a reference in higher precision.

use super::stages::Progress;
use super::state::{State, Verified};
use super::{Campaign, CampaignError, Deadline};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::sync::Arc;
use tilewright_core::buffer::{Filling, Verdict};
use tilewright_core::data::Data;
use tilewright_core::device::Device;
use tilewright_core::problem::Problem;
use tilewright_core::program::{DeviceError, Program};
use tilewright_core::space::{Config, Point};
use tilewright_sampler::{Chained, Sampler, Settings};

/// Cases of one input.
const PER_INPUT: usize = 4;

/// Inputs in a row without a legal point after which a class counts as having none.
const MOST_IDLE: usize = 1000;

struct Case {
    problem: Arc<dyn Problem>,
    point: Point,
    program: Program,
    filling: Filling,
    seed: u64,
}

pub(super) fn run(campaign: &Campaign<'_>, state: &mut State, deadline: Deadline) -> Result<Progress, CampaignError> {
    let wanted = campaign.settings.scale.verify_cases;
    let mut done = true;
    let classes = campaign.classes();
    for (i, (name, class)) in classes.iter().enumerate() {
        let share = deadline.left_s() / (classes.len() - i) as f64;
        let end = std::time::Instant::now() + std::time::Duration::from_secs_f64(share);
        done &= of_class(campaign, state, (name, Cases::new(campaign, i, class)), wanted, Deadline { end })?;
    }
    let total = |f: fn(&Verified) -> u64| state.verify.values().map(f).sum::<u64>();
    let note = format!("{} cases, {} wrong, {} failed", total(|v| v.cases), total(|v| v.wrong), total(|v| v.failed));
    Ok(Progress { done, note })
}

fn of_class(
    campaign: &Campaign<'_>,
    state: &mut State,
    (name, mut cases): (&str, Cases<'_>),
    wanted: u64,
    deadline: Deadline,
) -> Result<bool, CampaignError> {
    let mut verified = state.verify.remove(name).unwrap_or_default();
    cases.skip(verified.cases);
    let ahead = campaign.device().ahead().max(1);
    let mut queue = VecDeque::new();
    let mut lost = None;
    while verified.cases < wanted && !deadline.over() {
        while queue.len() < ahead && (queue.len() as u64) < wanted - verified.cases {
            let Some(case) = cases.next()? else { break };
            campaign.device().precompile(std::slice::from_ref(&case.program));
            queue.push_back(case);
        }
        let Some(case) = queue.pop_front() else { break };
        if let Err(error) = check(campaign, &case, &mut verified) {
            lost = Some(error);
            break;
        }
        if verified.cases.is_multiple_of(20) {
            state.verify.insert(name.to_owned(), verified.clone());
            state.write()?;
        }
    }
    let done = verified.cases >= wanted;
    state.verify.insert(name.to_owned(), verified);
    state.write()?;
    lost.map_or(Ok(done), |error| Err(error.into()))
}

/// Runs a case and notes what came of it.
///
/// # Errors
/// The device is lost.
fn check(campaign: &Campaign<'_>, case: &Case, verified: &mut Verified) -> Result<(), DeviceError> {
    let work = Arc::new(case.problem.workload(case.filling, case.seed));
    let expected = case.problem.reference(&work.buffers, &work.scalars);
    let mut device = campaign.device();
    let ran = device.upload(&Data::Given(work)).and_then(|()| device.run(&case.program)).and_then(|()| device.read());
    verified.cases += 1;
    let what = || {
        let config = case.problem.space().config(&case.point);
        format!(
            "{} of {} with {config} on {:?} data, seed {}",
            case.problem.kernel(),
            case.problem.input(),
            case.filling,
            case.seed
        )
    };
    match ran {
        Ok(after) => {
            let Verdict { wrong, first, max_rel_error, worst_of_bound } = expected.compare(&after);
            if wrong > 0 {
                verified.wrong += 1;
                verified.fail(format!("{}: {wrong} wrong elements, the first {first:?}", what()));
            } else {
                verified.worst_rel_error = verified.worst_rel_error.max(max_rel_error);
                verified.worst_of_bound = verified.worst_of_bound.max(worst_of_bound);
            }
            Ok(())
        }
        Err(error @ (DeviceError::Missing { .. } | DeviceError::Run(_))) => Err(error),
        Err(error) => {
            verified.failed += 1;
            verified.fail(format!("{}: {error}", what()));
            Ok(())
        }
    }
}

/// The cases of a class of inputs in their order, the same for the same seed. Kernels take turns.
struct Cases<'a> {
    campaign: &'a Campaign<'a>,
    class: usize,
    fixed: &'a Config,
    samplers: Vec<Chained>,
    rng: ChaCha8Rng,
    waiting: VecDeque<Case>,
    inputs: usize,
    made: usize,
}

impl<'a> Cases<'a> {
    fn new(campaign: &'a Campaign<'a>, class: usize, fixed: &'a Config) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(campaign.settings.seed);
        let samplers = campaign.kernels.iter().map(|k| Chained::new(k.space(), Settings::default())).collect();
        Self { campaign, class, fixed, samplers, rng, waiting: VecDeque::new(), inputs: 0, made: 0 }
    }

    /// A stream of its own for each run: what was verified already is not drawn again.
    fn skip(&mut self, cases: u64) {
        self.rng.set_stream(cases * 16 + self.class as u64);
    }

    /// None if nothing is legal.
    fn next(&mut self) -> Result<Option<Case>, CampaignError> {
        for _ in 0..MOST_IDLE {
            if let Some(case) = self.waiting.pop_front() {
                return Ok(Some(case));
            }
            let (campaign, rng, at) = (self.campaign, &mut self.rng, self.inputs % self.samplers.len());
            self.inputs += 1;
            let (kernel, limits) = (campaign.kernels[at], &campaign.settings.scale.verify_limits);
            let fields = kernel.draw(self.fixed, limits, &mut || rng.random())?;
            let Ok(problem) = kernel.problem(&campaign.spec(), &fields) else { continue };
            let problem: Arc<dyn Problem> = Arc::from(problem);
            for _ in 0..PER_INPUT {
                let Ok(draw) = self.samplers[at].draw(problem.space(), &mut self.rng) else { break };
                let point = draw.point;
                let Ok(legal) = problem.space().check(&point) else { continue };
                let program = problem.program(&legal);
                let filling = [Filling::Real, Filling::Exact, Filling::Special][self.made % 3];
                self.made += 1;
                let seed = self.rng.random::<u64>() >> 12;
                self.waiting.push_back(Case { problem: problem.clone(), point, program, filling, seed });
            }
        }
        Ok(None)
    }
}
