//! The loops around one register tile.

use super::Factors;
use std::ops::Range;

/// Rows of a register tile.
const MR: usize = 4;
/// Columns of a register tile.
const NR: usize = 8;
/// Length of the sums of a tile for the first cache: with `N1` columns of B, 24 KiB, and 6 KiB of rows of A pass.
const K1: usize = 192;
/// Columns of a tile for the first cache.
const N1: usize = 16;
/// Rows of A that stay in the second cache, 288 KiB with `K1` columns, while all of B passes.
const M2: usize = 192;

/// Copies of the tiles, kept from call to call.
#[derive(Default)]
pub(super) struct Panels {
    b: Vec<f64>,
}

#[inline(always)]
fn step<const FUSE: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSE { a.mul_add(b, c) } else { a * b + c }
}

/// `R` x `W` of C plus products of `k` columns of A and rows of B, which stand `stride` apart.
#[inline(always)]
fn tile<const FUSE: bool, const R: usize, const W: usize>(
    a: [&[f64]; R],
    b: &[f64],
    stride: usize,
    c: &mut [f64],
    n: usize,
) {
    let mut sums = [[0.0; W]; R];
    let k = a[0].len();
    let a = a.map(|row| &row[..k]);
    for p in 0..k {
        let Some(b) = b[p * stride..].first_chunk::<W>() else { return };
        let left = a.map(|row| row[p]);
        for (sums, a) in sums.iter_mut().zip(left) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = step::<FUSE>(a, *b, *sum);
            }
        }
    }
    for (i, sums) in sums.iter().enumerate() {
        for (c, sum) in c[i * n..i * n + W].iter_mut().zip(sums) {
            *c += sum;
        }
    }
}

/// A row of tiles: whole ones, then narrower ones.
#[inline(always)]
fn tiles<const FUSE: bool, const R: usize>(
    a: [&[f64]; R],
    b: &[f64],
    stride: usize,
    c: &mut [f64],
    n: usize,
    width: usize,
) {
    let whole = width / NR * NR;
    for j in (0..whole).step_by(NR) {
        tile::<FUSE, R, NR>(a, &b[j..], stride, &mut c[j..], n);
    }
    let mut at = whole;
    if width & 4 != 0 {
        tile::<FUSE, R, 4>(a, &b[at..], stride, &mut c[at..], n);
        at += 4;
    }
    if width & 2 != 0 {
        tile::<FUSE, R, 2>(a, &b[at..], stride, &mut c[at..], n);
        at += 2;
    }
    if width & 1 != 0 {
        tile::<FUSE, R, 1>(a, &b[at..], stride, &mut c[at..], n);
    }
}

/// A part of C: rows, the first column and the number of columns.
#[derive(Clone)]
struct Part {
    rows: Range<usize>,
    first: usize,
    width: usize,
}

/// C plus A's columns `ks` times a part of B with as many columns as the part of C, `stride` apart.
#[inline(always)]
fn block<const FUSE: bool>(f: &Factors<'_>, ks: Range<usize>, b: &[f64], stride: usize, part: Part, c: &mut [f64]) {
    let Part { rows, first, width } = part;
    let row_of_a = |i: usize| &f.a[i * f.k + ks.start..i * f.k + ks.end];
    let whole = rows.end - rows.len() % MR;
    for i in (rows.start..whole).step_by(MR) {
        let a = [row_of_a(i), row_of_a(i + 1), row_of_a(i + 2), row_of_a(i + 3)];
        tiles::<FUSE, MR>(a, b, stride, &mut c[i * f.n + first..], f.n, width);
    }
    for i in whole..rows.end {
        tiles::<FUSE, 1>([row_of_a(i)], b, stride, &mut c[i * f.n + first..], f.n, width);
    }
}

/// Register tiles only.
#[inline(always)]
pub(super) fn registers<const FUSE: bool>(f: &Factors<'_>, c: &mut [f64]) {
    if f.k > 0 && f.n > 0 {
        block::<FUSE>(f, 0..f.k, f.b, f.n, Part { rows: 0..f.m, first: 0, width: f.n }, c);
    }
}

/// A part of B that stays in the first cache while all rows of A pass.
#[inline(always)]
pub(super) fn first<const FUSE: bool>(f: &Factors<'_>, c: &mut [f64]) {
    for from in (0..f.k).step_by(K1) {
        for first in (0..f.n).step_by(N1) {
            let part = Part { rows: 0..f.m, first, width: N1.min(f.n - first) };
            block::<FUSE>(f, from..(from + K1).min(f.k), &f.b[from * f.n + first..], f.n, part, c);
        }
    }
}

/// Rows of B are copied to strips, each contiguous, so that one stays in the first cache; a part of A stays in the second
/// while all strips pass.
#[inline(always)]
pub(super) fn second<const FUSE: bool>(f: &Factors<'_>, c: &mut [f64], panels: &mut Panels) {
    for from in (0..f.k).step_by(K1) {
        let ks = from..(from + K1).min(f.k);
        copy(f, ks.clone(), panels);
        for top in (0..f.m).step_by(M2) {
            for first in (0..f.n).step_by(N1) {
                let width = N1.min(f.n - first);
                let part = Part { rows: top..(top + M2).min(f.m), first, width };
                block::<FUSE>(f, ks.clone(), &panels.b[first * ks.len()..], width, part, c);
            }
        }
    }
}

/// Strips of `N1` columns, one after another.
#[inline(always)]
fn copy(f: &Factors<'_>, ks: Range<usize>, panels: &mut Panels) {
    panels.b.clear();
    for start in (0..f.n).step_by(N1) {
        let columns = N1.min(f.n - start);
        for p in ks.clone() {
            let at = p * f.n + start;
            panels.b.extend_from_slice(&f.b[at..at + columns]);
        }
    }
}
