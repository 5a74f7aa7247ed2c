//! Variants as classes, for methods that learn from the input alone.

use crate::order::{RankScratch, by_score};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use tilewright_core::choice::{Case, ChoiceSet, SelectError};
use tilewright_core::selector::{Candidate, VariantOrder};

/// A relative cost (natural log of the time over the best of the case) from here on is as bad as a failure.
pub(crate) const WORST: f64 = 1.5;

/// The variants that a method tells apart, and how all variants do on average.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    known: HashMap<Box<str>, Known, BuildHasherDefault<NameHasher>>,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    class: Option<u32>,
    /// Mean relative cost over the training cases.
    typical: f32,
}

impl Classes {
    /// The `most` variants that won most often, the most frequent first. Others keep their average as their rank.
    ///
    /// # Errors
    /// Nothing ran in any case.
    pub(crate) fn winners(data: &ChoiceSet, most: usize) -> Result<Self, SelectError> {
        Self::new(data, most.max(1), false)
    }

    /// All variants where there are at most `most`, else as [`Classes::winners`]: a method that is told what each costs can tell
    /// those apart that never won.
    ///
    /// # Errors
    /// Nothing ran in any case.
    pub(crate) fn all(data: &ChoiceSet, most: usize) -> Result<Self, SelectError> {
        Self::new(data, most.max(1), true)
    }

    /// No class at all: variants by their average.
    ///
    /// # Errors
    /// Nothing ran in any case.
    pub(crate) fn averages(data: &ChoiceSet) -> Result<Self, SelectError> {
        Self::new(data, 0, false)
    }

    fn new(data: &ChoiceSet, most: usize, losers: bool) -> Result<Self, SelectError> {
        let mut sums: HashMap<&str, (f64, f64, usize)> = HashMap::new();
        for case in data.cases() {
            let Some(best) = case.best() else { continue };
            for t in &case.trials {
                let entry = sums.entry(&t.candidate.variant).or_default();
                entry.0 += relative(t.cost, best);
                entry.1 += 1.0;
                entry.2 += usize::from(t.cost == Some(best));
            }
        }
        let losers = losers && sums.len() <= most;
        let mut by_wins: Vec<(&str, usize)> = sums.iter().map(|(n, s)| (*n, s.2)).collect();
        if by_wins.iter().all(|(_, wins)| *wins == 0) {
            return Err(SelectError::NothingLegal);
        }
        by_wins.retain(|(_, wins)| losers || *wins > 0);
        by_wins.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        by_wins.truncate(most);
        let class: HashMap<&str, u32> = by_wins.iter().enumerate().map(|(i, (n, _))| (*n, i as u32)).collect();
        let known = |(name, sum): (&str, (f64, f64, usize))| {
            let known = Known { class: class.get(name).copied(), typical: (sum.0 / sum.1) as f32 };
            (name.into(), known)
        };
        Ok(Self { known: sums.into_iter().map(known).collect(), count: by_wins.len() })
    }

    /// The class of a candidate, if it is one.
    pub(crate) fn class(&self, candidate: &Candidate) -> Option<usize> {
        self.known.get(candidate.variant.as_str())?.class.map(|c| c as usize)
    }

    /// Number of classes.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Calls back with the class and the relative cost of every trial of a case that has a class; none where nothing ran.
    pub(crate) fn relative_costs(&self, case: &Case, mut each: impl FnMut(usize, f64)) -> Option<()> {
        let best = case.best()?;
        for t in &case.trials {
            if let Some(class) = self.known.get(t.candidate.variant.as_str()).and_then(|k| k.class) {
                each(class as usize, relative(t.cost, best));
            }
        }
        Some(())
    }

    /// As [`Classes::relative_costs`], of absolute costs; only of what ran.
    pub(crate) fn costs(&self, case: &Case, mut each: impl FnMut(usize, f64)) {
        for t in &case.trials {
            let class = self.known.get(t.candidate.variant.as_str()).and_then(|k| k.class);
            if let (Some(class), Some(cost)) = (class, t.cost) {
                each(class as usize, cost);
            }
        }
    }

    /// Orders candidates: classes by ascending score, then the variants that are no class by their average, then those
    /// that were never seen.
    pub(crate) fn order(&self, scores: &[f32], candidates: &[Candidate], by: &mut Vec<f32>, out: &mut VariantOrder) {
        let last = scores.iter().copied().filter(|s| s.is_finite()).fold(0.0, f32::max) + 1.0;
        by.clear();
        by.extend(candidates.iter().map(|c| match self.known.get(c.variant.as_str()) {
            Some(Known { class: Some(class), .. }) => scores[*class as usize],
            Some(Known { typical, .. }) => last + typical,
            None => f32::INFINITY,
        }));
        by_score(by, out);
    }

    /// Scores by `score`, which is given a buffer for the encoded row and one for the scores; then [`Classes::order`].
    pub(crate) fn rank(
        &self,
        candidates: &[Candidate],
        out: &mut VariantOrder,
        score: impl FnOnce(&mut Vec<f32>, &mut [f32]),
    ) {
        RankScratch::with(|scratch| {
            let RankScratch { rows, scores, by, .. } = scratch;
            scores.clear();
            scores.resize(self.count, 0.0);
            score(rows, scores);
            self.order(scores, candidates, by, out);
        });
    }
}

/// Natural log of the cost over the best, at most [`WORST`]; a failure is as bad.
pub(crate) fn relative(cost: Option<f64>, best: f64) -> f64 {
    cost.map_or(WORST, |c| (c / best).ln().min(WORST))
}

/// Names are short and trusted: eight bytes at a time, without the protection that strangers' keys would need.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut sum = self.0.rotate_left(5) ^ bytes.len() as u64;
        let mut add = |word: u64, place: u64| {
            // Each word has a factor of its own, so that none waits for another.
            let mixed = (word ^ (word >> 29)).wrapping_mul(ODD.wrapping_mul(2 * place + 1));
            sum = sum.wrapping_add(mixed ^ (mixed >> 32));
        };
        let (words, rest) = bytes.as_chunks::<8>();
        for (place, word) in words.iter().enumerate() {
            add(u64::from_le_bytes(*word), place as u64);
        }
        let last = rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        add(last, words.len() as u64);
        self.0 = sum.wrapping_mul(ODD);
    }

    fn finish(&self) -> u64 {
        // The table looks at the high bits and at the low ones.
        self.0 ^ (self.0 >> 32)
    }
}
