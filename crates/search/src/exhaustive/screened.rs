//! Two stages: a cheap model looks at everything, the full model at what the cheap one cannot rule out.

use super::sweep::{Block, Buffer, Sweep};
use super::top::Top;
use super::{Options, Progress, Stage, Statistics, sweep};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tilewright_core::predictor::{Scorer, Screen};
use tilewright_core::problem::Problem;

/// For spaces with parameters.
pub(super) fn search(
    problem: &dyn Problem,
    scorer: &dyn Scorer,
    screen: &Screen<'_>,
    options: &Options<'_>,
    start: Instant,
) -> (Top, Statistics) {
    let cheap = Sweep { problem, scorer: screen.scorer, progress: options.progress };
    let limit = Limit::new(screen.margin);
    let share = options.max_held / rayon::current_num_threads().max(1);
    let make = || Survivors::new(options.k, share);
    let (found, legal) = cheap.run(make, |survivors, block| survivors.take(&block, &limit));
    let screening_s = start.elapsed().as_secs_f64();
    let stage = Dense { problem, scorer, options };
    let (top, dense) = if found.iter().any(|s| s.overflowed) {
        stage.again(&cheap, &found, &limit)
    } else {
        stage.held(&found, &limit)
    };
    (top, Statistics { legal, screened: legal, dense, screening_s, seconds: 0.0 })
}

/// The cheap score beyond which a point is dropped: the best one so far, by any thread, and the margin. It only falls,
/// so what is dropped early would have been dropped at the end.
struct Limit {
    margin: f32,
    /// The best score in a form that orders as an integer.
    best: AtomicU64,
}

impl Limit {
    fn new(margin: f32) -> Self {
        Self { margin, best: AtomicU64::new(ordered(f32::INFINITY)) }
    }

    fn lower(&self, scores: &[f32]) {
        let best = scores.iter().copied().fold(f32::INFINITY, f32::min);
        self.best.fetch_min(ordered(best), Ordering::Relaxed);
    }

    fn get(&self) -> f32 {
        unordered(self.best.load(Ordering::Relaxed)) + self.margin
    }

    /// Whether a point stays. A cheap score that is no number rules nothing out.
    fn keeps(limit: f32, score: f32) -> bool {
        score <= limit || score.is_nan()
    }
}

/// A float as an integer of the same order (NaN is never given).
fn ordered(x: f32) -> u64 {
    let bits = x.to_bits();
    u64::from(if bits >> 31 == 0 { bits | 1 << 31 } else { !bits })
}

fn unordered(x: u64) -> f32 {
    let bits = x as u32;
    f32::from_bits(if bits >> 31 == 1 { bits & !(1 << 31) } else { !bits })
}

/// What one thread's share of the space leaves.
struct Survivors {
    points: Vec<u16>,
    scores: Vec<f32>,
    /// The best by cheap score, so that k points come out whatever the margin.
    top: Top,
    room: usize,
    overflowed: bool,
}

impl Survivors {
    fn new(k: usize, room: usize) -> Self {
        Self { points: Vec::new(), scores: Vec::new(), top: Top::new(k), room, overflowed: false }
    }

    fn take(&mut self, block: &Block<'_>, limit: &Limit) {
        limit.lower(block.scores());
        let bound = limit.get();
        for (point, score) in block.iter() {
            self.top.offer(point, score);
            if Limit::keeps(bound, score) && !self.overflowed {
                self.points.extend_from_slice(point);
                self.scores.push(score);
            }
        }
        if self.scores.len() + sweep::BLOCK > self.room && !self.overflowed {
            self.drop_beyond(bound);
            // With less than half of the room won, dropping would soon cost more than a second screening.
            self.overflowed = self.scores.len() > self.room / 2;
        }
        if self.overflowed {
            (self.points, self.scores) = (Vec::new(), Vec::new());
        }
    }

