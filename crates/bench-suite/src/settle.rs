//! Waiting until this process is idle, so that no contender is timed beside another's spinning workers.
//!
//! Thread pools keep their workers spinning for a while after a call, in the hope of another: OpenBLAS 2^26 cycles (about 27 ms),
//! GNU's OpenMP a few milliseconds, Intel's 200 ms unless told otherwise, rayon some microseconds. With as many threads as cores,
//! that is half the machine taken from whoever runs next. Where the system tells the run time of each thread (Linux), the wait ends
//! when it stops growing; elsewhere it is a fixed pause longer than the spins above.

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

/// Sleeps until the threads of this process have come to rest, at most about 0.3 s; the time it took.
pub fn settle() -> Duration {
    let start = Instant::now();
    let Some(mut before) = run_time() else {
        thread::sleep(FIXED);
        return start.elapsed();
    };
    while start.elapsed() < LONGEST {
        let window = Instant::now();
        thread::sleep(WINDOW);
        let now = run_time().unwrap_or(before);
        let busy = now.saturating_sub(before);
        if busy.as_secs_f64() < IDLE_SHARE * window.elapsed().as_secs_f64() {
            break;
        }
        before = now;
    }
    start.elapsed()
}

/// CPU time of all living threads of this process.
fn run_time() -> Option<Duration> {
    let mut total = None;
    for task in fs::read_dir("/proc/self/task").ok()?.flatten() {
        // a thread may end between the listing and the reading
        let Ok(text) = fs::read_to_string(task.path().join("schedstat")) else { continue };
        let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
        *total.get_or_insert(Duration::ZERO) += Duration::from_nanos(nanoseconds);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_spinning_thread_is_waited_for() {
        if run_time().is_none() {
            eprintln!("skipped: the system does not tell run times");
            return;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let worker = {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let waited = settle();
        stop.store(true, Ordering::Relaxed);
        worker.join().unwrap();
        assert!(waited >= LONGEST, "returned after {waited:?} beside a busy thread");
    }
}
