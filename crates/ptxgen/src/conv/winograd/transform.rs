//! The kernels that transform filters, inputs and products: one thread for every square of numbers.
//!
//! A thread's number is its place among the numbers of one place of the tile, so that neighbouring threads write (of products: read)
//! neighbours; the next place of the tile lies a constant number of bytes further. Offsets in tensors are elements in 32 bits and wrap
//! round; rows and columns are compared as unsigned numbers, so that those in the padding are beyond every image.

use super::super::elements::{offset, read, split, write};
use crate::ir::{Arith, Axis, Builder, Compare, Entry, Form, Inst, Module, Operand, Reg, Space, Special, Type};
use crate::simt::Arithmetic;
use crate::target::Target;
use std::array::from_fn;
use std::cell::RefCell;
use tilewright_ops::conv::winograd::{Linear, filters_2, filters_4, inputs_2, inputs_4, outputs_2, outputs_4};
use tilewright_ops::conv::{Activation, Epilogue};

/// Threads of a block.
pub(super) const THREADS: u32 = 128;

/// What is transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Filters,
    Inputs,
    Products,
}

/// What code is specialised to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transform {
    pub(super) target: Target,
    pub(super) arithmetic: Arithmetic,
    /// Outputs along a tile, 2 or 4.
    pub(super) side: usize,
    /// Whether channels, and not columns, are the innermost of a tensor.
    pub(super) channels_first: bool,
    pub(super) epilogue: Epilogue,
}

/// A register that arithmetic is emitted for.
struct Value<'a, 'b> {
    builder: &'a RefCell<&'b mut Builder>,
    of: Arithmetic,
    reg: Reg,
}

impl Clone for Value<'_, '_> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Copy for Value<'_, '_> {}

impl Value<'_, '_> {
    fn with(self, emit: impl FnOnce(&mut Builder) -> Reg) -> Self {
        Self { reg: emit(&mut self.builder.borrow_mut()), ..self }
    }
}

impl Linear for Value<'_, '_> {
    fn plus(self, other: Self) -> Self {
        self.with(|b| self.of.add(b, self.reg, other.reg))
    }

    fn minus(self, other: Self) -> Self {
        self.with(|b| b.sub(self.of.ty, self.reg, other.reg))
    }

    fn times(self, by: f64) -> Self {
        self.with(|b| b.arith(Arith::Mul, self.of.ty, self.reg, Operand::Float(by)))
    }

    fn plus_times(self, other: Self, by: f64) -> Self {
        self.with(|b| {
            let (ty, dst) = (self.of.ty, b.reg(self.of.ty));
            b.push(Inst::Fma { ty, dst, a: other.reg.into(), b: Operand::Float(by), c: self.reg.into() });
            dst
        })
    }
}

impl What {
    /// Numbers along a square before and after, for a tile of this side.
    fn counts(self, side: usize) -> [usize; 2] {
        match self {
            Self::Filters => [3, side + 2],
            Self::Inputs => [side + 2, side + 2],
            Self::Products => [side + 2, side],
        }
    }

    /// One column or row.
    fn line<N: Linear>(self, side: usize, at: impl Fn(usize) -> N) -> Vec<N> {
        match (self, side) {
            (Self::Filters, 2) => filters_2(from_fn(at)).into(),
            (Self::Filters, _) => filters_4(from_fn(at)).into(),
            (Self::Inputs, 2) => inputs_2(from_fn(at)).into(),
            (Self::Inputs, _) => inputs_4(from_fn(at)).into(),
            (Self::Products, 2) => outputs_2(from_fn(at)).into(),
            (Self::Products, _) => outputs_4(from_fn(at)).into(),
        }
    }

    /// A square by row and column, along its columns and then along its rows. `at` is asked for every number once, column by column,
    /// `put` is given the numbers row by row.
    fn square(
        self,
        b: &mut Builder,
        (of, side): (Arithmetic, usize),
        mut at: impl FnMut(&mut Builder, usize, usize) -> Reg,
        mut put: impl FnMut(&mut Builder, usize, usize, Reg),
    ) {
        let [before, after] = self.counts(side);
        let line = |b: &mut Builder, regs: &[Reg]| -> Vec<Reg> {
            let builder = RefCell::new(b);
            let values = self.line(side, |i| Value { builder: &builder, of, reg: regs[i] });
            values.into_iter().map(|value| value.reg).collect()
        };
        let columns: Vec<Vec<Reg>> = (0..before)
            .map(|j| {
                let column: Vec<Reg> = (0..before).map(|i| at(b, i, j)).collect();
                line(b, &column)
            })
            .collect();
        for i in 0..after {
            let row: Vec<Reg> = columns.iter().map(|column| column[i]).collect();
            let row = line(b, &row);
            row.into_iter().enumerate().for_each(|(j, number)| put(b, i, j, number));
        }
    }
}

/// A thread's number, and whether there is work for it.
fn thread(b: &mut Builder, count: Reg) -> (Reg, Reg) {
    let (tid, block) = (b.special(Special::Tid), b.special(Special::Ctaid(Axis::X)));
    let at = b.scale_add(Some(block), THREADS, tid);
    (at, b.compare(Compare::Lt, at, count, None))
}

