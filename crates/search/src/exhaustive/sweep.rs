//! The parallel walk: parts of the space are handed to the threads, each scores block by block.

use super::{Progress, Stage};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tilewright_core::predictor::Scorer;
use tilewright_core::problem::Problem;
use tilewright_core::space::Points;

/// Points scored at a time: enough for a model to work at full speed, few enough that points and scores stay in the
/// second-level cache.
pub(super) const BLOCK: usize = 1536;

/// Parts that the space is split into: many more than threads, because they differ in size.
const PARTS: usize = 512;

/// Scored points.
pub(super) struct Block<'a> {
    points: Points<'a>,
    scores: &'a [f32],
}

impl<'a> Block<'a> {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a [u16], f32)> + use<'a> {
        self.points.iter().zip(self.scores.iter().copied())
    }

    pub(super) fn scores(&self) -> &'a [f32] {
        self.scores
    }
}

/// Points on the way to a scorer; its memory is reused.
pub(super) struct Buffer<'a> {
    scorer: &'a dyn Scorer,
    points: Vec<u16>,
    scores: Vec<f32>,
    len: usize,
}

impl<'a> Buffer<'a> {
    pub(super) fn new(scorer: &'a dyn Scorer) -> Self {
        Self { scorer, points: Vec::new(), scores: Vec::new(), len: 0 }
    }

    /// Adds a point; whether the buffer is full.
    #[inline]
    pub(super) fn push(&mut self, point: &[u16]) -> bool {
        self.points.extend_from_slice(point);
        self.len += 1;
        self.len == BLOCK
    }

    /// Scores what is there, hands it to `consume` and empties the buffer.
    pub(super) fn flush(&mut self, consume: impl FnOnce(Block<'_>)) {
        if self.len == 0 {
            return;
        }
        self.scores.resize(self.len, 0.0);
        let points = Points::new(&self.points, self.len);
        self.scorer.score(points, &mut self.scores);
        consume(Block { points, scores: &self.scores });
        self.points.clear();
        self.len = 0;
    }
}

/// A walk over all legal points with a scorer.
pub(super) struct Sweep<'a> {
    pub(super) problem: &'a dyn Problem,
    pub(super) scorer: &'a dyn Scorer,
    pub(super) progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl Sweep<'_> {
    /// Hands every legal point to `consume`, in blocks, each thread with a state of its own. Returns the states, in no
    /// order, and the number of points.
    pub(super) fn run<S: Send>(
        &self,
        make: impl Fn() -> S + Sync,
        consume: impl Fn(&mut S, Block<'_>) + Sync,
    ) -> (Vec<S>, u64) {
        let space = self.problem.space();
        let parts = space.shards(PARTS);
        let (next, points) = (AtomicUsize::new(0), AtomicU64::new(0));
        let states = Mutex::new(Vec::new());
        let work = || {
            let mut state = make();
            let mut buffer = Buffer::new(self.scorer);
            let mut take = |buffer: &mut Buffer<'_>| {
                let done = points.fetch_add(buffer.len as u64, Ordering::Relaxed) + buffer.len as u64;
                buffer.flush(|block| consume(&mut state, block));
                let taken = next.load(Ordering::Relaxed).min(parts.len());
                self.report(done, taken.saturating_sub(1) as f64 / parts.len().max(1) as f64);
            };
            // A block outlives its part, so that small parts do not make small blocks.
            while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                space.for_each_legal_in(part, &mut |point| {
                    if buffer.push(point) {
                        take(&mut buffer);
                    }
                    true
                });
            }
            take(&mut buffer);
            states.lock().unwrap_or_else(PoisonError::into_inner).push(state);
        };
        rayon::scope(|scope| (0..rayon::current_num_threads()).for_each(|_| scope.spawn(|_| work())));
        let points = points.into_inner();
        self.report(points, 1.0);
        (states.into_inner().unwrap_or_else(PoisonError::into_inner), points)
    }

    fn report(&self, points: u64, fraction: f64) {
        if let Some(progress) = self.progress {
            progress(Progress { stage: Stage::Walk, points, fraction });
        }
    }
}
