//! How many threads a library was told to use.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Libraries whose settings a thread remembers; one beyond them is told before every call.
const REMEMBERED: usize = 16;

thread_local! {
    static TOLD: [Cell<usize>; REMEMBERED] = const { [const { Cell::new(0) }; REMEMBERED] };
}

/// The count that a library was told last. To some libraries it belongs to the process, to others (OpenMP) to the thread that told
/// them, so that both are remembered; looking costs two loads, because a small product lasts as long as a lock does. Threads that want
/// different counts of one library at the same time may get each other's.
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
    /// Whether the library was told this count last, by this thread.
    #[inline]
    pub(crate) fn is(&self, threads: usize) -> bool {
        let told = TOLD.with(|told| told.get(self.place).map(Cell::get));
        (told == Some(threads)) & (self.process.load(Ordering::Relaxed) == threads)
    }

    /// Tells the library, one thread at a time.
    #[cold]
    pub(crate) fn change(&self, threads: usize, tell: impl FnOnce()) {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        tell();
        self.process.store(threads, Ordering::Relaxed);
        TOLD.with(|told| told.get(self.place).into_iter().for_each(|told| told.set(threads)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_holds_for_the_thread_that_told_it_until_another_tells_another() {
        let count = ThreadCount::default();
        assert!(!count.is(1));
        count.change(1, || ());
        assert!(count.is(1) && !count.is(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(!count.is(1), "it was another thread that told");
                count.change(2, || ());
                assert!(count.is(2));
            });
        });
        assert!(!count.is(1) && !count.is(2));
    }

    #[test]
    fn a_library_beyond_those_remembered_is_told_every_time() {
        let count = ThreadCount { place: REMEMBERED, ..ThreadCount::default() };
        count.change(1, || ());
        assert!(!count.is(1));
    }
}
