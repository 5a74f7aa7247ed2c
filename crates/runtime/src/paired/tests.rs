use super::*;
use std::cell::Cell;
use tilewright_core::measurement::{Failure, FailureKind};

struct Still;

impl Clock for Still {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

fn settings() -> PairedSettings {
    let max_time = Duration::from_secs(1);
    PairedSettings { rounds: 5, tie_band: 0.01, tie_most: 0.03, most_rounds: 5, drop_beyond: 0.10, max_time }
}

fn run(count: usize, time: impl Fn(usize, usize) -> f64) -> (Vec<Contender>, Vec<usize>) {
    let calls = Cell::new(0usize);
    let mut order = Vec::new();
    let mut measure = |i: usize| {
        order.push(i);
        let at = calls.replace(calls.get() + 1);
        let t = time(i, at);
        Ok(if t > 0.0 {
            Ok(Measurement::recorded(t))
        } else {
            Err(Failure { kind: FailureKind::Launch, message: "no".into() })
        })
    };
    let found = compare(count, &Objective::default(), &settings(), &Still, &mut measure).unwrap();
    (found.contenders, order)
}

#[test]
fn the_fastest_wins_and_the_slow_are_timed_once() {
    let (found, order) = run(3, |i, _| [1.05, 2.0, 1.0][i]);
    assert_eq!(found.iter().map(|c| c.index).collect::<Vec<_>>(), [2, 0, 1]);
    assert_eq!(order.iter().filter(|i| **i == 1).count(), 1);
    assert_eq!(order[..6], [0, 1, 2, 2, 0, 0], "rounds are interleaved and turn around");
    assert_eq!((found[0].rounds, found[0].cost), (5, 1.0));
}

#[test]
fn ties_go_to_the_first_of_the_ranking_whatever_the_noise() {
    for shift in 0..7 {
        let noise = |i: usize, at: usize| 1.0 + 0.004 * (((at * 31 + i * 17 + shift) % 5) as f64 / 5.0);
        let (found, _) = run(3, |i, at| noise(i, at) * [1.003, 1.0, 1.001][i]);
        assert_eq!(found[0].index, 0, "shift {shift}");
    }
}

#[test]
fn a_drift_of_the_machine_does_not_decide() {
    // The machine slows down by 2% at every timing; the second candidate is 3% faster.
    let (found, _) = run(2, |i, at| [1.03, 1.0][i] * 1.02f64.powi(at as i32));
    assert_eq!(found[0].index, 1);
}

#[test]
fn failures_come_last_and_never_win() {
    let (found, order) = run(3, |i, _| [0.0, 5.0, 6.0][i]);
    assert_eq!(found[0].index, 1);
    assert!(found[2].outcome.is_err() && found[2].cost.is_infinite());
    assert_eq!(order.iter().filter(|i| **i == 0).count(), 1);
    let (found, _) = run(2, |_, _| 0.0);
    assert!(found.iter().all(|c| c.outcome.is_err()));
    assert!(run(0, |_, _| 1.0).0.is_empty());
}

#[test]
fn one_that_fails_late_is_out() {
    let (found, _) = run(2, |i, at| if i == 0 && at > 4 { 0.0 } else { [1.0, 1.01][i] });
    assert_eq!(found[0].index, 1);
}

#[test]
fn a_failing_device_ends_the_comparison() {
    let mut measure = |_| Err(DeviceError::Run("gone".into()));
    let found = compare(2, &Objective::default(), &settings(), &Still, &mut measure);
    assert_eq!(found, Err(DeviceError::Run("gone".into())));
}

/// A second passes at every look.
#[derive(Default)]
struct Ticking(Cell<u64>);

impl Clock for Ticking {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.replace(self.0.get() + 1))
    }
}

#[test]
fn whoever_the_time_does_not_suffice_for_is_left_out() {
    let settings = PairedSettings { max_time: Duration::from_secs(4), ..settings() };
    let mut measure = |i: usize| Ok(Ok(Measurement::recorded(10.0 - i as f64)));
    let found = compare(10, &Objective::default(), &settings, &Ticking::default(), &mut measure).unwrap().contenders;
    assert_eq!(found.iter().map(|c| c.index).collect::<Vec<_>>(), [3, 2, 1, 0]);
}

#[test]
fn what_was_measured_before_a_cut_off_stands() {
    // The machine is disturbed after the first round: all runs miss the limit from then on.
    let mut calls = 0;
    let mut measure = |i: usize| {
        calls += 1;
        let late = || Failure { kind: FailureKind::CutOff, message: "ran 9 s".into() };
        Ok(if calls <= 3 { Ok(Measurement::recorded([1.04, 1.0, 1.06][i])) } else { Err(late()) })
    };
    let found = compare(3, &Objective::default(), &settings(), &Still, &mut measure).unwrap().contenders;
    let costs: Vec<_> = found.iter().map(|c| (c.index, c.cost, c.outcome.is_ok())).collect();
    assert_eq!(costs, [(1, 1.0, true), (0, 1.04, true), (2, 1.06, true)]);
    assert_eq!(calls, 6, "whoever is cut off is not timed again");
}
