//! Permutations of columns, several at a time, so that every line of the cache is used whole.

use super::Shape;
use crate::device::Device;
use crate::isa::on_isa;
use std::ops::Range;

/// Columns of a group: half a line of the cache, a line, two or four of them.
pub(super) const WIDTHS: [i64; 4] = [4, 8, 16, 32];

/// Where a column takes its elements from, or puts them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Takes from `i + j / b`.
    Rotate,
    /// Takes from `i - j / b`.
    RotateBack,
    /// Takes from `j + i n - i / a`.
    Gather,
    /// Puts to `j + i n - i / a`.
    Scatter,
}

/// Rows of a view that a thread may change: all of each, or a band of columns.
trait Rows {
    fn row(&mut self, i: usize) -> &mut [f64];
}

struct Whole<'a>(&'a mut [f64], usize);

impl Rows for Whole<'_> {
    #[inline(always)]
    fn row(&mut self, i: usize) -> &mut [f64] {
        &mut self.0[i * self.1..(i + 1) * self.1]
    }
}

impl Rows for Vec<&mut [f64]> {
    #[inline(always)]
    fn row(&mut self, i: usize) -> &mut [f64] {
        &mut *self[i]
    }
}

/// Applies a step to all columns, as many at a time as the width says that is nearest.
pub(super) fn each(data: &mut [f64], s: Shape, device: &Device, step: Step, width: usize) {
    match width {
        ..8 => in_groups::<4>(data, s, device, step),
        8..16 => in_groups::<8>(data, s, device, step),
        16..32 => in_groups::<16>(data, s, device, step),
        32.. => in_groups::<32>(data, s, device, step),
    }
}

fn in_groups<const WIDTH: usize>(data: &mut [f64], s: Shape, device: &Device, step: Step) {
    let isa = device.isa();
    let bases = if matches!(step, Step::Gather | Step::Scatter) { s.bases() } else { Vec::new() };
    if device.threads() == 1 || s.n < 2 * WIDTH {
        let mut rows = Whole(data, s.n);
        return on_isa!(isa, groups::<WIDTH>(&mut rows, s, 0..s.n, step, &bases));
    }
    let ranges = device.ranges(s.n, WIDTH);
    let mut bands: Vec<Vec<&mut [f64]>> = ranges.iter().map(|_| Vec::with_capacity(s.m)).collect();
    for row in data.chunks_exact_mut(s.n) {
        bands.iter_mut().zip(crate::device::cut(row, &ranges)).for_each(|(band, part)| band.push(part));
    }
    device.each(bands.into_iter().zip(ranges).collect(), |(mut band, range)| {
        on_isa!(isa, groups::<WIDTH>(&mut band, s, range, step, &bases));
    });
}

#[inline(always)]
fn groups<const WIDTH: usize>(rows: &mut impl Rows, s: Shape, columns: Range<usize>, step: Step, bases: &[u32]) {
    let mut scratch = vec![[0.0; WIDTH]; s.m];
    for first in columns.clone().step_by(WIDTH) {
        let group = first..(first + WIDTH).min(columns.end);
        let here = first - columns.start..group.end - columns.start;
        match step {
            Step::Rotate => rotate(rows, s, group, here, &mut scratch, false),
            Step::RotateBack => rotate(rows, s, group, here, &mut scratch, true),
            Step::Gather => gather(rows, s, first, here, &mut scratch, bases),
            Step::Scatter => scatter(rows, s, first, here, &mut scratch, bases),
        }
    }
}

#[inline(always)]
fn store<const WIDTH: usize>(rows: &mut impl Rows, here: Range<usize>, scratch: &[[f64; WIDTH]]) {
    for (i, line) in scratch.iter().enumerate() {
        let row = &mut rows.row(i)[here.clone()];
        let width = row.len();
        row.copy_from_slice(&line[..width]);
    }
}

#[inline(always)]
fn wrapped(at: usize, m: usize) -> usize {
    if at >= m { at - m } else { at }
}

#[inline(always)]
fn rotate<const WIDTH: usize>(
    rows: &mut impl Rows,
    s: Shape,
    group: Range<usize>,
    here: Range<usize>,
    scratch: &mut [[f64; WIDTH]],
    back: bool,
) {
    let mut by = [0; WIDTH];
    group.zip(&mut by).for_each(|(j, by)| *by = if back { (s.m - j / s.b % s.m) % s.m } else { j / s.b % s.m });
    for (i, kept) in scratch.iter_mut().enumerate().take(s.m) {
        for (l, column) in here.clone().enumerate() {
            kept[l] = rows.row(wrapped(i + by[l], s.m))[column];
        }
    }
    store(rows, here, scratch);
}

#[inline(always)]
fn gather<const WIDTH: usize>(
    rows: &mut impl Rows,
    s: Shape,
    first: usize,
    here: Range<usize>,
    scratch: &mut [[f64; WIDTH]],
    bases: &[u32],
) {
    for (line, &base) in scratch.iter_mut().zip(bases) {
        let mut from = wrapped(base as usize + first % s.m, s.m);
        for (slot, column) in line.iter_mut().zip(here.clone()) {
            *slot = rows.row(from)[column];
            from = wrapped(from + 1, s.m);
        }
    }
    store(rows, here, scratch);
}

#[inline(always)]
fn scatter<const WIDTH: usize>(
    rows: &mut impl Rows,
    s: Shape,
    first: usize,
    here: Range<usize>,
    scratch: &mut [[f64; WIDTH]],
    bases: &[u32],
) {
    for (i, &base) in bases.iter().enumerate() {
        let mut to = wrapped(base as usize + first % s.m, s.m);
        let row = &rows.row(i)[here.clone()];
        for (l, value) in row.iter().enumerate() {
            scratch[to][l] = *value;
            to = wrapped(to + 1, s.m);
        }
    }
    store(rows, here, scratch);
}
