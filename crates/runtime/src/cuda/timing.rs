//! What is timed on a device, and how: see the [module above](super).

use std::collections::BTreeMap;
use std::time::Duration;
use tilewright_core::measurement::{CachePolicy, Failure, FailureKind, Measurement, Timing};
use tilewright_core::problem::MeasureError;
use tilewright_core::program::DeviceError;
use tilewright_core::timing::{Clock, median_interval};

/// Shortest stretch between two readings of the clock, whose step is half a microsecond.
pub const STRETCH: Duration = Duration::from_micros(400);

/// Most runs of a stretch.
pub const MOST_RUNS: u32 = 256;

/// A first run shorter than this that misses a limit gets a second chance as part of a stretch: its launch, and the driver's
/// loading of the code at the first launch, may be most of it.
const SECOND_CHANCE: f64 = 2e-3;

/// How runs are put on a device. Seconds are by the device's clock.
pub trait Lane {
    /// The time of one run, launched by itself.
    ///
    /// # Errors
    /// What the device reports.
    fn once(&mut self) -> Result<f64, DeviceError>;

    /// The time of so many runs, recorded before and launched as one.
    ///
    /// # Errors
    /// What the device reports.
    fn stretch(&mut self, runs: u32) -> Result<f64, DeviceError>;

    /// Puts the overwriting of the caches on the device.
    ///
    /// # Errors
    /// What the device reports.
    fn evict(&mut self) -> Result<(), DeviceError>;
}

/// Times runs under a policy.
///
/// # Errors
/// What the device reports, or a [`FailureKind::CutOff`] with the time and the limit.
pub fn measure(lane: &mut dyn Lane, clock: &dyn Clock, policy: &Timing) -> Result<Measurement, MeasureError> {
    let cold = policy.cache == CachePolicy::Cold;
    let mut single = one(lane, cold)?;
    let runs = |single: f64| (STRETCH.as_secs_f64() / single.max(1e-9)).ceil().clamp(1.0, f64::from(MOST_RUNS)) as u32;
    let limits = [policy.cut_off, policy.rough_beyond];
    let misses = |time: f64| limits.iter().flatten().any(|l| time > l.as_secs_f64());
    if misses(single) && single < SECOND_CHANCE {
        single = single.min(match runs(single) {
            count if count > 1 && !cold => lane.stretch(count)? / f64::from(count),
            _ => one(lane, cold)?,
        });
    }
    if let Some(limit) = policy.cut_off.map(|l| l.as_secs_f64()).filter(|l| single > *l) {
        let message = format!("ran {single:.3e} s, cut off beyond {limit:.3e} s");
        return Err(Failure { kind: FailureKind::CutOff, message }.into());
    }
    if policy.rough_beyond.is_some_and(|l| single > l.as_secs_f64()) {
        return Ok(measurement(&mut [single]));
    }
    for _ in 1..policy.warmup {
        single = single.min(one(lane, cold)?);
    }
    let runs = if cold { 1 } else { policy.batch.map_or_else(|| runs(single), |most| most.clamp(1, MOST_RUNS)) };
    let mut samples = Vec::new();
    let began = clock.now();
    loop {
        samples.push(match runs {
            1 => one(lane, cold)?,
            _ => lane.stretch(runs)? / f64::from(runs),
        });
        let enough = samples.len() >= policy.min_repeats.max(1) as usize;
        let interval = median_interval(&mut samples);
        let over =
            samples.len() >= policy.max_repeats.max(1) as usize || clock.now().saturating_sub(began) >= policy.max_time;
        if enough && (interval.relative_error() <= policy.relative_error || over) {
            return Ok(measurement(&mut samples));
        }
    }
}

fn one(lane: &mut dyn Lane, cold: bool) -> Result<f64, DeviceError> {
    if cold {
        lane.evict()?;
    }
    lane.once()
}

