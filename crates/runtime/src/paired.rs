//! Re-timing close candidates against each other.
//!
//! Candidates are timed in interleaved rounds, so that a drift of the machine meets all of them, and compared round by
//! round. Candidates within a tie band count as equal, and the one that the caller ranked first wins: repeated runs
//! choose the same as far as the noise allows.

mod polish;

pub use polish::polish;

use std::time::Duration;
use tilewright_core::measurement::{Failure, FailureKind, Measurement, Outcome};
use tilewright_core::objective::Objective;
use tilewright_core::program::DeviceError;
use tilewright_core::timing::{Clock, median_interval};

/// How candidates are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedSettings {
    /// Rounds, each candidate timed once in each.
    pub rounds: u32,
    /// Candidates this close to the best (relative) count as equal to it.
    pub tie_band: f64,
    /// Candidates this far behind the best (relative) after a round are not timed again; twice and three times as far after
    /// the first two, when one disturbance is still half of what is known.
    pub drop_beyond: f64,
    /// No further round starts after this much time, and the first one ends: whoever was not timed by then is out.
    pub max_time: Duration,
}

impl Default for PairedSettings {
    fn default() -> Self {
        Self { rounds: 11, tie_band: 0.01, drop_beyond: 0.06, max_time: Duration::from_secs(5) }
    }
}

/// A candidate after the comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// Its index in the caller's ranking.
    pub index: usize,
    /// The median over its rounds, or why it failed.
    pub outcome: Outcome,
    /// Its cost by the objective; infinite for a failure.
    pub cost: f64,
    /// In how many rounds it was timed.
    pub rounds: u32,
    /// Its cost in each of these rounds, from the first on.
    pub costs: Vec<f64>,
    /// Its cost beside the others', by [`polish`]: comparable with that of candidates that were timed in fewer rounds.
    pub settled: f64,
}

/// What a candidate showed so far.
struct Runs {
    index: usize,
    /// One cost per round.
    costs: Vec<f64>,
    last: Outcome,
    /// Whether it had its turn.
    timed: bool,
    active: bool,
}

impl Runs {
    fn median(&self) -> f64 {
        if self.costs.is_empty() { f64::INFINITY } else { median_interval(&mut self.costs.clone()).median }
    }

    fn failed(&self) -> bool {
        self.last.is_err()
    }
}

/// Times `count` candidates, ranked best first by the caller, against each other; the winner comes first. `measure`
/// times one candidate once. Candidates that the time did not suffice for are left out.
///
/// # Errors
/// What `measure` reports of the device.
pub fn compare(
    count: usize,
    objective: &Objective,
    settings: &PairedSettings,
    clock: &dyn Clock,
    measure: &mut dyn FnMut(usize) -> Result<Outcome, DeviceError>,
) -> Result<Vec<Contender>, DeviceError> {
    let empty = |index| Runs { index, costs: Vec::new(), last: Err(not_timed()), timed: false, active: true };
    let mut runs: Vec<Runs> = (0..count).map(empty).collect();
    let began = clock.now();
    for round in 0..settings.rounds.max(1) {
        if round > 0 && clock.now().saturating_sub(began) >= settings.max_time {
            break;
        }
        let mut order: Vec<usize> = (0..runs.len()).filter(|&i| runs[i].active).collect();
        if round > 0 && order.len() < 2 && runs.iter().any(|r| r.costs.len() > 1) {
            break;
        }
        // Every other round backwards: whoever follows a slow one follows a fast one next time.
        if round % 2 == 1 {
            order.reverse();
        }
        for i in order {
            if round == 0 && i > 0 && clock.now().saturating_sub(began) >= settings.max_time {
                break;
            }
            let outcome = measure(runs[i].index)?;
            let cost = outcome.as_ref().ok().and_then(|m| objective.cost(m));
            runs[i].active = cost.is_some();
            // One that ran before is only slower now: what it showed by then stands, or a disturbance would leave no result at all.
            if runs[i].costs.is_empty() || !matches!(&outcome, Err(failure) if failure.kind == FailureKind::CutOff) {
                runs[i].last = outcome;
            }
            runs[i].costs.extend(cost);
            runs[i].timed = true;
        }
        runs.retain(|r| r.timed);
        let patience = 3u32.saturating_sub(round).max(1);
        drop_the_slow(&mut runs, settings.drop_beyond * f64::from(patience));
    }
    Ok(ranked(runs, settings.tie_band))
}

