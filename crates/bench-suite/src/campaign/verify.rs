//! Random legal plans on odd inputs, against a reference in higher precision.

use super::stages::Progress;
use super::state::{State, Verified};
use super::{Campaign, CampaignError, DTYPES, Deadline};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::sync::Arc;
use tilewright_core::buffer::{Filling, Verdict};
use tilewright_core::data::Data;
use tilewright_core::device::Device;
use tilewright_core::dtype::DType;
use tilewright_core::problem::Problem;
use tilewright_core::program::{DeviceError, Program};
use tilewright_core::space::{Config, Point};
use tilewright_sampler::{Chained, Sampler, Settings};

/// Cases of one input.
const PER_INPUT: usize = 4;

/// Inputs in a row without a legal point after which a type counts as having none.
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
    for (i, dtype) in DTYPES.into_iter().enumerate() {
        let share = deadline.left_s() / (DTYPES.len() - i) as f64;
        let end = std::time::Instant::now() + std::time::Duration::from_secs_f64(share);
        done &= of_type(campaign, state, dtype, wanted, Deadline { end })?;
    }
    let total = |f: fn(&Verified) -> u64| state.verify.values().map(f).sum::<u64>();
    let note = format!("{} cases, {} wrong, {} failed", total(|v| v.cases), total(|v| v.wrong), total(|v| v.failed));
    Ok(Progress { done, note })
}

fn of_type(
    campaign: &Campaign<'_>,
    state: &mut State,
    dtype: DType,
    wanted: u64,
    deadline: Deadline,
) -> Result<bool, CampaignError> {
    let mut verified = state.verify.remove(dtype.name()).unwrap_or_default();
    let mut cases = Cases::new(campaign, dtype, verified.cases);
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
            state.verify.insert(dtype.name().into(), verified.clone());
            state.write()?;
        }
    }
    let done = verified.cases >= wanted;
    state.verify.insert(dtype.name().into(), verified);
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
        format!("{} with {config} on {:?} data, seed {}", case.problem.input(), case.filling, case.seed)
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

/// The cases of an element type in their order, the same for the same seed.
struct Cases<'a> {
    campaign: &'a Campaign<'a>,
    fixed: Config,
    sampler: Chained,
    rng: ChaCha8Rng,
    waiting: VecDeque<Case>,
    made: usize,
}

impl<'a> Cases<'a> {
    fn new(campaign: &'a Campaign<'a>, dtype: DType, skip: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(campaign.settings.seed);
        // A stream of its own for each run: what was verified already is not drawn again.
        rng.set_stream(skip * 16 + dtype.size() as u64);
        let fixed = Config(vec![("dtype".into(), dtype.name().into())]);
        let sampler = Chained::new(campaign.kernel.space(), Settings::default());
        Self { campaign, fixed, sampler, rng, waiting: VecDeque::new(), made: 0 }
    }

    /// None if nothing is legal.
    fn next(&mut self) -> Result<Option<Case>, CampaignError> {
        for _ in 0..MOST_IDLE {
            if let Some(case) = self.waiting.pop_front() {
                return Ok(Some(case));
            }
            let (campaign, rng) = (self.campaign, &mut self.rng);
            let limits = &campaign.settings.scale.verify_limits;
            let words = campaign.kernel.draw(&self.fixed, limits, &mut || rng.random())?;
            let problem: Arc<dyn Problem> = Arc::from(campaign.kernel.problem(&campaign.spec(), &words)?);
            for _ in 0..PER_INPUT {
                let Ok(draw) = self.sampler.draw(problem.space(), &mut self.rng) else { break };
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
