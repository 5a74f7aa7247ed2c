//! Which launches use a buffer at once, where one begins before the other has ended (programmatic dependent launch).

use std::sync::atomic::{AtomicU8, Ordering};

/// What an access does to a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Read,
    Written,
}

impl Use {
    fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Written => 2,
        }
    }
}

/// How a buffer is used, by bits of [`Use`].
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// By the launch that runs.
    now: AtomicU8,
    /// By those before it that may still run.
    before: u8,
}

impl Uses {
    /// A launch begins, perhaps before those before it have ended.
    pub(crate) fn begin_launch(&mut self, overlaps: bool) {
        let ended = std::mem::take(self.now.get_mut());
        self.before = if overlaps { self.before | ended } else { 0 };
    }

    /// Takes note of an access. Most find that it was noted.
    pub(crate) fn note(&self, how: Use) {
        if self.now.load(Ordering::Relaxed) & how.bit() == 0 {
            self.now.fetch_or(how.bit(), Ordering::Relaxed);
        }
    }

    /// Whether an access must wait for the launches before: it or one of theirs writes.
    pub(crate) fn is_early(&self, how: Use) -> bool {
        self.before != 0 && (self.before | how.bit()) & Use::Written.bit() != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_must_wait() {
        let mut uses = Uses::default();
        uses.begin_launch(true);
        assert!(!uses.is_early(Use::Written), "nobody has used it");
        uses.note(Use::Read);
        uses.begin_launch(true);
        assert!(uses.is_early(Use::Written) && !uses.is_early(Use::Read));
        // The third launch may begin before the first has ended, unless the second waited for it.
        uses.begin_launch(true);
        assert!(uses.is_early(Use::Written));
        uses.note(Use::Written);
        uses.begin_launch(true);
        assert!(uses.is_early(Use::Read));
        uses.begin_launch(false);
        assert!(!uses.is_early(Use::Written));
    }
}
