//! Comparing results with a reference, all of it or part by part.

use super::{Buffer, Mismatch, Verdict};
use std::collections::BTreeMap;
use std::ops::Range;

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

/// Components that are looked at one by one where any of them changed: a page of bytes, or a few.
const PAGE: usize = 512;

/// The runs of components of a buffer that are not bit by bit what they were.
///
/// # Panics
/// If the buffers are not of one length.
pub fn changed<'a>(before: &'a Buffer, after: &'a Buffer) -> impl Iterator<Item = Range<usize>> + 'a {
    let (bytes, components) = (after.bytes().len(), after.components());
    assert_eq!((before.bytes().len(), before.components()), (bytes, components), "another length");
    let size = (bytes / components.max(1)).max(1);
    let pages = before.bytes().chunks(PAGE * size).zip(after.bytes().chunks(PAGE * size)).enumerate();
    pages.filter(|(_, (before, after))| before != after).flat_map(move |(page, (before, after))| {
        let pairs = before.chunks_exact(size).zip(after.chunks_exact(size));
        let changed: Vec<bool> = pairs.map(|(before, after)| before != after).collect();
        let mut first = page * PAGE;
        let runs = changed.chunk_by(|a, b| a == b).map(|run| {
            let range = first..first + run.len();
            first = range.end;
            (run[0], range)
        });
        runs.filter(|(is_changed, _)| *is_changed).map(|(_, range)| range).collect::<Vec<_>>()
    })
}

/// The smallest interval, as its middle and half of its width, that two such have in it. Where one is no interval of finite numbers and
/// the other is not the same, everything but NaN is in it.
pub(super) fn hull(one: (f64, f32), other: (f64, f32)) -> (f64, f32) {
    if one == other || one.0.is_nan() && other.0.is_nan() {
        return one;
    }
    if !(one.0.is_finite() && other.0.is_finite()) {
        return (0.0, f32::INFINITY);
    }
    let ends = |(middle, half): (f64, f32)| [middle - f64::from(half), middle + f64::from(half)];
    let ([low, high], [other_low, other_high]) = (ends(one), ends(other));
    let (low, high) = (low.min(other_low), high.max(other_high));
    let (middle, half) = (low.midpoint(high), (high - low) / 2.0);
    let rounded = half as f32;
    (middle, if f64::from(rounded) < half { rounded.next_up() } else { rounded })
}

#[cfg(test)]
mod tests {
    use super::hull;

    #[test]
    fn the_hull_holds_both_intervals() {
        assert_eq!(hull((0.0, 0.0), (1.0, 0.0)), (0.5, 0.5));
        assert_eq!(hull((2.0, 0.5), (2.0, 0.5)), (2.0, 0.5));
        assert_eq!(hull((-1.0, 1.0), (5.0, 0.5)), (1.75, 3.75));
        assert_eq!(hull((f64::INFINITY, 0.0), (5.0, 0.5)), (0.0, f32::INFINITY));
        let (middle, half) = hull((1.0, 0.0), (1.1, 0.0));
        assert!(middle - f64::from(half) <= 1.0 && middle + f64::from(half) >= 1.1);
    }
}
