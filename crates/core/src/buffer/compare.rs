//! Comparing results with a reference, all of it or part by part.

use super::{Buffer, Mismatch, Verdict};
use std::collections::BTreeMap;

/// Components of one buffer that follow each other, as a reference has them.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Which buffer.
    pub buffer: usize,
    /// The first component.
    pub first: usize,
    /// The values in higher precision. NaN means that a NaN must stand there.
    pub values: &'a [f64],
    /// The largest absolute errors.
    pub bounds: &'a [f32],
}

/// A comparison with a reference that comes in parts, so that nobody needs to hold all of it.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    verdict: Verdict,
    /// By buffer: the largest finite reference, and the largest finite error.
    largest: BTreeMap<usize, (f64, f64)>,
    /// Whether something stands where nothing finite may, or the other way round.
    is_beyond: bool,
}

impl Comparison {
    /// Compares the part of a buffer.
    ///
    /// # Panics
    /// If the buffer ends before the part does, or a bound is missing.
    pub fn add(&mut self, found: &Buffer, part: &Part<'_>) {
        assert_eq!(part.bounds.len(), part.values.len(), "bounds of buffer {}", part.buffer);
        let (mut reference, mut error) = self.largest.get(&part.buffer).copied().unwrap_or_default();
        for (i, (&expected, &bound)) in part.values.iter().zip(part.bounds).enumerate() {
            if expected.is_finite() {
                reference = reference.max(expected.abs());
            }
            let index = part.first + i;
            let mismatch =
                Mismatch { buffer: part.buffer, index, expected, found: found.component(index), bound: bound.into() };
            error = error.max(self.component(mismatch));
        }
        self.largest.insert(part.buffer, (reference, error));
    }

    /// One component; its error where that is finite.
    fn component(&mut self, one: Mismatch) -> f64 {
        let verdict = &mut self.verdict;
        let same = one.expected == one.found || (one.expected.is_nan() && one.found.is_nan());
        let error = (one.expected - one.found).abs();
        if same {
            return 0.0;
        }
        if error.is_finite() && one.bound > 0.0 {
            verdict.worst_of_bound = verdict.worst_of_bound.max(error / one.bound);
        }
        // Written so that a NaN error counts as wrong.
        let right = error <= one.bound;
        if !right {
            verdict.wrong += 1;
            self.is_beyond |= !error.is_finite();
            let place = |m: &Mismatch| (m.buffer, m.index);
            if verdict.first.as_ref().is_none_or(|first| place(&one) < place(first)) {
                verdict.first = Some(one);
            }
        }
        if error.is_finite() { error } else { 0.0 }
    }

    /// How everything that was added compares.
    pub fn verdict(self) -> Verdict {
        let relative = |(reference, error): &(f64, f64)| error / reference.max(f64::MIN_POSITIVE);
        let largest = self.largest.values().map(relative).fold(0.0, f64::max);
        Verdict { max_rel_error: if self.is_beyond { f64::INFINITY } else { largest }, ..self.verdict }
    }
}