/// Image, row and column of tiles of a tile.
fn tile(b: &mut Builder, tile: Reg, [rows, columns]: [Reg; 2]) -> [Reg; 3] {
    let [column, rest] = split(b, tile, columns);
    let [row, image] = split(b, rest, rows);
    [image, row, column]
}

/// So many offsets, a stride apart.
fn walk(b: &mut Builder, first: Reg, stride: Reg, count: usize) -> Vec<Reg> {
    let mut offsets = vec![first];
    while offsets.len() < count {
        let last = offsets[offsets.len() - 1];
        offsets.push(b.add(Type::U32, last, stride));
    }
    offsets
}

/// The pointers of a thread to its numbers, a place of the tile after the other.
struct Places {
    next: Option<Reg>,
    stride: Reg,
}

impl Places {
    fn next(&mut self, b: &mut Builder, first: Reg) -> Reg {
        let at = self.next.map_or(first, |last| b.add(Type::U64, last, self.stride));
        self.next = Some(at);
        at
    }
}

impl Transform {
    /// The module of a transformation.
    pub(super) fn module(&self, what: What) -> Module {
        let mut b = Builder::new();
        let name = match what {
            What::Filters => self.filters(&mut b),
            What::Inputs => self.inputs(&mut b),
            What::Products => self.products(&mut b),
        };
        let name = format!("conv_winograd_{}_{name}", self.arithmetic.dtype);
        // All that a thread may have: left to itself the assembler was seen to spill for a block more.
        let entry = Entry { max_registers: Some(255), ..b.finish(&name, THREADS) };
        Module { target: self.target, entry }
    }

    fn numbers(&self) -> (Arithmetic, usize) {
        (self.arithmetic, self.side)
    }

    /// Two digits of a number, channels and tiles or outputs and tiles, with the sizes of both, and what is left. Channels are the
    /// lower one where they are the innermost of tensors.
    fn digits(&self, b: &mut Builder, at: Reg, [channels, tiles]: [Reg; 2]) -> [Reg; 3] {
        let [first, second] = if self.channels_first { [channels, tiles] } else { [tiles, channels] };
        let [low, rest] = split(b, at, first);
        let [high, group] = split(b, rest, second);
        if self.channels_first { [low, high, group] } else { [high, low, group] }
    }

