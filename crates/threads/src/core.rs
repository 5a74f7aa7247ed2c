//! The core that a thread runs on.

#[cfg(target_os = "linux")]
pub(super) use linux::{current, leave};

#[cfg(target_os = "linux")]
mod linux {
    use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// The number of the core that this thread runs on.
    pub(crate) fn current() -> usize {
        sched_getcpu()
    }

    /// Moves this thread to another core where it runs on this one and may run on others. Where it may run stays as it was.
    pub(crate) fn leave(core: usize) {
        if current() != core {
            return;
        }
        let Ok(allowed) = sched_getaffinity(None) else { return };
        let mut others = allowed;
        others.unset(core);
        // The first call moves it at once. Where it is refused, the thread runs on where it is.
        if others.count() > 0 && sched_setaffinity(None, &others).is_ok() {
            let _ = sched_setaffinity(None, &allowed);
        }
    }
}

/// No system call tells it: every thread seems to run on a core of its own.
#[cfg(not(target_os = "linux"))]
pub(super) fn current() -> usize {
    usize::MAX
}

/// Does nothing: see [`current`].
#[cfg(not(target_os = "linux"))]
pub(super) fn leave(_: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::thread::sched_getaffinity;

    #[test]
    fn a_thread_leaves_a_core_and_may_come_back() {
        std::thread::spawn(|| {
            let allowed = sched_getaffinity(None).unwrap();
            let before = current();
            leave(before);
            assert!(allowed.count() == 1 || current() != before, "still on core {before}");
            assert!(allowed == sched_getaffinity(None).unwrap(), "where it may run has changed");
            let now = current();
            leave(now + 1000);
            assert!(allowed == sched_getaffinity(None).unwrap());
        })
        .join()
        .unwrap();
    }
}
