//! Formats that pad: diagonals, equal rows, slices of equal rows.

use crate::description::Routine;
use crate::device::cut;
use crate::isa::on_isa;
use crate::matrix::Csr;
use std::ops::Range;
use std::sync::Arc;

/// The most that padding may multiply the entries by.
pub(super) const MOST_FILL: usize = 20;
/// Rows whose results stay in the first cache while all their diagonals or columns pass.
pub(super) const BANDS: [i64; 4] = [128, 512, 1024, 4096];
/// The band before anything is tuned.
pub(super) const BAND: i64 = 1024;
/// Rows of a slice of SELL-P: lanes of two registers of AVX2.
pub(super) const SLICE: usize = 8;

struct Dia {
    band: usize,
    offsets: Vec<i64>,
    /// Diagonal after diagonal, each with an element for every row.
    values: Vec<f64>,
}

/// DIA: full diagonals, no column numbers.
pub(super) fn dia(m: &Arc<Csr>, params: &[i64]) -> Routine {
    let (rows, offsets) = (m.rows(), m.diagonals());
    let mut number = vec![0; rows + m.cols];
    for (k, &offset) in offsets.iter().enumerate() {
        number[(offset + rows as i64 - 1) as usize] = k;
    }
    let mut values = vec![0.0; offsets.len() * rows];
    for (row, column, value) in m.entries() {
        values[number[column + rows - 1 - row] * rows + row] = value;
    }
    let dia = Dia { band: band(params), offsets, values };
    Box::new(move |device, inputs, output| {
        let (isa, y) = (device.isa(), output.as_mut_slice::<f64>());
        let d = (&dia, inputs[3].as_slice::<f64>(), y.len().max(1));
        device.each_range(device.ranges(y.len(), 8), y, |rows, y| on_isa!(isa, along_diagonals(d, rows, y)));
        Ok(())
    })
}

fn band(params: &[i64]) -> usize {
    params.first().map_or(1, |b| b.unsigned_abs().max(1) as usize)
}

#[inline(always)]
fn along_diagonals(d: (&Dia, &[f64], usize), rows: Range<usize>, y: &mut [f64]) {
    let (&Dia { band, ref offsets, ref values }, x, all_rows) = d;
    for (k, out) in y.chunks_mut(band).enumerate() {
        let first = rows.start + k * band;
        out.fill(0.0);
        for (&offset, diagonal) in offsets.iter().zip(values.chunks_exact(all_rows)) {
            // Rows whose column `row + offset` is inside the matrix.
            let low = usize::try_from(-offset).unwrap_or(0).max(first);
            let high = usize::try_from(x.len() as i64 - offset).unwrap_or(0).min(first + out.len());
            if low >= high {
                continue;
            }
            let from = (low as i64 + offset) as usize;
            let x = &x[from..from + (high - low)];
            for ((y, v), x) in out[low - first..high - first].iter_mut().zip(&diagonal[low..high]).zip(x) {
                *y += v * x;
            }
        }
    }
}

struct Ell {
    band: usize,
    longest: usize,
    /// The first entries of all rows, then the second ones, ...
    columns: Vec<u32>,
    values: Vec<f64>,
}

/// ELL: every row as long as the longest.
pub(super) fn ell(m: &Arc<Csr>, params: &[i64]) -> Routine {
    let (rows, longest) = (m.rows(), m.longest());
    let (mut columns, mut values) = (vec![0; rows * longest], vec![0.0; rows * longest]);
    for row in 0..rows {
        let (c, v) = m.row(row);
        for (k, (c, v)) in c.iter().zip(v).enumerate() {
            columns[k * rows + row] = *c;
            values[k * rows + row] = *v;
        }
    }
    let ell = Ell { band: band(params), longest, columns, values };
    Box::new(move |device, inputs, output| {
        let (isa, y) = (device.isa(), output.as_mut_slice::<f64>());
        let e = (&ell, inputs[3].as_slice::<f64>(), y.len());
        device.each_range(device.ranges(y.len(), 8), y, |rows, y| on_isa!(isa, equal_rows(e, rows, y)));
        Ok(())
    })
}