    fn filters(&self, b: &mut Builder) -> &'static str {
        let (of, bytes) = (self.arithmetic, self.arithmetic.bytes());
        let (filter, to) = (b.buffer("filter", bytes), b.buffer("transformed", bytes));
        let stride = b.param("number", Type::U64, bytes);
        let [count, channels, outs, out_pitch, first] =
            ["count", "channels", "outs", "out_pitch", "tap_first"].map(|name| b.param(name, Type::U32, 1));
        let [row, column, out_stride, channel_stride, group_stride] =
            ["tap_row", "tap_column", "filter_out", "filter_channel", "group_filter"]
                .map(|name| b.param(name, Type::U32, 1));
        let (at, works) = thread(b, count);
        b.when(works, Form::Branch, |b| {
            let [out, rest] = split(b, at, out_pitch);
            let [channel, group] = split(b, rest, channels);
            let exists = b.compare(Compare::Lt, out, outs, None);
            let terms = [(Some(out), out_stride), (Some(channel), channel_stride), (Some(group), group_stride)];
            let start = offset(b, Some(first), terms);
            let rows = walk(b, start, row, 3);
            let rows: Vec<Vec<Reg>> = rows.into_iter().map(|start| walk(b, start, column, 3)).collect();
            let to = b.mad_wide(at, bytes, to);
            let mut places = Places { next: None, stride };
            What::Filters.square(
                b,
                self.numbers(),
                |b, i, j| read(b, of, (filter, rows[i][j]), exists),
                |b, _, _, number| {
                    let to = places.next(b, to);
                    b.store(Space::Global, of.ty, &[number], to, 0);
                },
            );
        });
        "filters"
    }

    fn inputs(&self, b: &mut Builder) -> &'static str {
        let (of, bytes, t) = (self.arithmetic, self.arithmetic.bytes(), self.side + 2);
        let (gathered, to) = (b.buffer("gathered", bytes), b.buffer("transformed", bytes));
        let stride = b.param("number", Type::U64, bytes);
        let [count, channels, tile_pitch, tile_count] =
            ["count", "channels", "tile_pitch", "tile_count"].map(|name| b.param(name, Type::U32, 1));
        let tiles = ["tile_rows", "tile_columns"].map(|name| b.param(name, Type::U32, 1));
        let extent = ["rows", "columns"].map(|name| b.param(name, Type::U32, 1));
        let origin = ["origin_row", "origin_column"].map(|name| b.param(name, Type::U32, 1));
        let strides = ["image", "row", "column", "channel", "group"];
        let strides = strides.map(|name| b.param(&format!("gathered_{name}"), Type::U32, 1));
        let (at, works) = thread(b, count);
        b.when(works, Form::Branch, |b| {
            let [channel, number, group] = self.digits(b, at, [channels, tile_pitch]);
            let exists = b.compare(Compare::Lt, number, tile_count, None);
            let [image, row, column] = tile(b, number, tiles);
            let side = self.side as u32;
            let row = b.scale_add(Some(row), side, origin[0]);
            let column = b.scale_add(Some(column), side, origin[1]);
            let place = [image, row, column, channel, group];
            let terms: [_; 5] = from_fn(|i| (Some(place[i]), strides[i]));
            let start = offset(b, None, terms);
            let offsets = walk(b, start, strides[1], t);
            let offsets: Vec<Vec<Reg>> = offsets.into_iter().map(|start| walk(b, start, strides[2], t)).collect();
            let inside = |b: &mut Builder, d: usize, at: Reg, beyond: usize, and: Option<Reg>| {
                let at = b.add(Type::U32, at, beyond as u32);
                b.compare(Compare::Lt, at, extent[d], and)
            };
            let rows: Vec<Reg> = (0..t).map(|i| inside(b, 0, row, i, Some(exists))).collect();
            let to = b.mad_wide(at, bytes, to);
            let mut places = Places { next: None, stride };
            What::Inputs.square(
                b,
                self.numbers(),
                |b, i, j| {
                    let inside = inside(b, 1, column, j, Some(rows[i]));
                    read(b, of, (gathered, offsets[i][j]), inside)
                },
                |b, _, _, number| {
                    let to = places.next(b, to);
                    b.store(Space::Global, of.ty, &[number], to, 0);
                },
            );
        });
        "inputs"
    }

    fn products(&self, b: &mut Builder) -> &'static str {
        let (of, bytes, side) = (self.arithmetic, self.arithmetic.bytes(), self.side);
        let (from, result) = (b.buffer("products", bytes), b.buffer("result", bytes));
        let bias = self.epilogue.bias.then(|| b.buffer("bias", bytes));
        let residual = self.epilogue.residual.then(|| b.buffer("residual", bytes));
        let stride = b.param("number", Type::U64, bytes);
        let [count, outs, out_pitch, tile_pitch, tile_count] =
            ["count", "outs", "out_pitch", "tile_pitch", "tile_count"].map(|name| b.param(name, Type::U32, 1));
        let tiles = ["tile_rows", "tile_columns"].map(|name| b.param(name, Type::U32, 1));
        let grid = ["grid_rows", "grid_columns"].map(|name| b.param(name, Type::U32, 1));
        let strides = ["image", "row", "column", "out", "group"];
        let strides = strides.map(|name| b.param(&format!("result_{name}"), Type::U32, 1));
        let (at, works) = thread(b, count);
        b.when(works, Form::Branch, |b| {
            let [out, number, group] = self.digits(b, at, [out_pitch, tile_pitch]);
            let exists = b.compare(Compare::Lt, number, tile_count, None);
            let exists = b.compare(Compare::Lt, out, outs, Some(exists));
            let [image, row, column] = tile(b, number, tiles);
            let (row, column) = (b.scale(row, side as u32), b.scale(column, side as u32));
            let place = [image, row, column, out, group];
            let terms: [_; 5] = from_fn(|i| (Some(place[i]), strides[i]));
            let start = offset(b, None, terms);
            let offsets = walk(b, start, strides[1], side);
            let offsets: Vec<Vec<Reg>> = offsets.into_iter().map(|start| walk(b, start, strides[2], side)).collect();
            let bias = bias.map(|bias| {
                let out = offset(b, Some(out), [(Some(group), outs)]);
                read(b, of, (bias, out), exists)
            });
            let from = b.mad_wide(at, bytes, from);
            let inside = |b: &mut Builder, d: usize, at: Reg, beyond: usize, and: Reg| {
                let at = b.add(Type::U32, at, beyond as u32);
                b.compare(Compare::Lt, at, grid[d], Some(and))
            };
            let rows: Vec<Reg> = (0..side).map(|i| inside(b, 0, row, i, exists)).collect();
            let places = self.places(b, from, stride);
            What::Products.square(
                b,
                self.numbers(),
                |b, i, j| b.load(Space::Global, of.ty, 1, places[i][j], 0)[0],
                |b, i, j, sum| {
                    let inside = inside(b, 1, column, j, rows[i]);
                    let residual = residual.map(|residual| read(b, of, (residual, offsets[i][j]), inside));
                    let relu = self.epilogue.activation == Activation::Relu;
                    let value = of.finished(b, sum, [bias, residual], relu);
                    write(b, of, (result, offsets[i][j]), inside, value);
                },
            );
        });
        "outputs"
    }

    /// The addresses of all places of the tile, by row and column.
    fn places(&self, b: &mut Builder, first: Reg, stride: Reg) -> Vec<Vec<Reg>> {
        let mut places = Places { next: None, stride };
        let t = self.side + 2;
        (0..t).map(|_| (0..t).map(|_| places.next(b, first)).collect()).collect()
    }
}
