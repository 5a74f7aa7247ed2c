//! The number of threads that a library is set to.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Libraries whose setting a thread keeps; one beyond them is set before every call.
const KEPT: usize = 16;

thread_local! {
    /// The count that this thread set last, by library.
    static SET_HERE: [Cell<usize>; KEPT] = const { [const { Cell::new(0) }; KEPT] };
}

/// The thread count that a library was set to last. In some libraries the setting belongs to the process, in others (OpenMP) to the thread
/// that made it, so that both are kept. Reading them costs two loads: a small product takes no longer than a lock does. Threads that
/// want different counts of one library at the same time may get each other's.
#[derive(Debug)]
pub(crate) struct ThreadCount {
    place: usize,
    process: AtomicUsize,
    changing: Mutex<()>,
}

impl Default for ThreadCount {
    fn default() -> Self {
        static OPENED: AtomicUsize = AtomicUsize::new(0);
        let place = OPENED.fetch_add(1, Ordering::Relaxed);
        Self { place, process: AtomicUsize::new(0), changing: Mutex::new(()) }
    }
}

impl ThreadCount {
    /// Whether this thread set the library to this count, and no other thread set another since.
    #[inline]
    pub(crate) fn is(&self, threads: usize) -> bool {
        let here = SET_HERE.with(|set| set.get(self.place).map(Cell::get));
        (here == Some(threads)) & (self.process.load(Ordering::Relaxed) == threads)
    }

    /// Sets the library, one thread at a time.
    #[cold]
    pub(crate) fn change(&self, threads: usize, set: impl FnOnce()) {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        set();
        self.process.store(threads, Ordering::Relaxed);
        SET_HERE.with(|set| set.get(self.place).into_iter().for_each(|here| here.set(threads)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_holds_for_the_thread_that_set_it_until_another_sets_another() {
        let count = ThreadCount::default();
        assert!(!count.is(1));
        count.change(1, || ());
        assert!(count.is(1) && !count.is(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(!count.is(1), "it was another thread that set it");
                count.change(2, || ());
                assert!(count.is(2));
            });
        });
        assert!(!count.is(1) && !count.is(2));
    }

    #[test]
    fn a_library_beyond_those_kept_is_set_every_time() {
        let count = ThreadCount { place: KEPT, ..ThreadCount::default() };
        count.change(1, || ());
        assert!(!count.is(1));
    }
}
