//! The threads of this process that wait for short jobs.
//!
//! Workers spin for a little after a job and then park, so that a call that follows soon starts within a microsecond and an
//! idle process costs nothing. One job runs at a time; callers from several threads queue.
//!
//! ```
//! let squares = tilewright_threads::collect(3, |share| share * share);
//! assert_eq!(squares, [0, 1, 4]);
//! ```
//!
//! A worker that wakes up on its caller's core leaves it: the two wait for each other in turns, are hardly ever ready both at once,
//! and so a scheduler may leave them on one core for long, where each call takes many times as long.

mod core;

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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
    /// What the first share said that panicked.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

struct Worker {
    thread: Thread,
    parked: Arc<AtomicBool>,
}

/// The workers of the process.
struct Pool {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
}

thread_local! {
    /// Whether this thread is inside a job: the workers are taken then.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Runs `job(0)` ... `job(threads - 1)`, `job(0)` on this thread, and returns when all have finished.
///
/// All run at once where [`ensure`] has started as many threads. Inside a job, or where no more threads are to be had, they run here
/// one after another.
///
/// # Panics
/// When a share panics, after all have ended.
pub fn run(threads: usize, job: &(dyn Fn(usize) + Sync)) {
    if threads <= 1 || BUSY.get() {
        return (0..threads.max(1)).for_each(job);
    }
    let panic = {
        let mut pool = pool();
        match pool.grow(threads) {
            Ok(()) => pool.run(threads, job),
            Err(_) => return (0..threads).for_each(job),
        }
    };
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

/// As [`run`], and gives what the shares return, in their order.
///
/// # Panics
/// When a share panics, after all have ended.
pub fn collect<R: Send>(threads: usize, job: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let results: Vec<Mutex<Option<R>>> = (0..threads.max(1)).map(|_| Mutex::new(None)).collect();
    run(threads, &|share| *lock(&results[share]) = Some(job(share)));
    results.into_iter().filter_map(|r| r.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Starts what is missing for jobs on so many threads: shares that wait for each other need it.
///
/// # Errors
/// The system starts no more threads.
pub fn ensure(threads: usize) -> io::Result<()> {
    pool().grow(threads)
}

fn pool() -> MutexGuard<'static, Pool> {
    static POOL: OnceLock<Mutex<Pool>> = OnceLock::new();
    lock(POOL.get_or_init(|| Mutex::new(Pool::new())))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    fn new() -> Self {
        let (word, caller) = (AtomicU64::new(0), AtomicUsize::new(core::current()));
        let (job, panic) = (Mutex::new(None), Mutex::new(None));
        let shared = Shared { word, caller, job, remaining: AtomicUsize::new(0), panic };
        Self { shared: Arc::new(shared), workers: Vec::new() }
    }

    fn grow(&mut self, threads: usize) -> io::Result<()> {
        while self.workers.len() + 1 < threads {
            self.start()?;
        }
        Ok(())
    }

    /// Gives what the first share said that panicked.
    fn run(&mut self, threads: usize, job: &(dyn Fn(usize) + Sync)) -> Option<Box<dyn Any + Send>> {
        let shared = &self.shared;
        shared.remaining.store(threads - 1, Ordering::Relaxed);
        // SAFETY: only the lifetime is forgotten; this call does not return while a worker of this epoch is running.
        let erased =
            unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const (dyn Fn(usize) + Sync)>(job) };
        *lock(&shared.job) = Some(Job(erased));
        let epoch = (shared.word.load(Ordering::Relaxed) >> THREAD_BITS).wrapping_add(1);
        shared.caller.store(core::current(), Ordering::Relaxed);
        shared.word.store(epoch << THREAD_BITS | threads as u64, Ordering::SeqCst);
        for worker in &self.workers[..threads - 1] {
            if worker.parked.swap(false, Ordering::SeqCst) {
                worker.thread.unpark();
            }
        }
        shared.share(job, 0);
        shared.wait();
        lock(&shared.panic).take()
    }

    fn start(&mut self) -> io::Result<()> {
        let index = self.workers.len() + 1;
        let parked = Arc::new(AtomicBool::new(false));
        let (shared, flag) = (self.shared.clone(), parked.clone());
        let seen = shared.word.load(Ordering::Relaxed);
        let builder = std::thread::Builder::new().name(format!("tilewright-{index}"));
        let handle = builder.spawn(move || work(index, seen, &shared, &flag))?;
        self.workers.push(Worker { thread: handle.thread().clone(), parked });
        Ok(())
    }
}

impl Shared {
    /// One share of the current job. A panic is kept until all shares have ended.
    fn share(&self, job: &(dyn Fn(usize) + Sync), index: usize) {
        BUSY.set(true);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(index))) {
            lock(&self.panic).get_or_insert(panic);
        }
        BUSY.set(false);
    }

    /// Waits for the workers of the current job.
    fn wait(&self) {
        let mut checks = 0u32;
        while self.remaining.load(Ordering::Acquire) != 0 {
            checks = checks.wrapping_add(1);
            if checks.is_multiple_of(OFFERED) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

fn work(index: usize, mut seen: u64, shared: &Shared, parked: &AtomicBool) {
    loop {
        seen = next(seen, shared, parked);
        if index as u64 >= seen & ((1 << THREAD_BITS) - 1) {
            continue;
        }
        core::leave(shared.caller.load(Ordering::Relaxed));
        let job = *lock(&shared.job);
        if let Some(Job(job)) = job {
            // SAFETY: this worker is of the current epoch, so `run` is waiting for it and the job is alive.
            shared.share(unsafe { &*job }, index);
        }
        shared.remaining.fetch_sub(1, Ordering::Release);
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

    #[test]
    fn a_panic_reaches_the_caller_after_all_shares() {
        let ended = AtomicUsize::new(0);
        for thrower in [0, 2] {
            let job = |share| {
                assert_ne!(share, thrower, "a share panics");
                ended.fetch_add(1, Ordering::Relaxed);
            };
            let panic = catch_unwind(AssertUnwindSafe(|| run(3, &job))).unwrap_err();
            assert!(panic.downcast_ref::<String>().is_some_and(|text| text.contains("a share panics")));
        }
        assert_eq!(ended.load(Ordering::Relaxed), 4);
        assert_eq!(collect(3, |share| share), [0, 1, 2], "the workers are still there");
    }

    #[test]
    fn a_job_inside_a_job_runs_in_turn() {
        assert_eq!(collect(2, |outer| collect(3, |inner| 10 * outer + inner)), [[0, 1, 2], [10, 11, 12]]);
    }

    #[test]
    fn shares_may_wait_for_each_other() {
        ensure(3).unwrap();
        let barrier = std::sync::Barrier::new(3);
        assert_eq!(collect(3, |_| barrier.wait().is_leader()).into_iter().filter(|l| *l).count(), 1);
    }
}
