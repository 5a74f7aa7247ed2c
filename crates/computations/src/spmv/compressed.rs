//! Rows one after another, and entries with both coordinates.

use crate::description::Routine;
use crate::isa::on_isa;
use crate::matrix::Csr;
use std::ops::Range;
use std::sync::Arc;

/// Lanes of the vectorised sums: two registers of AVX2.
const LANES: usize = 8;

/// The matrix and the vector.
type Operands<'a> = (&'a Csr, &'a [f64]);

#[inline(always)]
fn vector((m, x): Operands<'_>, rows: Range<usize>, y: &mut [f64]) {
    for (row, out) in rows.zip(y) {
        let (columns, values) = m.row(row);
        let (whole_columns, last_columns) = columns.as_chunks::<LANES>();
        let (whole_values, last_values) = values.as_chunks::<LANES>();
        let mut sums = [0.0; LANES];
        for (c, v) in whole_columns.iter().zip(whole_values) {
            let found = c.map(|c| x[c as usize]);
            for ((sum, v), x) in sums.iter_mut().zip(v).zip(found) {
                *sum += v * x;
            }
        }
        let rest: f64 = last_columns.iter().zip(last_values).map(|(&c, v)| v * x[c as usize]).sum();
        *out = sums.iter().sum::<f64>() + rest;
    }
}

/// CSR: one sum a row, or eight partial sums a row.
pub(super) fn by_rows(matrix: &Arc<Csr>, vectors: bool) -> Routine {
    let m = matrix.clone();
    Box::new(move |device, inputs, output| {
        let (isa, m, x) = (device.isa(), &*m, inputs[3].as_slice::<f64>());
        device.each_range(device.balanced(&m.starts), output.as_mut_slice(), |rows, y| {
            if vectors {
                on_isa!(isa, vector((m, x), rows, y));
            } else {
                on_isa!(isa, m.rows_times(x, rows, y));
            }
        });
        Ok(())
    })
}

#[inline(always)]
fn segments((m, x): Operands<'_>, numbers: &[u32], entries: Range<usize>, first: usize, y: &mut [f64]) {
    y.fill(0.0);
    let (columns, values) = (&m.columns[entries.clone()], &m.values[entries.clone()]);
    let (mut sum, mut current) = (0.0, numbers.get(entries.start).copied().unwrap_or(0));
    for ((&row, &c), v) in numbers[entries].iter().zip(columns).zip(values) {
        if row != current {
            y[current as usize - first] = sum;
            (sum, current) = (0.0, row);
        }
        sum += v * x[c as usize];
    }
    if let Some(last) = y.get_mut(current as usize - first) {
        *last = sum;
    }
}

/// COO: a row number for every entry, sums ended where it changes. Entries are dealt in whole rows, so that no two threads write to
/// one element.
pub(super) fn coo(matrix: &Arc<Csr>) -> Routine {
    let (m, numbers) = (matrix.clone(), matrix.entries().map(|(row, _, _)| row as u32).collect::<Vec<_>>());
    Box::new(move |device, inputs, output| {
        let (isa, m, numbers, x) = (device.isa(), &*m, numbers.as_slice(), inputs[3].as_slice::<f64>());
        device.each_range(device.balanced(&m.starts), output.as_mut_slice(), |rows, y| {
            let entries = m.starts[rows.start] as usize..m.starts[rows.end] as usize;
            if entries.is_empty() {
                y.fill(0.0);
            } else {
                on_isa!(isa, segments((m, x), numbers, entries, rows.start, y));
            }
        });
        Ok(())
    })
}
