//! The permutation within each row.

use super::Shape;
use crate::device::{Device, cut};
use crate::isa::on_isa;

/// Scatters every row by `((i + j / b) mod m + j m) mod n`, or gathers by it.
pub(super) fn permute(data: &mut [f64], s: Shape, device: &Device, gather: bool) {
    let isa = device.isa();
    let ranges = device.ranges(s.m, 1);
    let elements: Vec<_> = ranges.iter().map(|rows| rows.start * s.n..rows.end * s.n).collect();
    let parts = ranges.iter().map(|rows| rows.start).zip(cut(data, &elements)).collect();
    device.each(parts, |(first, rows)| {
        let mut scratch = vec![0.0; s.n];
        if gather {
            on_isa!(isa, run::<true>(rows, s, first, &mut scratch));
        } else {
            on_isa!(isa, run::<false>(rows, s, first, &mut scratch));
        }
    });
}

#[inline(always)]
fn run<const GATHER: bool>(rows: &mut [f64], s: Shape, first: usize, scratch: &mut [f64]) {
    for (k, row) in rows.chunks_exact_mut(s.n).enumerate() {
        let (i, step) = (first + k, s.m % s.n);
        // j m mod n, step by step: a division an element would take longer than the element.
        let mut moved = 0;
        for q in 0..s.n / s.b {
            let turn = (i + q) % s.m % s.n;
            for j in q * s.b..(q + 1) * s.b {
                let at = turn + moved;
                let at = if at >= s.n { at - s.n } else { at };
                if GATHER {
                    scratch[j] = row[at];
                } else {
                    scratch[at] = row[j];
                }
                moved += step;
                moved = if moved >= s.n { moved - s.n } else { moved };
            }
        }
        row.copy_from_slice(scratch);
    }
}
