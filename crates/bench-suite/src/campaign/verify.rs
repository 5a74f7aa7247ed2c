//! Random legal plans of all kernels on odd inputs, against a reference in higher precision.

use super::stages::Progress;
use super::state::{State, Verified};
use super::{Campaign, CampaignError, Deadline};
use crate::cases::{Case, Cases};
use std::collections::VecDeque;
use tilewright_core::program::DeviceError;
use tilewright_core::space::Config;
use tilewright_core::text::counted;
use tilewright_runtime::verify::VerifyError;

/// Cases of each kernel that tell whether it is sound.
const TELLING: u64 = 6;

pub(super) fn run(
    campaign: &Campaign<'_>,
    state: &mut State,
    deadline: Deadline<'_>,
) -> Result<Progress, CampaignError> {
    let wanted = campaign.settings.scale.verify_cases;
    let mut done = true;
    let classes = campaign.classes();
    for (i, (name, class)) in classes.iter().enumerate() {
        let share = deadline.left_s() / (classes.len() - i) as f64;
        let end = std::time::Instant::now() + std::time::Duration::from_secs_f64(share);
        done &= of_class(campaign, state, (name, class), wanted, deadline.until(end))?;
    }
    let total = |f: fn(&Verified) -> u64| state.verify.values().map(f).sum::<u64>();
    let cases = counted(total(|v| v.cases), "case");
    let counts = format!("{cases}, {} wrong, {} failed", total(|v| v.wrong), total(|v| v.failed));
    let unsound = state.unsound();
    // The next run looks again at what is bad, once its cause may be mended.
    let done = done && unsound.is_empty();
    let note = [vec![counts], unsound].concat().join("; ");
    Ok(Progress { done, note })
}

fn of_class(
    campaign: &Campaign<'_>,
    state: &mut State,
    (name, class): (&str, &Config),
    wanted: u64,
    deadline: Deadline<'_>,
) -> Result<bool, CampaignError> {
    // What was bad for a kernel in an earlier run is looked at anew: the cause may be mended.
    let is_sound = |before: &Verified| !before.kernels.values().any(|tally| tally.is_unsound());
    let mut verified = state.verify.remove(name).filter(is_sound).unwrap_or_default();
    let mut cases = Turns::new(campaign, class, verified.cases);
    let ahead = campaign.device().ahead().max(1);
    let mut queue = VecDeque::new();
    let mut lost: Option<CampaignError> = None;
    while verified.cases < wanted && !deadline.over() {
        while queue.len() < ahead && (queue.len() as u64) < wanted - verified.cases {
            let Some(case) = cases.next()? else { break };
            if let Ok(legal) = case.problem.space().check(&case.point) {
                campaign.device().precompile(&[case.problem.program(&legal)]);
            }
            queue.push_back(case);
        }
        let Some(case) = queue.pop_front() else { break };
        if let Err(error) = check(campaign, &case, &mut verified) {
            lost = Some(error.into());
            break;
        }
        if verified.is_unsound(TELLING.min(wanted)) {
            lost = Some(unsound(&verified));
            break;
        }
        if verified.cases.is_multiple_of(20) {
            state.verify.insert(name.to_owned(), verified.clone());
            state.write()?;
        }
    }
    let done = verified.cases >= wanted;
    if done && lost.is_none() && verified.is_unsound(1) {
        lost = Some(unsound(&verified));
    }
    state.verify.insert(name.to_owned(), verified);
    state.write()?;
    lost.map_or(Ok(done), Err)
}

/// The error of a class in which no kernel is sound.
fn unsound(verified: &Verified) -> CampaignError {
    let (failed, of) = (verified.wrong + verified.failed, verified.cases);
    let first = verified.failures.first().cloned().unwrap_or_default();
    CampaignError::Unsound { stage: "verify", failed, of, what: "case", first }
}

/// Runs a case and notes what came of it.
///
/// # Errors
/// The device is lost.
fn check(campaign: &Campaign<'_>, case: &Case, verified: &mut Verified) -> Result<(), DeviceError> {
    let checked = case.check(&mut **campaign.device());
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
    let is_right = checked.as_ref().is_ok_and(|found| found.is_right());
    verified.count(case.problem.kernel().to_string(), is_right);
    match checked {
        Ok(found) => match found.complaint() {
            Some(complaint) => {
                verified.wrong += 1;
                verified.fail(format!("{}: {complaint}", what()));
            }
            None => {
                verified.worst_rel_error = verified.worst_rel_error.max(found.max_rel_error());
                verified.worst_of_bound = verified.worst_of_bound.max(found.worst_of_bound());
            }
        },
        Err(VerifyError::Device(error @ (DeviceError::Missing { .. } | DeviceError::Run(_)))) => return Err(error),
        Err(error) => {
            verified.failed += 1;
            verified.fail(format!("{}: {error}", what()));
        }
    }
    Ok(())
}

/// The cases of a class of inputs in their order. Kernels take turns.
struct Turns<'a> {
    kernels: Vec<Cases<'a>>,
    next: u64,
}

impl<'a> Turns<'a> {
    /// Behind the cases that were verified before, whichever kernels they were of.
    fn new(campaign: &Campaign<'a>, class: &Config, verified: u64) -> Self {
        let (limits, seed) = (campaign.settings.scale.verify_limits, campaign.settings.seed);
        let cases = |&kernel| Cases { kernel, spec: campaign.spec(), fixed: class.clone(), limits, seed };
        let kernels: Vec<Cases<'a>> = campaign.kernels.iter().map(cases).collect();
        Self { next: verified * kernels.len() as u64, kernels }
    }

    /// None if nothing is legal for any kernel.
    fn next(&mut self) -> Result<Option<Case>, CampaignError> {
        let (count, mut refused) = (self.kernels.len() as u64, None);
        for _ in 0..count {
            let number = self.next;
            self.next += 1;
            match self.kernels[(number % count) as usize].draw(number / count) {
                Ok(Some(case)) => return Ok(Some(case)),
                Ok(None) => {}
                // Other kernels may take such inputs.
                Err(error) => refused = Some(error),
            }
        }
        refused.map_or(Ok(None), |error| Err(error.into()))
    }
}
