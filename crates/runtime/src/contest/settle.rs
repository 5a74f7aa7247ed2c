//! Waiting until this process is idle, so that no program is timed beside another's spinning workers.
//!
//! Thread pools keep their workers spinning for a while after a call, in the hope of another: OpenBLAS 2^26 cycles (about 27 ms),
//! GNU's OpenMP a few milliseconds, Intel's 200 ms unless told otherwise, rayon some microseconds. With as many threads as cores,
//! that is half the machine taken from whoever runs next. Where the system tells the run time of each thread (Linux), the wait ends
//! when it stops growing; elsewhere it is a fixed pause longer than the spins above.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than the scheduler's tick on any usual kernel (4 or 10 ms), at which the run times are brought up to date.
const WINDOW: Duration = Duration::from_millis(12);
/// A process that runs less than this share of a window is idle.
const IDLE_SHARE: f64 = 0.05;
/// The end of patience: Intel's OpenMP at its default, and some.
const LONGEST: Duration = Duration::from_millis(300);
/// The pause where run times are unknown.
const FIXED: Duration = Duration::from_millis(60);

/// Run time of each living thread of this process, by thread id.
type RunTimes = HashMap<OsString, Duration>;

/// Sleeps until the threads of this process have come to rest, at most about 0.3 s; the time it took.
pub(crate) fn settle() -> Duration {
    let start = Instant::now();
    settle_by(run_times, |pause| {
        thread::sleep(pause);
        start.elapsed()
    });
    start.elapsed()
}

/// `sleep` pauses and tells the time since the start.
fn settle_by(mut run_times: impl FnMut() -> Option<RunTimes>, mut sleep: impl FnMut(Duration) -> Duration) {
    let Some(mut before) = run_times() else {
        sleep(FIXED);
        return;
    };
    let mut window_start = Duration::ZERO;
    loop {
        let now = sleep(WINDOW);
        let Some(after) = run_times() else { return };
        let idle = busy(&before, &after).as_secs_f64() < IDLE_SHARE * (now - window_start).as_secs_f64();
        if idle || now >= LONGEST {
            return;
        }
        (before, window_start) = (after, now);
    }
}

/// CPU time between two readings. A thread that ended in between is not missed: it disturbs nobody any more.
fn busy(before: &RunTimes, after: &RunTimes) -> Duration {
    let since =
        |(thread, time): (&OsString, &Duration)| time.saturating_sub(before.get(thread).copied().unwrap_or_default());
    after.iter().map(since).sum()
}

fn run_times() -> Option<RunTimes> {
    let mut times = RunTimes::new();
    for task in fs::read_dir("/proc/self/task").ok()?.flatten() {
        // a thread may end between the listing and the reading
        let Ok(text) = fs::read_to_string(task.path().join("schedstat")) else { continue };
        let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
        times.insert(task.file_name(), Duration::from_nanos(nanoseconds));
    }
    (!times.is_empty()).then_some(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `settle_by` on readings in milliseconds per thread; the number of windows slept.
    fn windows(readings: &[&[(&str, u64)]]) -> usize {
        let reading = |threads: &[(&str, u64)]| {
            threads.iter().map(|(thread, ms)| ((*thread).into(), Duration::from_millis(*ms))).collect()
        };
        let mut next = 0;
        let mut slept = 0;
        let read = || {
            next += 1;
            readings.get(next - 1).or(readings.last()).map(|threads| reading(threads))
        };
        settle_by(read, |pause| {
            slept += 1;
            pause * slept
        });
        slept as usize
    }

    #[test]
    fn waits_while_any_thread_runs() {
        assert_eq!(windows(&[&[("1", 50)]]), 1);
        assert_eq!(windows(&[&[("1", 50), ("2", 0)], &[("1", 50), ("2", 12)], &[("1", 50), ("2", 20)]]), 3);
        // a thread that ends takes its run time away; the other still runs
        assert_eq!(windows(&[&[("1", 500), ("2", 0)], &[("2", 12)], &[("2", 12)]]), 2);
    }

    #[test]
    fn patience_ends() {
        let busy: Vec<Vec<(&str, u64)>> = (0..100).map(|window| vec![("1", window * 12)]).collect();
        let busy: Vec<&[(&str, u64)]> = busy.iter().map(Vec::as_slice).collect();
        assert_eq!(windows(&busy), LONGEST.as_millis().div_ceil(WINDOW.as_millis()) as usize);
    }

    #[test]
    fn a_fixed_pause_without_run_times() {
        assert_eq!(windows(&[]), 1);
        assert!(settle() > Duration::ZERO);
    }
}
