//! Threads that wait for plans.
//!
//! Workers spin for a little after a job and then park, so that a call that follows soon starts within a microsecond and an
//! idle process costs nothing. One job runs at a time; callers from several threads queue.
//!
//! A worker that wakes up on its caller's core leaves it: the two wait for each other in turns, are hardly ever ready both at once,
//! and so a scheduler may leave them on one core for long, where each call takes many times as long.

mod core;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long a worker spins before it parks: longer than the gap between calls of a loop over small products.
const SPIN: Duration = Duration::from_micros(100);
/// Checks between two looks at the clock.
const CHECKS: u32 = 64;
/// Checks of a caller that waits between two offers of its core: a worker, or another process, may need it to go on.
const OFFERED: u32 = 256;
/// Low bits of the published word hold the number of threads of the job.
const THREAD_BITS: u32 = 16;

/// A job without its lifetime; valid until every thread of its epoch has finished.
#[derive(Clone, Copy)]
struct Job(*const (dyn Fn(usize) + Sync));

// SAFETY: the pointee is `Sync`, and `run` keeps it alive until no worker uses it.
unsafe impl Send for Job {}

struct Shared {
    /// Epoch and number of threads of the current job, changed together.
    word: AtomicU64,
    /// Where the caller ran when it published the word.
    caller: AtomicUsize,
    job: Mutex<Option<Job>>,
    remaining: AtomicUsize,
}

struct Worker {
    thread: Thread,
    parked: Arc<AtomicBool>,
}

/// The process's threads.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
}

/// Runs `job(0)` ... `job(threads - 1)` at once, `job(0)` on this thread, and returns when all have finished.
pub(crate) fn run(threads: usize, job: &(dyn Fn(usize) + Sync)) {
    if threads <= 1 {
        return job(0);
    }
    static POOL: OnceLock<Mutex<Pool>> = OnceLock::new();
    let pool = POOL.get_or_init(|| Mutex::new(Pool::new()));
    pool.lock().unwrap_or_else(PoisonError::into_inner).run(threads, job);
}

impl Pool {
    fn new() -> Self {
        let (word, caller) = (AtomicU64::new(0), AtomicUsize::new(core::current()));
        let shared = Shared { word, caller, job: Mutex::new(None), remaining: AtomicUsize::new(0) };
        Self { shared: Arc::new(shared), workers: Vec::new() }
    }

    fn run(&mut self, threads: usize, job: &(dyn Fn(usize) + Sync)) {
        while self.workers.len() + 1 < threads {
            let started = self.start();
            if !started {
                // No more threads to be had: what they would have done is done here.
                (0..threads).for_each(job);
                return;
            }
        }
        let shared = &self.shared;
        shared.remaining.store(threads - 1, Ordering::Relaxed);
        // SAFETY: only the lifetime is forgotten; this call does not return while a worker of this epoch is running.
        let erased =
            unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const (dyn Fn(usize) + Sync)>(job) };
        *shared.job.lock().unwrap_or_else(PoisonError::into_inner) = Some(Job(erased));
        let epoch = (shared.word.load(Ordering::Relaxed) >> THREAD_BITS).wrapping_add(1);
        shared.caller.store(core::current(), Ordering::Relaxed);
        shared.word.store(epoch << THREAD_BITS | threads as u64, Ordering::SeqCst);
        for worker in &self.workers[..threads - 1] {
            if worker.parked.swap(false, Ordering::SeqCst) {
                worker.thread.unpark();
            }
        }
        let waiting = Wait(shared);
        job(0);
        drop(waiting);
    }

    fn start(&mut self) -> bool {
        let index = self.workers.len() + 1;
        let parked = Arc::new(AtomicBool::new(false));
        let (shared, flag) = (self.shared.clone(), parked.clone());
        let seen = shared.word.load(Ordering::Relaxed);
        let builder = std::thread::Builder::new().name(format!("tilewright-{index}"));
        match builder.spawn(move || work(index, seen, &shared, &flag)) {
            Ok(handle) => {
                self.workers.push(Worker { thread: handle.thread().clone(), parked });
                true
            }
            Err(_) => false,
        }
    }
}

/// Waits for the workers of the current job, also when the caller's own share panics.
struct Wait<'a>(&'a Shared);

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut checks = 0u32;
        while self.0.remaining.load(Ordering::Acquire) != 0 {
            checks = checks.wrapping_add(1);
            if checks.is_multiple_of(OFFERED) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

/// One share of a job is done, also when it panics.
struct Done<'a>(&'a Shared);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.remaining.fetch_sub(1, Ordering::Release);
    }
}

fn work(index: usize, mut seen: u64, shared: &Shared, parked: &AtomicBool) {
    loop {
        seen = next(seen, shared, parked);
        if index as u64 >= seen & ((1 << THREAD_BITS) - 1) {
            continue;
        }
        let done = Done(shared);
        core::leave(shared.caller.load(Ordering::Relaxed));
        let job = *shared.job.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Job(job)) = job {
            // SAFETY: this worker is of the current epoch, so `run` is waiting for it and the job is alive.
            let job = unsafe { &*job };
            // A panicking share must not take the worker with it; the results are the caller's to judge.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job(index)));
        }
        drop(done);
    }
}

/// The next word after `seen`.
fn next(seen: u64, shared: &Shared, parked: &AtomicBool) -> u64 {
    loop {
        let start = Instant::now();
        loop {
            for _ in 0..CHECKS {
                let word = shared.word.load(Ordering::SeqCst);
                if word != seen {
                    return word;
                }
                std::hint::spin_loop();
            }
            if start.elapsed() > SPIN {
                break;
            }
        }
        parked.store(true, Ordering::SeqCst);
        // Published between the last check and the flag: nobody would wake this worker.
        if shared.word.load(Ordering::SeqCst) == seen {
            std::thread::park();
        }
        parked.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_share_runs_once_in_every_job() {
        let counts: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
        for round in 0..2000 {
            let threads = 1 + round % 4;
            run(threads, &|i| {
                counts[i].fetch_add(1, Ordering::Relaxed);
            });
            if round % 500 == 0 {
                // Long enough for the workers to park.
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let counts: Vec<usize> = counts.iter().map(|c| c.load(Ordering::Relaxed)).collect();
        assert_eq!(counts, [2000, 1500, 1000, 500]);
    }

    #[test]
    fn callers_queue() {
        let total = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        run(2, &|_| {
                            total.fetch_add(1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 1200);
    }
}
