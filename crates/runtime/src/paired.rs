//! Re-timing close candidates against each other.
//!
//! Candidates are timed in interleaved rounds, so that a drift of the machine meets all of them, and compared round by
//! round. Candidates within a tie band count as equal, and the one that the caller ranked first wins: repeated runs
//! choose the same as far as the noise allows. Where chance may put a candidate further behind than the margin, those that may
//! still belong to the band are timed in more rounds.

mod band;
mod polish;

pub(crate) use band::Band;
use band::LOOKS;
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
    /// The margin: candidates this close to the best (relative) count as equal to it. So do those that chance may have put behind it:
    /// the band is as wide as half the margin and what chance adds, where that is more.
    pub tie_band: f64,
    /// The band is never wider than this (relative), or than the margin where that is more: what a choice in it loses at most, as
    /// measured.
    pub tie_most: f64,
    /// Most rounds, and at most three times [`PairedSettings::rounds`]. Those after them are of candidates that may belong to the band,
    /// as long as there are several and chance may put one further behind than the margin.
    pub most_rounds: u32,
    /// Candidates this far behind the best (relative) after a round are not timed again; twice and three times as far after
    /// the first two, when one disturbance is still half of what is known.
    pub drop_beyond: f64,
    /// No further round starts after this much time, and the first one ends: whoever was not timed by then is out.
    pub max_time: Duration,
}

impl Default for PairedSettings {
    fn default() -> Self {
        let max_time = Duration::from_secs(5);
        Self { rounds: 11, tie_band: 0.01, tie_most: 0.03, most_rounds: 33, drop_beyond: 0.06, max_time }
    }
}

/// What a comparison found.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Those that count as equal to the best in the caller's order, then the others by what they cost beside each other, then those
    /// that failed. Candidates that the time did not suffice for are left out.
    pub contenders: Vec<Contender>,
    /// How far behind the best one may be (relative) and count as equal to it.
    pub within: f64,
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
    /// Its cost by the best's, round by round, at least 1; None unless it counts as equal to the best.
    pub tied: Option<f64>,
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

    fn note(&mut self, outcome: Outcome, objective: &Objective) {
        let cost = outcome.as_ref().ok().and_then(|m| objective.cost(m));
        self.active = cost.is_some();
        // One that ran before is only slower now: what it showed by then stands, or a disturbance would leave no result at all.
        if self.costs.is_empty() || !matches!(&outcome, Err(failure) if failure.kind == FailureKind::CutOff) {
            self.last = outcome;
        }
        self.costs.extend(cost);
        self.timed = true;
    }
}

/// Times `count` candidates, ranked best first by the caller, against each other; the winner comes first: of those that count as equal
/// to the best, the one that the caller ranks first. `measure` times one candidate once.
///
/// # Errors
/// What `measure` reports of the device.
pub fn compare(
    count: usize,
    objective: &Objective,
    settings: &PairedSettings,
    clock: &dyn Clock,
    measure: &mut dyn FnMut(usize) -> Result<Outcome, DeviceError>,
) -> Result<Comparison, DeviceError> {
    let empty = |index| Runs { index, costs: Vec::new(), last: Err(not_timed()), timed: false, active: true };
    let mut runs: Vec<Runs> = (0..count).map(empty).collect();
    let (rounds, began) = (settings.rounds.max(1), clock.now());
    for round in 0..rounds.max(settings.most_rounds.min(rounds.saturating_mul(LOOKS))) {
        if round > 0 && clock.now().saturating_sub(began) >= settings.max_time {
            break;
        }
        // Not after every round: each look may lose one by chance.
        if round >= rounds && round % rounds == 0 && !keep_the_close(&mut runs, settings) {
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
            runs[i].note(outcome, objective);
        }
        runs.retain(|r| r.timed);
        let patience = 3u32.saturating_sub(round).max(1);
        drop_the_slow(&mut runs, settings.drop_beyond * f64::from(patience));
    }
    Ok(ranked(runs, settings))
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

/// The band of those that stayed to the end: medians of fewer rounds are not comparable.
fn band(runs: &[Runs]) -> Band {
    Band::of(&runs.iter().map(|r| if r.failed() { &[][..] } else { &r.costs }).collect::<Vec<_>>())
}

/// Lets go of all that are certainly behind the band; whether more rounds make it narrower.
fn keep_the_close(runs: &mut [Runs], settings: &PairedSettings) -> bool {
    let band = band(runs);
    // However wide the band may become in the end: whoever may belong to it stays.
    let near = band.members(band.within(settings.tie_band, f64::INFINITY));
    runs.iter_mut().enumerate().for_each(|(at, r)| r.active = r.active && near.iter().any(|(member, _)| *member == at));
    near.len() > 1 && band.chance > settings.tie_band
}

/// See [`Comparison`].
fn ranked(runs: Vec<Runs>, settings: &PairedSettings) -> Comparison {
    let band = band(&runs);
    let within = band.within(settings.tie_band, settings.tie_most);
    let mut tied = vec![None; runs.len()];
    band.members(within).into_iter().for_each(|(at, relative)| tied[at] = Some(relative));
    let visits = |r: &Runs| r.costs.iter().copied().map(Some).collect();
    let settled = polish(&runs.iter().map(visits).collect::<Vec<Vec<_>>>(), 0.5);
    let settled = settled.into_iter().map(|s| s.unwrap_or(f64::INFINITY));
    let mut all: Vec<Contender> =
        runs.into_iter().zip(settled).zip(tied).map(|((runs, settled), tied)| contender(runs, settled, tied)).collect();
    let place = |c: &Contender| match c.tied {
        Some(_) => (0, 0.0),
        None => (1 + u8::from(c.outcome.is_err()), c.settled),
    };
    all.sort_by(|a, b| {
        let ((a_kind, a_cost), (b_kind, b_cost)) = (place(a), place(b));
        a_kind.cmp(&b_kind).then(a_cost.total_cmp(&b_cost)).then(a.index.cmp(&b.index))
    });
    Comparison { contenders: all, within }
}

fn contender(runs: Runs, settled: f64, tied: Option<f64>) -> Contender {
    let rounds = u32::try_from(runs.costs.len()).unwrap_or(u32::MAX);
    let cost = if runs.failed() { f64::INFINITY } else { runs.median() };
    let outcome = runs.last.map(|last| {
        // The metrics are the last round's, scaled so that the objective is the median's.
        let interval = median_interval(&mut runs.costs.clone());
        let scale = runs.costs.last().map_or(1.0, |l| interval.median / l);
        let relative_error = if rounds < 2 { last.relative_error } else { interval.relative_error().min(1.0) };
        Measurement { time_s: last.time_s * scale, repeats: last.repeats * rounds, relative_error, ..last }
    });
    Contender { index: runs.index, outcome, cost, rounds, costs: runs.costs, settled, tied }
}

#[cfg(test)]
mod tests;
