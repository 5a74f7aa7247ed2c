//! A convolution as products of matrices, one per group: what a reference multiplies.

use super::input::{ConvInput, Direction};
use super::tensor::Tensors;
use super::workload::{F, Y};
use crate::product::Matrix;
use rayon::prelude::*;
use std::ops::Range;

/// An image or a channel, and a place or a tap.
type Position = (usize, [usize; 2]);

/// The product of one group. Its sizes are [`ConvInput::as_product`].
pub(super) struct Product<'a> {
    input: &'a ConvInput,
    tensors: Tensors,
    group: usize,
    /// What rows are, and the steps of the reduction: places and taps, or the other way round for filters.
    rows: Vec<Position>,
    steps: Vec<Position>,
}

impl<'a> Product<'a> {
    pub(super) fn new(input: &'a ConvInput, group: usize) -> Self {
        let tensors = input.tensors();
        let places = |[rows, columns]: [usize; 2]| -> Vec<Position> {
            let place = |i: usize| (i / columns / rows, [i / columns % rows, i % columns]);
            (0..input.n * rows * columns).map(place).collect()
        };
        let (c, k, taps) = (input.c / input.groups, input.k / input.groups, input.r * input.s);
        let in_memory = || (0..c * taps).map(|i| tensors.tap(i)).collect();
        let (rows, steps) = match input.direction {
            Direction::Forward => (places(input.output()), in_memory()),
            Direction::Filter => (in_memory(), places(input.output())),
            Direction::Data => {
                let of = |i: usize| (i / taps, [i % taps / input.s, i % input.s]);
                (places([input.h, input.w]), (0..k * taps).map(of).collect())
            }
        };
        Self { input, tensors, group, rows, steps }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn depth(&self) -> usize {
        self.steps.len()
    }

    /// Columns: channels, or output channels, of the group.
    pub(super) fn columns(&self) -> usize {
        self.of_group(self.input.direction != Direction::Data)
    }

    fn of_group(&self, outputs: bool) -> usize {
        (if outputs { self.input.k } else { self.input.c }) / self.input.groups
    }

    fn channel(&self, i: usize, outputs: bool) -> usize {
        self.group * self.of_group(outputs) + i
    }

    /// The row (`d` = 0) or the column (1) of the gathered tensor where these of a row and of a step meet, if it is inside.
    fn meets(&self, d: usize, row: usize, step: usize) -> Option<usize> {
        match self.input.direction {
            Direction::Forward => self.tensors.seen_along(d, row, step),
            Direction::Data => self.tensors.seeing_along(d, row, step),
            Direction::Filter => self.tensors.seen_along(d, step, row),
        }
    }

    /// The element of the gathered tensor at a place, for what a row and a step are of.
    fn left(&self, row: usize, step: usize, place: [usize; 2]) -> usize {
        let t = &self.tensors;
        match self.input.direction {
            Direction::Forward => t.x(row, self.channel(step, false), place),
            Direction::Data => t.y(row, self.channel(step, true), place),
            Direction::Filter => t.x(step, self.channel(row, false), place),
        }
    }

    /// The element of the other tensor.
    fn right(&self, step: Position, column: usize) -> usize {
        let t = &self.tensors;
        match self.input.direction {
            Direction::Forward => t.f(self.channel(column, true), step.0, step.1),
            Direction::Data => t.f(self.channel(step.0, true), column, step.1),
            Direction::Filter => t.y(step.0, self.channel(column, true), step.1),
        }
    }

    /// The position of the tensor that is not gathered.
    pub(super) fn other(&self) -> usize {
        if self.input.direction == Direction::Filter { Y } else { F }
    }

    /// The element of the result, and its output channel.
    pub(super) fn result(&self, row: usize, column: usize) -> (usize, usize) {
        let (t, (of, at)) = (&self.tensors, self.rows[row]);
        let k = self.channel(column, true);
        match self.input.direction {
            Direction::Forward => (t.y(of, k, at), k),
            Direction::Data => (t.x(of, self.channel(column, false), at), 0),
            Direction::Filter => (t.f(k, of, at), k),
        }
    }

    /// Rows of the gathered operand, zero where nothing is seen. Columns of a step are looked up once, and rows once in each line:
    /// dividing for every element took longer than multiplying.
    pub(super) fn gather_rows(&self, rows: &Range<usize>, from: &[f64]) -> Matrix {
        let mut values = vec![0.0; rows.len() * self.depth()];
        let mine = &self.rows[rows.clone()];
        let lines: Vec<&[Position]> = mine.chunk_by(|a, b| a.0 == b.0 && a.1[0] == b.1[0]).collect();
        let widest = mine.iter().map(|row| row.1[1] + 1).max().unwrap_or(0);
        let between = self.left(0, 0, [0, 1]) - self.left(0, 0, [0, 0]);
        values.par_chunks_mut(rows.len().max(1)).zip(&self.steps).for_each(|(mut column, &(of, at))| {
            let meets = |j| self.meets(1, j, at[1]).map(|place| place * between);
            let columns: Vec<Option<usize>> = (0..widest).map(meets).collect();
            for line in &lines {
                let (values, rest) = column.split_at_mut(line.len());
                column = rest;
                let Some(row) = self.meets(0, line[0].1[0], at[0]) else { continue };
                let first = self.left(line[0].0, of, [row, 0]);
                for (value, position) in values.iter_mut().zip(*line) {
                    *value = columns[position.1[1]].map_or(0.0, |along| from[first + along]);
                }
            }
        });
        Matrix { rows: rows.len(), columns: self.depth(), values }
    }

    /// Columns of the other operand.
    pub(super) fn gather_columns(&self, columns: &Range<usize>, from: &[f64]) -> Matrix {
        let column = |j: usize| self.steps.iter().map(move |&step| from[self.right(step, j)]);
        let values = columns.clone().flat_map(column).collect();
        Matrix { rows: self.depth(), columns: columns.len(), values }
    }
}