    fn drop_beyond(&mut self, bound: f32) {
        let dimensions = self.points.len() / self.scores.len().max(1);
        let mut kept = 0;
        for i in 0..self.scores.len() {
            if Limit::keeps(bound, self.scores[i]) {
                self.scores[kept] = self.scores[i];
                self.points.copy_within(i * dimensions..(i + 1) * dimensions, kept * dimensions);
                kept += 1;
            }
        }
        self.scores.truncate(kept);
        self.points.truncate(kept * dimensions);
    }
}

/// The second stage.
struct Dense<'a> {
    problem: &'a dyn Problem,
    scorer: &'a dyn Scorer,
    options: &'a Options<'a>,
}

impl Dense<'_> {
    /// The full model on the points that were held.
    fn held(&self, found: &[Survivors], limit: &Limit) -> (Top, u64) {
        let bound = limit.get();
        let dimensions = self.problem.space().params().len();
        let mut points = Vec::new();
        for survivors in found {
            for (point, &score) in survivors.points.chunks_exact(dimensions).zip(&survivors.scores) {
                if Limit::keeps(bound, score) {
                    points.extend_from_slice(point);
                }
            }
        }
        self.best_by_cheap(found, bound, &mut points);
        self.score(&points)
    }

    /// The cheap model on everything once more, now that the limit is known, and the full model on what it leaves.
    fn again(&self, cheap: &Sweep<'_>, found: &[Survivors], limit: &Limit) -> (Top, u64) {
        let bound = limit.get();
        let make = || (Top::new(self.options.k), Buffer::new(self.scorer), 0);
        let (states, _) = cheap.run(make, |(top, buffer, count), block| {
            for (point, _) in block.iter().filter(|(_, score)| Limit::keeps(bound, *score)) {
                *count += 1;
                if buffer.push(point) {
                    buffer.flush(|block| block.iter().for_each(|(point, score)| top.offer(point, score)));
                }
            }
        });
        let mut dense = 0;
        let finish = |(mut top, mut buffer, count): (Top, Buffer<'_>, u64)| {
            buffer.flush(|block| block.iter().for_each(|(point, score)| top.offer(point, score)));
            dense += count;
            top
        };
        let mut tops: Vec<Top> = states.into_iter().map(finish).collect();
        let mut points = Vec::new();
        self.best_by_cheap(found, bound, &mut points);
        let (top, count) = self.score(&points);
        tops.push(top);
        (Top::merge(self.options.k, tops), dense + count)
    }

    /// Appends those of the k best by cheap score that are beyond the limit.
    fn best_by_cheap(&self, found: &[Survivors], bound: f32, points: &mut Vec<u16>) {
        let best = Top::merge(self.options.k, found.iter().map(|s| s.top.clone()));
        for (point, _) in best.iter().filter(|(_, score)| !Limit::keeps(bound, *score)) {
            points.extend_from_slice(point);
        }
    }

    fn score(&self, points: &[u16]) -> (Top, u64) {
        let dimensions = self.problem.space().params().len();
        let count = points.len() / dimensions;
        let done = AtomicU64::new(0);
        // Even few survivors are worth all threads: the full model is the expensive one.
        let chunk = count.div_ceil(rayon::current_num_threads().max(1)).clamp(1, sweep::BLOCK);
        let score = |chunk: &[u16]| {
            let mut top = Top::new(self.options.k);
            let mut buffer = Buffer::new(self.scorer);
            for point in chunk.chunks_exact(dimensions) {
                buffer.push(point);
            }
            buffer.flush(|block| block.iter().for_each(|(point, score)| top.offer(point, score)));
            let in_chunk = (chunk.len() / dimensions) as u64;
            let done = done.fetch_add(in_chunk, Ordering::Relaxed) + in_chunk;
            if let Some(progress) = self.options.progress {
                progress(Progress { stage: Stage::Survivors, points: done, fraction: done as f64 / count as f64 });
            }
            top
        };
        let tops: Vec<Top> = points.par_chunks(chunk * dimensions).map(score).collect();
        (Top::merge(self.options.k, tops), count as u64)
    }
}
