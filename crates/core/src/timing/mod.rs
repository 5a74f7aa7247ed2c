//! Measuring that can be trusted.
//!
//! A run is warmed up, then repeated until the 95% confidence interval of its median is narrow enough or the budget
//! ends. Calls shorter than the clock can resolve are timed in batches. A first run far beyond the best so far is cut
//! off.

mod evict;
mod interval;

pub use evict::Evictor;
pub use interval::{Interval, median_interval};

use crate::measurement::{CachePolicy, Failure, FailureKind, Measurement, Timing};
use crate::problem::MeasureError;
use crate::program::DeviceError;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A monotonic clock.
pub trait Clock {
    /// Time since some fixed moment.
    fn now(&self) -> Duration;
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Duration {
        (**self).now()
    }
}

/// A moment is the clock of the host that starts there.
impl Clock for Instant {
    fn now(&self) -> Duration {
        self.elapsed()
    }
}

/// A timed interval is at least this long; shorter calls are timed in batches. Reading the clock costs 20 to 50 ns, so
/// its share stays below a quarter of a percent.
pub const SHORTEST_TIMED: Duration = Duration::from_micros(20);

/// Most calls in a batch.
const LARGEST_BATCH: u32 = 1 << 16;

/// A first run shorter than this that misses the cut-off gets a second chance: page faults and cold code may have made
/// it slow, and another run costs nothing.
const SECOND_CHANCE: Duration = Duration::from_millis(2);

/// A call this short is judged by a batch: reading the clock, cold code, the first touch of its workspace and threads that were asleep
/// are a good part of a single one.
const JUDGED_BY_BATCH: Duration = Duration::from_micros(500);

/// How long this batch is: threads that were asleep are awake by then.
const BATCH_JUDGED: Duration = Duration::from_micros(300);

/// Times `run` under `policy`. `evict` empties the caches; it is called before every timed run of
/// [`CachePolicy::Cold`], where calls are never batched.
///
/// # Errors
/// What `run` reports, or a [`FailureKind::CutOff`] whose message has the time and the limit.
pub fn measure_runs(
    clock: &dyn Clock,
    policy: &Timing,
    run: &mut dyn FnMut() -> Result<(), DeviceError>,
    evict: &mut dyn FnMut(),
) -> Result<Measurement, MeasureError> {
    let mut timer = Timer { clock, run, evict, cold: policy.cache == CachePolicy::Cold };
    let single = timer.warm_up(policy)?;
    if policy.rough_beyond.is_some_and(|limit| single > limit) {
        return Ok(measurement(median_interval(&mut [single.as_secs_f64()]), 1));
    }
    let batch = match policy.batch {
        Some(runs) if !timer.cold => runs.max(1),
        _ => timer.batch_size(single)?,
    };
    let mut samples = Vec::with_capacity(policy.max_repeats.min(64) as usize);
    let began = clock.now();
    loop {
        let time = timer.timed(batch)?;
        samples.push(time.as_secs_f64() / f64::from(batch));
        let enough = samples.len() >= policy.min_repeats.max(1) as usize;
        let interval = median_interval(&mut samples);
        let out_of_budget =
            samples.len() >= policy.max_repeats.max(1) as usize || clock.now().saturating_sub(began) >= policy.max_time;
        if enough && (interval.relative_error() <= policy.relative_error || out_of_budget) {
            return Ok(measurement(interval, samples.len()));
        }
    }
}

fn measurement(interval: Interval, repeats: usize) -> Measurement {
    // One repeat has no interval; infinity would not survive JSON.
    let relative_error = interval.relative_error().min(1.0);
    // A clock that did not advance still leaves a positive time, which costs must be.
    let time_s = interval.median.max(1e-12);
    let repeats = u32::try_from(repeats).unwrap_or(u32::MAX);
    Measurement { time_s, repeats, relative_error, metrics: BTreeMap::new() }
}

/// The failure of a run that took `time` where `limit` was allowed.
fn cut_off(time: Duration, limit: Duration) -> Failure {
    let message = format!("ran {:.3e} s, cut off beyond {:.3e} s", time.as_secs_f64(), limit.as_secs_f64());
    Failure { kind: FailureKind::CutOff, message }
}

struct Timer<'a> {
    clock: &'a dyn Clock,
    run: &'a mut dyn FnMut() -> Result<(), DeviceError>,
    evict: &'a mut dyn FnMut(),
    cold: bool,
}

impl Timer<'_> {
    /// The time of `calls` runs.
    fn timed(&mut self, calls: u32) -> Result<Duration, DeviceError> {
        if self.cold {
            (self.evict)();
        }
        let start = self.clock.now();
        for _ in 0..calls {
            (self.run)()?;
        }
        Ok(self.clock.now().saturating_sub(start))
    }

    /// Runs without counting; the shortest of these runs.
    fn warm_up(&mut self, policy: &Timing) -> Result<Duration, MeasureError> {
        if matches!(policy, Timing { warmup: 0, batch: Some(_), cut_off: None, rough_beyond: None, .. }) {
            return Ok(Duration::ZERO);
        }
        let mut shortest = self.timed(1)?;
        let far = |time, limit: Option<Duration>| limit.is_some_and(|l| time > l);
        if far(shortest, policy.rough_beyond.or(policy.cut_off)) && shortest < SECOND_CHANCE {
            shortest = shortest.min(self.timed(1)?);
            if !self.cold && far(shortest, policy.rough_beyond.or(policy.cut_off)) && shortest < JUDGED_BY_BATCH {
                let calls = BATCH_JUDGED.div_duration_f64(shortest.max(Duration::from_nanos(100))).ceil() as u32;
                shortest = shortest.min(self.timed(calls)? / calls);
            }
        }
        if let Some(limit) = policy.cut_off.filter(|l| shortest > *l) {
            return Err(cut_off(shortest, limit).into());
        }
        if far(shortest, policy.rough_beyond) {
            return Ok(shortest);
        }
        for _ in 1..policy.warmup {
            shortest = shortest.min(self.timed(1)?);
        }
        Ok(shortest)
    }

    /// How many calls a timed interval has, from the time of one. Grows until the interval is long enough: the time of
    /// a single short call is mostly noise.
    fn batch_size(&mut self, single: Duration) -> Result<u32, DeviceError> {
        if self.cold || single >= SHORTEST_TIMED {
            return Ok(1);
        }
        let mut calls = 4;
        while calls < LARGEST_BATCH {
            let time = self.timed(calls)?;
            if time >= SHORTEST_TIMED {
                break;
            }
            calls *= 2;
        }
        Ok(calls)
    }
}

#[cfg(test)]
mod tests;
