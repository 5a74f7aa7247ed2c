use super::*;
use std::cell::{Cell, RefCell};

/// A clock that a scripted run advances.
struct Script {
    now: Cell<Duration>,
    calls: Cell<u32>,
    evictions: Cell<u32>,
    times: RefCell<Box<dyn FnMut(u32) -> Duration>>,
}

impl Clock for Script {
    fn now(&self) -> Duration {
        self.now.get()
    }
}

impl Script {
    /// Call number `i` (from zero) takes `times(i)`.
    fn new(times: impl FnMut(u32) -> Duration + 'static) -> Self {
        let (now, calls, evictions) = (Cell::default(), Cell::default(), Cell::default());
        Self { now, calls, evictions, times: RefCell::new(Box::new(times)) }
    }

    fn measure(&self, policy: &Timing) -> Result<Measurement, MeasureError> {
        let mut run = || {
            let i = self.calls.replace(self.calls.get() + 1);
            self.now.set(self.now.get() + (self.times.borrow_mut())(i));
            Ok(())
        };
        let mut evict = || {
            self.evictions.set(self.evictions.get() + 1);
            self.now.set(self.now.get() + Duration::from_millis(7));
        };
        measure_runs(self, policy, &mut run, &mut evict)
    }
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn steady_runs_stop_at_the_fewest_repeats() {
    let script = Script::new(|i| if i == 0 { 30 * MS } else { 2 * MS });
    let m = script.measure(&Timing::default()).unwrap();
    assert!((m.time_s - 2e-3).abs() < 1e-12, "the warm-up is not counted: {m:?}");
    assert_eq!((m.repeats, script.calls.get()), (3, 4));
    assert!(m.relative_error < 1e-9);
}

#[test]
fn noisy_runs_are_repeated_until_the_interval_is_narrow() {
    let noisy = |i: u32| Duration::from_micros(1000 + u64::from(i * 7919 % 100));
    let policy =
        Timing { max_time: Duration::from_secs(9), max_repeats: 500, relative_error: 0.01, ..Timing::default() };
    let few = Script::new(noisy).measure(&policy).unwrap();
    assert!(few.repeats > 3 && few.relative_error <= 0.01, "{few:?}");
    let wide = Script::new(noisy).measure(&Timing { relative_error: 0.2, ..policy.clone() }).unwrap();
    assert!(wide.repeats < few.repeats);
    let capped =
        Script::new(noisy).measure(&Timing { relative_error: 0.0, max_repeats: 20, ..policy.clone() }).unwrap();
    assert_eq!(capped.repeats, 20);
    let timed = Script::new(noisy).measure(&Timing { relative_error: 0.0, max_time: 10 * MS, ..policy }).unwrap();
    assert!(timed.repeats >= 9 && timed.repeats <= 10, "{timed:?}");
}

#[test]
fn short_calls_are_timed_in_batches() {
    let script = Script::new(|_| Duration::from_nanos(100));
    let m = script.measure(&Timing::default()).unwrap();
    assert!((m.time_s - 100e-9).abs() < 1e-15, "{m:?}");
    assert!(script.calls.get() >= 3 * 200, "a batch is at least 20 us: {} calls", script.calls.get());
}

#[test]
fn a_run_without_any_duration_ends() {
    let m = Script::new(|_| Duration::ZERO).measure(&Timing::default()).unwrap();
    assert!(m.time_s > 0.0 && m.time_s < 1e-9);
}

#[test]
fn a_slow_first_run_is_cut_off_at_once() {
    let script = Script::new(|_| 50 * MS);
    let policy = Timing { cut_off: Some(10 * MS), ..Timing::default() };
    let Err(MeasureError::Failed(failure)) = script.measure(&policy) else { panic!("not cut off") };
    assert_eq!(failure.kind, FailureKind::CutOff);
    assert!(failure.message.contains("5.000e-2") && failure.message.contains("1.000e-2"), "{failure}");
    assert_eq!(script.calls.get(), 1);
}

#[test]
fn a_short_first_run_gets_a_second_chance() {
    let us = Duration::from_micros;
    let script = Script::new(move |i| if i == 0 { us(900) } else { us(50) });
    let m = script.measure(&Timing { cut_off: Some(us(200)), ..Timing::default() }).unwrap();
    assert!((m.time_s - 50e-6).abs() < 1e-12);
    let slow = Script::new(move |_| us(900));
    assert!(slow.measure(&Timing { cut_off: Some(us(200)), ..Timing::default() }).is_err());
    assert_eq!(slow.calls.get(), 2);
}

#[test]
fn what_is_far_from_the_best_is_run_once() {
    let policy = Timing { rough_beyond: Some(10 * MS), cut_off: Some(40 * MS), warmup: 3, ..Timing::default() };
    let script = Script::new(|_| 20 * MS);
    let m = script.measure(&policy).unwrap();
    assert_eq!((script.calls.get(), m.repeats), (1, 1));
    assert!((m.time_s - 20e-3).abs() < 1e-12);
    assert!(m.relative_error >= 1.0, "one run tells nothing about its error");
    assert!(Script::new(|_| 50 * MS).measure(&policy).is_err());
    let near = Script::new(|_| 5 * MS);
    assert_eq!((near.measure(&policy).unwrap().repeats, near.calls.get()), (3, 6));
}

#[test]
fn cold_runs_are_evicted_and_never_batched() {
    let script = Script::new(|_| Duration::from_nanos(500));
    let m = script.measure(&Timing { cache: CachePolicy::Cold, warmup: 2, ..Timing::default() }).unwrap();
    assert_eq!(m.repeats, 3);
    assert_eq!((script.calls.get(), script.evictions.get()), (5, 5));
    assert!((m.time_s - 500e-9).abs() < 1e-15, "the eviction is not counted: {m:?}");
}

#[test]
fn a_failing_run_ends_the_measurement() {
    let mut calls = 0;
    let mut run = || {
        calls += 1;
        if calls == 3 { Err(DeviceError::Run("broken".into())) } else { Ok(()) }
    };
    let result = measure_runs(&Instant::now(), &Timing::default(), &mut run, &mut || {});
    assert_eq!(result, Err(MeasureError::Device(DeviceError::Run("broken".into()))));
}

#[test]
fn short_calls_are_judged_by_a_batch() {
    let cold = |i: u32| Duration::from_nanos(if i < 2 { 3_000 } else { 300 });
    let policy = Timing { cut_off: Some(Duration::from_nanos(900)), ..Timing::default() };
    let m = Script::new(cold).measure(&policy).unwrap();
    assert!((m.time_s - 3e-7).abs() < 1e-12, "{m:?}");
    let slow = Script::new(|_| Duration::from_nanos(1_000)).measure(&policy);
    assert!(matches!(slow, Err(MeasureError::Failed(f)) if f.kind == FailureKind::CutOff));
}

#[test]
fn a_batch_of_given_length_is_one_interval() {
    let one = Timing { min_repeats: 1, max_repeats: 1, batch: Some(5), ..Timing::default() };
    for (warmup, calls) in [(0, 5), (1, 6)] {
        let script = Script::new(move |i| if i < warmup { 30 * MS } else { (1 + i - warmup) * MS });
        let m = script.measure(&Timing { warmup, ..one.clone() }).unwrap();
        assert!((m.time_s - 3e-3).abs() < 1e-12, "{m:?}");
        assert_eq!(script.calls.get(), calls);
    }
    let script = Script::new(|_| MS);
    script.measure(&Timing { cache: CachePolicy::Cold, ..one }).unwrap();
    assert_eq!((script.calls.get(), script.evictions.get()), (2, 2), "every cold run is timed by itself");
}
