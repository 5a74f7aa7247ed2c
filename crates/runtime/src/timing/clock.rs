//! Clocks: the monotonic one of the host, and the trait that lets tests be deterministic.

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

/// The monotonic clock of the host.
#[derive(Clone, Copy, Debug)]
pub struct HostClock(Instant);

impl HostClock {
    /// A clock that starts at zero.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Default for HostClock {
    fn default() -> Self {
        Self::start()
    }
}

impl Clock for HostClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}
