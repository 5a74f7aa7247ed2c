//! Rows one after another, and entries with both coordinates.

use super::Product;
use crate::computation::{Failure, Prepared, Ready};
use crate::device::{Device, cut};
use std::ops::Range;

/// Lanes of the vectorised sums: two registers of AVX2.
const LANES: usize = 8;

struct ByRows<'a> {
    input: &'a Product,
    y: Vec<f64>,
    vector: bool,
}

/// CSR: one sum a row, or eight partial sums a row.
pub(super) fn by_rows(input: &Product, vector: bool) -> Ready<'_, Vec<f64>> {
    Box::new(ByRows { input, y: vec![f64::NAN; input.matrix.rows()], vector })
}

#[inline(always)]
fn scalar(p: &Product, rows: Range<usize>, y: &mut [f64]) {
    for (row, out) in rows.zip(y) {
        let (columns, values) = p.matrix.row(row);
        *out = columns.iter().zip(values).map(|(&c, v)| v * p.x[c as usize]).sum();
    }
}

#[inline(always)]
fn vector(p: &Product, rows: Range<usize>, y: &mut [f64]) {
    for (row, out) in rows.zip(y) {
        let (columns, values) = p.matrix.row(row);
        let (whole_columns, last_columns) = columns.as_chunks::<LANES>();
        let (whole_values, last_values) = values.as_chunks::<LANES>();
        let mut sums = [0.0; LANES];
        for (c, v) in whole_columns.iter().zip(whole_values) {
            let x = c.map(|c| p.x[c as usize]);
            for ((sum, v), x) in sums.iter_mut().zip(v).zip(x) {
                *sum += v * x;
            }
        }
        let rest: f64 = last_columns.iter().zip(last_values).map(|(&c, v)| v * p.x[c as usize]).sum();
        *out = sums.iter().sum::<f64>() + rest;
    }
}

impl Prepared<Vec<f64>> for ByRows<'_> {
    fn run(&mut self, device: &Device) -> Result<(), Failure> {
        let ranges = device.balanced(&self.input.matrix.starts);
        let parts: Vec<_> = ranges.iter().cloned().zip(cut(&mut self.y, &ranges)).collect();
        let (isa, p, vectors) = (device.isa(), self.input, self.vector);
        device.each(parts, |(rows, y)| {
            if vectors {
                isa.run(
                    #[inline(always)]
                    || vector(p, rows, y),
                );
            } else {
                isa.run(
                    #[inline(always)]
                    || scalar(p, rows, y),
                );
            }
        });
        Ok(())
    }

    fn output(&self) -> Vec<f64> {
        self.y.clone()
    }
}

struct Coo<'a> {
    input: &'a Product,
    rows: Vec<u32>,
    y: Vec<f64>,
}

/// COO: a row number for every entry, sums ended where it changes.
pub(super) fn coo(input: &Product) -> Ready<'_, Vec<f64>> {
    let rows = input.matrix.entries().map(|(row, _, _)| row as u32).collect();
    Box::new(Coo { input, rows, y: vec![f64::NAN; input.matrix.rows()] })
}

#[inline(always)]
fn segments(p: &Product, numbers: &[u32], entries: Range<usize>, first: usize, y: &mut [f64]) {
    y.fill(0.0);
    let (columns, values) = (&p.matrix.columns[entries.clone()], &p.matrix.values[entries.clone()]);
    let (mut sum, mut current) = (0.0, numbers.get(entries.start).copied().unwrap_or(0));
    for ((&row, &c), v) in numbers[entries].iter().zip(columns).zip(values) {
        if row != current {
            y[current as usize - first] = sum;
            (sum, current) = (0.0, row);
        }
        sum += v * p.x[c as usize];
    }
    if let Some(last) = y.get_mut(current as usize - first) {
        *last = sum;
    }
}

impl Prepared<Vec<f64>> for Coo<'_> {
    fn run(&mut self, device: &Device) -> Result<(), Failure> {
        // Entries are dealt in whole rows, so that no two threads write to one element.
        let ranges = device.balanced(&self.input.matrix.starts);
        let parts: Vec<_> = ranges.iter().cloned().zip(cut(&mut self.y, &ranges)).collect();
        let (isa, p, numbers) = (device.isa(), self.input, &self.rows);
        device.each(parts, |(rows, y)| {
            let starts = &p.matrix.starts;
            let entries = starts[rows.start] as usize..starts[rows.end] as usize;
            if entries.is_empty() {
                y.fill(0.0);
            } else {
                isa.run(
                    #[inline(always)]
                    || segments(p, numbers, entries, rows.start, y),
                );
            }
        });
        Ok(())
    }

    fn output(&self) -> Vec<f64> {
        self.y.clone()
    }
}
