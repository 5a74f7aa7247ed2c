//! The loops around one register tile.

use super::Factors;

/// Rows of a register tile.
const MR: usize = 4;
/// Columns of a register tile.
const NR: usize = 8;
/// Length of the sums of a tile for the first cache: with `N1` columns of B, 16 KiB.
const K1: usize = 64;
/// Columns of a tile for the first cache.
const N1: usize = 32;
/// Length of the sums of a tile for the second cache.
const K2: usize = 192;
/// Columns of a tile for the second cache.
const N2: usize = 128;

/// Copies of the tiles, kept from call to call.
#[derive(Default)]
pub(super) struct Panels {
    b: Vec<f64>,
}

#[inline(always)]
fn step<const FUSE: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSE { a.mul_add(b, c) } else { a * b + c }
}

/// `MR` x `NR` of C plus products of `k` columns of A and rows of B, which stand `stride` apart.
#[inline(always)]
fn tile<const FUSE: bool>(a: [&[f64]; MR], b: &[f64], stride: usize, c: &mut [f64], n: usize) {
    let mut sums = [[0.0; NR]; MR];
    let k = a[0].len();
    let [a0, a1, a2, a3] = a.map(|row| &row[..k]);
    for p in 0..k {
        let Some(b) = b[p * stride..].first_chunk::<NR>() else { return };
        let left = [a0[p], a1[p], a2[p], a3[p]];
        for (sums, a) in sums.iter_mut().zip(left) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = step::<FUSE>(a, *b, *sum);
            }
        }
    }
    for (i, sums) in sums.iter().enumerate() {
        for (c, sum) in c[i * n..i * n + NR].iter_mut().zip(sums) {
            *c += sum;
        }
    }
}

/// What is left at the edges, element by element.
#[inline(always)]
fn edge<const FUSE: bool>(a: &[f64], b: &[f64], stride: usize, c: &mut [f64]) {
    for (p, a) in a.iter().enumerate() {
        let row = &b[p * stride..p * stride + c.len()];
        for (c, b) in c.iter_mut().zip(row) {
            *c = step::<FUSE>(*a, *b, *c);
        }
    }
}

/// C plus A's columns `from..to` times a part of B whose first row is `from` and which has `width` columns, `stride` apart.
#[inline(always)]
fn block<const FUSE: bool>(
    f: &Factors,
    ks: (usize, usize),
    b: &[f64],
    stride: usize,
    at: (usize, usize),
    c: &mut [f64],
) {
    let (first, width) = at;
    let row_of_a = |i: usize| &f.a[i * f.k + ks.0..i * f.k + ks.1];
    let (whole_m, whole_n) = (f.m / MR * MR, width / NR * NR);
    for i in (0..whole_m).step_by(MR) {
        let a = [row_of_a(i), row_of_a(i + 1), row_of_a(i + 2), row_of_a(i + 3)];
        for j in (0..whole_n).step_by(NR) {
            tile::<FUSE>(a, &b[j..], stride, &mut c[i * f.n + first + j..], f.n);
        }
        if whole_n < width {
            for (r, a) in a.iter().enumerate() {
                let from = (i + r) * f.n + first;
                edge::<FUSE>(a, &b[whole_n..], stride, &mut c[from + whole_n..from + width]);
            }
        }
    }
    for i in whole_m..f.m {
        let from = i * f.n + first;
        edge::<FUSE>(row_of_a(i), b, stride, &mut c[from..from + width]);
    }
}

/// Register tiles only.
#[inline(always)]
pub(super) fn registers<const FUSE: bool>(f: &Factors, c: &mut [f64]) {
    if f.k > 0 && f.n > 0 {
        block::<FUSE>(f, (0, f.k), &f.b, f.n, (0, f.n), c);
    }
}

/// A part of B that stays in the first cache while all rows of A pass.
#[inline(always)]
pub(super) fn first<const FUSE: bool>(f: &Factors, c: &mut [f64]) {
    for from in (0..f.k).step_by(K1) {
        let to = (from + K1).min(f.k);
        for first in (0..f.n).step_by(N1) {
            let width = N1.min(f.n - first);
            block::<FUSE>(f, (from, to), &f.b[from * f.n + first..], f.n, (first, width), c);
        }
    }
}

/// A part of B is copied, so that it stays in the second cache; parts of the copy pass through the first.
#[inline(always)]
pub(super) fn second<const FUSE: bool>(f: &Factors, c: &mut [f64], panels: &mut Panels) {
    for from in (0..f.k).step_by(K2) {
        let to = (from + K2).min(f.k);
        for first in (0..f.n).step_by(N2) {
            let width = N2.min(f.n - first);
            copy(f, (from, to), first, width, panels);
            let mut panel = panels.b.as_slice();
            for start in (0..width).step_by(N1) {
                let columns = N1.min(width - start);
                let (own, rest) = panel.split_at((to - from) * columns);
                panel = rest;
                for inner in (from..to).step_by(K1) {
                    let part = &own[(inner - from) * columns..];
                    block::<FUSE>(f, (inner, (inner + K1).min(to)), part, columns, (first + start, columns), c);
                }
            }
        }
    }
}

/// Strips of `N1` columns, each contiguous.
#[inline(always)]
fn copy(f: &Factors, ks: (usize, usize), first: usize, width: usize, panels: &mut Panels) {
    panels.b.clear();
    for start in (0..width).step_by(N1) {
        let columns = N1.min(width - start);
        for p in ks.0..ks.1 {
            let at = p * f.n + first + start;
            panels.b.extend_from_slice(&f.b[at..at + columns]);
        }
    }
}