fn not_timed() -> Failure {
    Failure { kind: FailureKind::Launch, message: "was not timed".into() }
}

fn drop_the_slow(runs: &mut [Runs], beyond: f64) {
    let best = runs.iter().filter(|r| !r.failed()).map(Runs::median).fold(f64::INFINITY, f64::min);
    for r in runs {
        r.active = r.active && r.median() <= best * (1.0 + beyond);
    }
}

/// The winner of the tie band first, then the others by what they cost beside each other.
fn ranked(runs: Vec<Runs>, tie_band: f64) -> Vec<Contender> {
    // Only those that stayed to the end are contenders for the first place; medians of fewer rounds are not comparable.
    let most = runs.iter().filter(|r| !r.failed()).map(|r| r.costs.len()).max().unwrap_or(0);
    let finalists = || runs.iter().filter(move |r| !r.failed() && r.costs.len() == most);
    let best = finalists().min_by(|a, b| a.median().total_cmp(&b.median()).then(a.index.cmp(&b.index)));
    let winner = best.and_then(|best| finalists().find(|r| ratio(r, best) <= 1.0 + tie_band)).map(|r| r.index);
    let key = |r: &Runs| (r.failed(), Some(r.index) != winner);
    let visits = |r: &Runs| r.costs.iter().copied().map(Some).collect();
    let settled = polish(&runs.iter().map(visits).collect::<Vec<Vec<_>>>(), 0.5);
    let mut all: Vec<(f64, Runs)> = settled.into_iter().map(|s| s.unwrap_or(f64::INFINITY)).zip(runs).collect();
    all.sort_by(|(a_cost, a), (b_cost, b)| {
        key(a).cmp(&key(b)).then(a_cost.total_cmp(b_cost)).then(a.index.cmp(&b.index))
    });
    all.into_iter().map(|(settled, runs)| contender(runs, settled)).collect()
}

/// The cost of `a` by that of `b`, over their common rounds: the geometric mean of the median of the forward rounds and
/// that of the backward ones, in which a steady drift cancels.
fn ratio(a: &Runs, b: &Runs) -> f64 {
    let median = |parity: usize| {
        let ratios = a.costs.iter().zip(&b.costs).map(|(a, b)| a / b);
        let mut ratios: Vec<f64> = ratios.skip(parity).step_by(2).collect();
        if ratios.is_empty() { None } else { Some(median_interval(&mut ratios).median) }
    };
    match (median(0), median(1)) {
        (Some(forward), Some(backward)) => (forward * backward).sqrt(),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => 1.0,
    }
}

fn contender(runs: Runs, settled: f64) -> Contender {
    let rounds = u32::try_from(runs.costs.len()).unwrap_or(u32::MAX);
    let cost = if runs.failed() { f64::INFINITY } else { runs.median() };
    let outcome = runs.last.map(|last| {
        // The metrics are the last round's, scaled so that the objective is the median's.
        let interval = median_interval(&mut runs.costs.clone());
        let scale = runs.costs.last().map_or(1.0, |l| interval.median / l);
        let relative_error = if rounds < 2 { last.relative_error } else { interval.relative_error().min(1.0) };
        Measurement { time_s: last.time_s * scale, repeats: last.repeats * rounds, relative_error, ..last }
    });
    Contender { index: runs.index, outcome, cost, rounds, costs: runs.costs, settled }
}

#[cfg(test)]
mod tests;
