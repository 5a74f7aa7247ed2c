//! Views with short rows: columns are moved by streaming over the rows and by moving whole rows.

use super::{Shape, rows};
use crate::device::Device;
use crate::isa::on_isa;
use crate::matrix::Seen;

/// [`super::c2r`] for short rows.
pub(super) fn c2r(data: &mut [f64], s: Shape, device: &Device, _: usize) {
    let isa = device.isa();
    let mut head = Vec::new();
    if !s.coprime() {
        on_isa!(isa, forward(data, s, &mut head, |j| j / s.b));
    }
    rows::permute(data, s, device, false);
    on_isa!(isa, forward(data, s, &mut head, |j| j));
    gather_rows(data, s, &s.bases());
}

/// [`super::r2c`] for short rows.
pub(super) fn r2c(data: &mut [f64], s: Shape, device: &Device, _: usize) {
    let isa = device.isa();
    let mut tail = Vec::new();
    scatter_rows(data, s, &s.bases());
    on_isa!(isa, backward(data, s, &mut tail, |j| j));
    rows::permute(data, s, device, true);
    if !s.coprime() {
        on_isa!(isa, backward(data, s, &mut tail, |j| j / s.b));
    }
}

/// Column `j` takes from `by(j)` rows below. Rows below are still old when a row is made; the first ones are kept.
#[inline(always)]
fn forward(data: &mut [f64], s: Shape, head: &mut Vec<f64>, by: impl Fn(usize) -> usize) {
    let kept = s.n.min(s.m);
    head.clear();
    head.extend_from_slice(&data[..kept * s.n]);
    for i in 0..s.m {
        for j in 0..s.n {
            let from = i + by(j) % s.m;
            data[i * s.n + j] = if from < s.m { data[from * s.n + j] } else { head[(from - s.m) * s.n + j] };
        }
    }
}

/// Column `j` takes from `by(j)` rows above, the last row first.
#[inline(always)]
fn backward(data: &mut [f64], s: Shape, tail: &mut Vec<f64>, by: impl Fn(usize) -> usize) {
    let kept = s.n.min(s.m);
    tail.clear();
    tail.extend_from_slice(&data[(s.m - kept) * s.n..]);
    for i in (0..s.m).rev() {
        for j in 0..s.n {
            let up = by(j) % s.m;
            let value = if up <= i { data[(i - up) * s.n + j] } else { tail[(i + kept - up) * s.n + j] };
            data[i * s.n + j] = value;
        }
    }
}

/// Row `i` becomes what row `from[i]` was.
fn gather_rows(data: &mut [f64], s: Shape, from: &[u32]) {
    let (mut seen, mut first) = (Seen::new(s.m), vec![0.0; s.n]);
    for start in 0..s.m {
        if !seen.mark(start) {
            continue;
        }
        first.copy_from_slice(&data[start * s.n..(start + 1) * s.n]);
        let mut row = start;
        loop {
            let next = from[row] as usize;
            if !seen.mark(next) {
                data[row * s.n..(row + 1) * s.n].copy_from_slice(&first);
                break;
            }
            data.copy_within(next * s.n..(next + 1) * s.n, row * s.n);
            row = next;
        }
    }
}

/// Row `to[i]` becomes what row `i` was.
fn scatter_rows(data: &mut [f64], s: Shape, to: &[u32]) {
    let (mut seen, mut held) = (Seen::new(s.m), vec![0.0; s.n]);
    for start in 0..s.m {
        if !seen.mark(start) {
            continue;
        }
        held.copy_from_slice(&data[start * s.n..(start + 1) * s.n]);
        let mut row = start;
        loop {
            row = to[row] as usize;
            held.swap_with_slice(&mut data[row * s.n..(row + 1) * s.n]);
            if !seen.mark(row) {
                break;
            }
        }
    }
}
