//! Variants as classes, for methods that learn from the input alone.

use crate::order::{RankScratch, by_score};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use tilewright_core::choice::{Case, ChoiceSet, SelectError, WORST};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

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
                entry.0 += t.relative_cost(best);
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

    fn class(&self, candidate: &Candidate) -> Option<usize> {
        self.known.get(candidate.variant.as_str())?.class.map(|c| c as usize)
    }

    /// Number of classes.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Calls back with the class and the cost of every trial of a case that ran and has a class.
    pub(crate) fn costs(&self, case: &Case, mut each: impl FnMut(usize, f64)) {
        for t in &case.trials {
            if let (Some(class), Some(cost)) = (self.class(&t.candidate), t.cost) {
                each(class, cost);
            }
        }
    }

    /// A row that `write` makes of the input's features for every case in which a class was tried, and what `cost` makes of the
    /// relative cost of every class there (NaN where it was not tried): both row after row.
    pub(crate) fn table(
        &self,
        data: &ChoiceSet,
        write: impl Fn(&[f32], &mut Vec<f32>),
        cost: impl Fn(f64) -> f64,
    ) -> (Vec<f32>, Vec<f64>) {
        let (mut rows, mut costs, mut row) = (Vec::new(), Vec::new(), Vec::new());
        for case in data.cases() {
            let Some(best) = case.best() else { continue };
            let mut of_case = vec![f64::NAN; self.count];
            for t in &case.trials {
                if let Some(class) = self.class(&t.candidate) {
                    of_case[class] = cost(t.relative_cost(best));
                }
            }
            if of_case.iter().any(|c| !c.is_nan()) {
                write(&case.features, &mut row);
                rows.extend_from_slice(&row);
                costs.extend(of_case);
            }
        }
        (rows, costs)
    }
}

/// The table of the share of the best performance that every class loses: what the fraction of the oracle sums. One that was not tried
/// loses what it loses on average, for its absence says nothing.
pub(crate) fn lost_performance(
    classes: &Classes,
    data: &ChoiceSet,
    write: impl Fn(&[f32], &mut Vec<f32>),
) -> (Vec<f32>, Vec<f64>) {
    let (rows, mut costs) = classes.table(data, write, |log| 1.0 - (-log).exp());
    let n = classes.len();
    for class in 0..n {
        let known: Vec<f64> = costs.iter().skip(class).step_by(n).copied().filter(|c| !c.is_nan()).collect();
        let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        costs.iter_mut().skip(class).step_by(n).filter(|c| c.is_nan()).for_each(|c| *c = mean);
    }
    (rows, costs)
}

/// Writes the score of every class for the features of an input; the second argument is a buffer for the row of the input.
type Score = dyn Fn(&[f32], &mut Vec<f32>, &mut [f32]) + Send + Sync;

/// A fitted method that scores classes: the lowest is best.
pub(crate) struct ClassSelector {
    classes: Classes,
    score: Box<Score>,
    /// Whether scores are shares of the best performance that are lost.
    losses: bool,
}

impl ClassSelector {
    pub(crate) fn new(
        classes: Classes,
        score: impl Fn(&[f32], &mut Vec<f32>, &mut [f32]) + Send + Sync + 'static,
    ) -> Self {
        Self { classes, score: Box::new(score), losses: false }
    }

    /// As [`ClassSelector::new`], of a method whose scores are the shares of the best performance that classes lose.
    pub(crate) fn of_losses(
        classes: Classes,
        score: impl Fn(&[f32], &mut Vec<f32>, &mut [f32]) + Send + Sync + 'static,
    ) -> Self {
        Self { losses: true, ..Self::new(classes, score) }
    }

    /// The score of every candidate; none where one is no class.
    pub(crate) fn scores(&self, input: &[f32], candidates: &[Candidate]) -> Option<Vec<f32>> {
        let classes: Vec<usize> = candidates.iter().map(|c| self.classes.class(c)).collect::<Option<_>>()?;
        let mut scores = vec![0.0; self.classes.len()];
        RankScratch::with(|scratch| (self.score)(input, &mut scratch.rows, &mut scores));
        Some(classes.into_iter().map(|c| scores[c]).collect())
    }
}

impl Selector for ClassSelector {
    /// Classes by ascending score, then the variants that are no class by their average, then those that were never seen.
    fn rank(&self, input_and_device: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        RankScratch::with(|RankScratch { rows, scores, by, .. }| {
            scores.clear();
            scores.resize(self.classes.len(), 0.0);
            (self.score)(input_and_device, rows, scores);
            let last = scores.iter().copied().filter(|s| s.is_finite()).fold(0.0, f32::max) + 1.0;
            by.clear();
            by.extend(candidates.iter().map(|c| match self.classes.known.get(c.variant.as_str()) {
                Some(Known { class: Some(class), .. }) => scores[*class as usize],
                Some(Known { typical, .. }) => last + typical,
                None => f32::INFINITY,
            }));
            by_score(by, out);
        });
    }

    fn relative_costs(&self, input_and_device: &[f32], candidates: &[Candidate], out: &mut Vec<f32>) -> bool {
        if !self.losses {
            return false;
        }
        let mut scores = vec![0.0; self.classes.len()];
        RankScratch::with(|scratch| (self.score)(input_and_device, &mut scratch.rows, &mut scores));
        out.clear();
        out.extend(candidates.iter().map(|c| match self.classes.known.get(c.variant.as_str()) {
            Some(Known { class: Some(class), .. }) => cost_of_loss(scores[*class as usize]),
            Some(Known { typical, .. }) => *typical,
            None => f32::NAN,
        }));
        true
    }
}

/// The log of the relative cost at which this share of the best performance is lost.
pub(crate) fn cost_of_loss(loss: f32) -> f32 {
    -(1.0 - loss.clamp(0.0, 1.0 - (-WORST as f32).exp())).ln()
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
