//! A sample of legal points, scored by a model.

use crate::neighbourhood::{Neighbourhood, Reach};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::HashSet;
use std::time::{Duration, Instant};
use tilewright_core::predictor::Scorer;
use tilewright_core::problem::Problem;
use tilewright_core::search::Ranked;
use tilewright_core::space::Point;
use tilewright_sampler::{DrawError, Sampler};

/// Points scored between two looks at the clock.
const BATCH: usize = 256;

/// Points scored by one task.
const CHUNK: usize = 8;

/// The best points whose neighbours are looked at.
const PARENTS: usize = 20;

/// How much of a space is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Legal points that are drawn at first.
    pub points: usize,
    /// Rounds of going on to the neighbours (one parameter changed) of the best so far.
    pub climbs: u32,
    /// Nothing more is looked at after this time, counted from the first point that the sampler draws: it may have had to build a legal
    /// set. What a search finds repeats to the bit only where it ends before.
    pub limit: Duration,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { points: 10_000, climbs: 8, limit: Duration::from_secs(8) }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampled {
    /// The best points with their predicted cost, best first. Of points with one score there is one: a model that does not tell
    /// them apart has one word for all of them.
    pub ranked: Ranked,
    /// Seconds in all.
    pub seconds: f64,
}

/// Scores drawn points of a problem, then neighbours of the best, and keeps the best `k`: for a model whose word costs too much to
/// ask it for every legal point.
///
/// Runs on the threads of the current rayon pool; the result does not depend on their number. A score that is not a number
/// counts as the worst.
///
/// # Errors
/// The sampler finds no legal point, or is of another space.
pub fn sampled(
    problem: &dyn Problem,
    scorer: &dyn Scorer,
    sampler: &mut dyn Sampler,
    k: usize,
    how: &Sampling,
    seed: u64,
) -> Result<Sampled, DrawError> {
    let (begun, mut rng) = (Instant::now(), ChaCha8Rng::seed_from_u64(seed));
    let first = sampler.draw(problem.space(), &mut rng)?.point;
    let mut look = Look { scorer, begun: Instant::now(), how, known: HashSet::new(), scored: Vec::new() };
    let (mut left, mut first) = (how.points.max(1), Some(first));
    while left > 0 && (look.scored.is_empty() || look.has_time()) {
        let count = left.min(BATCH);
        let mut drawn = Vec::with_capacity(count);
        // Where legal points are rare, drawing takes as long as scoring.
        drawn.extend(first.take());
        while drawn.len() < count && (drawn.is_empty() || look.has_time()) {
            drawn.push(sampler.draw(problem.space(), &mut rng)?.point);
        }
        look.at(drawn);
        left -= count;
    }
    let around = Neighbourhood::of(problem.space());
    for _ in 0..how.climbs {
        if !look.has_time() {
            break;
        }
        let parents: Vec<Point> = look.best(PARENTS).into_iter().map(|(_, point)| point.clone()).collect();
        let before = look.scored.len();
        parents.iter().for_each(|parent| look.at(around.within(parent, Reach::Single)));
        if look.scored.len() == before {
            break;
        }
    }
    let cost = |score: f32| if score.is_nan() { f64::INFINITY } else { f64::from(score).exp() };
    let points = look.best(k).into_iter().map(|(score, point)| (point.clone(), cost(score))).collect();
    let ranked = Ranked { points, considered: look.scored.len() as u64 };
    Ok(Sampled { ranked, seconds: begun.elapsed().as_secs_f64() })
}

/// What was looked at.
struct Look<'a> {
    scorer: &'a dyn Scorer,
    begun: Instant,
    how: &'a Sampling,
    known: HashSet<Point>,
    /// In the order of looking.
    scored: Vec<(f32, Point)>,
}

impl Look<'_> {
    fn has_time(&self) -> bool {
        self.begun.elapsed() < self.how.limit
    }

    /// Scores what is new, while there is time.
    fn at(&mut self, points: Vec<Point>) {
        let new: Vec<Point> = points.into_iter().filter(|point| self.known.insert(point.clone())).collect();
        let mut rest = new.as_slice();
        while !rest.is_empty() && (self.scored.is_empty() || self.has_time()) {
            // A costly word leaves no room for many at a time.
            let known = self.scored.len().max(1).next_power_of_two().clamp(CHUNK, BATCH);
            let (batch, after) = rest.split_at(known.min(rest.len()));
            rest = after;
            let scorer = self.scorer;
            let scores: Vec<f32> = batch.par_chunks(CHUNK).flat_map_iter(|points| scorer.score_each(points)).collect();
            self.scored.extend(scores.into_iter().zip(batch.iter().cloned()));
        }
    }

    /// The best, one of each score: the one that was looked at first.
    fn best(&self, k: usize) -> Vec<(f32, &Point)> {
        let mut all: Vec<(f32, &Point)> = self.scored.iter().map(|(score, point)| (*score, point)).collect();
        let worst_last = |score: f32| if score.is_nan() { f32::INFINITY } else { score };
        all.sort_by(|a, b| worst_last(a.0).total_cmp(&worst_last(b.0)));
        all.dedup_by_key(|(score, _)| worst_last(*score).to_bits());
        all.truncate(k);
        all
    }
}