/// Adds products of a run of rows.
#[inline(always)]
fn gathered(y: &mut [f64], columns: &[u32], values: &[f64], x: &[f64]) {
    let (whole, last) = y.as_chunks_mut::<4>();
    let (whole_columns, last_columns) = columns.as_chunks::<4>();
    let (whole_values, last_values) = values.as_chunks::<4>();
    for ((y, c), v) in whole.iter_mut().zip(whole_columns).zip(whole_values) {
        let x = c.map(|c| x[c as usize]);
        for ((y, v), x) in y.iter_mut().zip(v).zip(x) {
            *y += v * x;
        }
    }
    for ((y, &c), v) in last.iter_mut().zip(last_columns).zip(last_values) {
        *y += v * x[c as usize];
    }
}

#[inline(always)]
fn equal_rows(e: (&Ell, &[f64], usize), rows: Range<usize>, y: &mut [f64]) {
    let (&Ell { band, longest, ref columns, ref values }, x, all_rows) = e;
    for (k, out) in y.chunks_mut(band).enumerate() {
        let first = rows.start + k * band;
        out.fill(0.0);
        for entry in 0..longest {
            let at = entry * all_rows + first;
            let range = at..at + out.len();
            gathered(out, &columns[range.clone()], &values[range], x);
        }
    }
}

fn slice_lengths(m: &Csr) -> impl Iterator<Item = usize> {
    let slice =
        |s: usize| m.starts[s * SLICE..=(s * SLICE + SLICE).min(m.rows())].windows(2).map(|w| w[1] - w[0]).max();
    (0..m.rows().div_ceil(SLICE)).map(move |s| slice(s).unwrap_or(0) as usize)
}

/// Elements that SELL-P stores.
pub(super) fn sliced(m: &Csr) -> usize {
    slice_lengths(m).sum::<usize>() * SLICE
}

/// SELL-P: rows in slices of eight, each as long as its longest.
pub(super) fn sellp(m: &Csr) -> Routine {
    // Where each slice starts, in columns of slices.
    let mut starts = vec![0];
    let total = slice_lengths(m).fold(0, |sum, length| {
        starts.push((sum + length) as u32);
        sum + length
    });
    let (mut columns, mut values) = (vec![[0; SLICE]; total], vec![[0.0; SLICE]; total]);
    for row in 0..m.rows() {
        let (c, v) = m.row(row);
        let start = starts[row / SLICE] as usize;
        for (k, (c, v)) in c.iter().zip(v).enumerate() {
            columns[start + k][row % SLICE] = *c;
            values[start + k][row % SLICE] = *v;
        }
    }
    Box::new(move |device, inputs, output| {
        let (isa, y) = (device.isa(), output.as_mut_slice::<f64>());
        let (rows, of_slices) = (y.len(), device.balanced(&starts));
        let ranges: Vec<_> = of_slices.iter().map(|r| (r.start * SLICE).min(rows)..(r.end * SLICE).min(rows)).collect();
        let parts = of_slices.into_iter().zip(cut(y, &ranges)).collect();
        let s = (starts.as_slice(), columns.as_slice(), values.as_slice(), inputs[3].as_slice());
        device.each(parts, |(which, y)| on_isa!(isa, slices(s, which, y)));
        Ok(())
    })
}

/// Where slices start, columns, values, the vector.
type Slices<'a> = (&'a [u32], &'a [[u32; SLICE]], &'a [[f64; SLICE]], &'a [f64]);

#[inline(always)]
fn slices(s: Slices<'_>, which: Range<usize>, y: &mut [f64]) {
    let (starts, columns, values, x) = s;
    for (slice, out) in which.zip(y.chunks_mut(SLICE)) {
        let range = starts[slice] as usize..starts[slice + 1] as usize;
        let mut sums = [0.0; SLICE];
        for (c, v) in columns[range.clone()].iter().zip(&values[range]) {
            let x = c.map(|c| x[c as usize]);
            for ((sum, v), x) in sums.iter_mut().zip(v).zip(x) {
                *sum += v * x;
            }
        }
        // The last slice may be short. Copying a part of `sums` in every turn would keep all of it in memory.
        match out.first_chunk_mut::<SLICE>() {
            Some(whole) => *whole = sums,
            None => out.iter_mut().zip(sums).for_each(|(y, sum)| *y = sum),
        }
    }
}