fn measurement(samples: &mut [f64]) -> Measurement {
    let interval = median_interval(samples);
    Measurement {
        // A clock that did not advance still leaves a positive time, which costs must be.
        time_s: interval.median.max(1e-12),
        repeats: u32::try_from(samples.len()).unwrap_or(u32::MAX),
        // One repeat has no interval; infinity would not survive JSON.
        relative_error: interval.relative_error().min(1.0),
        metrics: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A device whose launches cost time unless they are recorded.
    #[derive(Default)]
    struct Script {
        run_s: f64,
        launch_s: f64,
        first_s: f64,
        calls: Vec<String>,
    }

    impl Lane for Script {
        fn once(&mut self) -> Result<f64, DeviceError> {
            let first = if self.calls.is_empty() { self.first_s } else { 0.0 };
            self.calls.push("once".into());
            Ok(self.run_s + self.launch_s + first)
        }

        fn stretch(&mut self, runs: u32) -> Result<f64, DeviceError> {
            self.calls.push(format!("stretch {runs}"));
            Ok(self.run_s * f64::from(runs))
        }

        fn evict(&mut self) -> Result<(), DeviceError> {
            self.calls.push("evict".into());
            Ok(())
        }
    }

    /// Every look takes a millisecond.
    #[derive(Default)]
    struct Ticks(Cell<u32>);

    impl Clock for Ticks {
        fn now(&self) -> Duration {
            self.0.set(self.0.get() + 1);
            Duration::from_millis(self.0.get().into())
        }
    }

    fn script(run_s: f64) -> Script {
        Script { run_s, launch_s: 5e-6, ..Script::default() }
    }

    fn time(script: &mut Script, policy: &Timing) -> Result<Measurement, MeasureError> {
        measure(script, &Ticks::default(), policy)
    }

    #[test]
    fn short_runs_are_timed_without_their_launches() {
        let mut short = script(10e-6);
        let m = time(&mut short, &Timing::default()).unwrap();
        assert!((m.time_s - 10e-6).abs() < 1e-12, "{m:?}");
        assert_eq!(short.calls, ["once", "stretch 27", "stretch 27", "stretch 27"]);
        let mut tiny = Script { launch_s: 1e-6, ..script(1e-7) };
        time(&mut tiny, &Timing::default()).unwrap();
        assert_eq!(tiny.calls[1], format!("stretch {MOST_RUNS}"));
        let mut long = script(1e-3);
        time(&mut long, &Timing::default()).unwrap();
        assert_eq!(long.calls, ["once"; 4]);
    }

    #[test]
    fn cold_runs_are_evicted_and_alone() {
        let mut cold = script(10e-6);
        let policy = Timing { cache: CachePolicy::Cold, warmup: 2, ..Timing::default() };
        assert_eq!(time(&mut cold, &policy).unwrap().repeats, 3);
        assert_eq!(cold.calls, ["evict", "once"].repeat(5));
    }

    #[test]
    fn limits_hold_for_the_run_and_not_for_its_launch() {
        let limit = |s| Some(Duration::from_secs_f64(s));
        let mut slow = script(5e-3);
        let Err(MeasureError::Failed(f)) = time(&mut slow, &Timing { cut_off: limit(2e-3), ..Timing::default() })
        else {
            panic!("not cut off")
        };
        assert_eq!((f.kind, slow.calls.len()), (FailureKind::CutOff, 1));
        // The launch alone would miss it.
        let policy = Timing { cut_off: limit(4e-6), ..Timing::default() };
        assert!((time(&mut script(3e-6), &policy).unwrap().time_s - 3e-6).abs() < 1e-12);
        assert!(time(&mut script(5e-6), &policy).is_err());
        // Loading the code took most of the first run.
        let mut late = Script { first_s: 1e-3, ..script(5e-6) };
        assert!(
            (time(&mut late, &Timing { cut_off: limit(1e-4), ..Timing::default() }).unwrap().time_s - 5e-6).abs()
                < 1e-12
        );
        let mut rough = script(5e-3);
        let m = time(&mut rough, &Timing { rough_beyond: limit(2e-3), ..Timing::default() }).unwrap();
        assert_eq!((m.repeats, rough.calls.len(), m.relative_error), (1, 1, 1.0));
    }

    #[test]
    fn a_failure_of_the_device_ends_it() {
        struct Broken;
        impl Lane for Broken {
            fn once(&mut self) -> Result<f64, DeviceError> {
                Err(DeviceError::Hang { after_ms: 5 })
            }
            fn stretch(&mut self, _: u32) -> Result<f64, DeviceError> {
                Ok(1.0)
            }
            fn evict(&mut self) -> Result<(), DeviceError> {
                Ok(())
            }
        }
        let found = measure(&mut Broken, &Ticks::default(), &Timing::default());
        assert_eq!(found, Err(MeasureError::Device(DeviceError::Hang { after_ms: 5 })));
    }
}
