//! The code of one correlation.
//!
//! Offsets in tensors are elements in 32 bits and wrap round; rows and columns are compared as unsigned numbers, so that those in the
//! padding are beyond every image.

use super::super::elements::{offset, read, split, write};
use super::super::taps::Taps;
use super::space::Config;
use crate::ir::{
    Address, Axis, Builder, Caching, Compare, Entry, Form, Inst, Module, Operand, Reg, Space, Special, Type,
};
use crate::simt::{Arithmetic, chunk};
use crate::target::Target;
use std::array::from_fn;
use std::collections::BTreeMap;
use tilewright_ops::conv::{Activation, Direction, Epilogue};

/// What code is specialised to.
#[derive(Clone, Debug)]
pub(super) struct Code {
    pub(super) target: Target,
    pub(super) arithmetic: Arithmetic,
    pub(super) config: Config,
    /// For names only.
    pub(super) direction: Direction,
    pub(super) epilogue: Epilogue,
    pub(super) grouped: bool,
    pub(super) taps: Taps,
    pub(super) channels: u32,
    /// Rows and columns of the image from one position to the next.
    pub(super) step: [u32; 2],
    /// Whether columns are neighbours in what is gathered.
    pub(super) near_columns: bool,
    /// Registers that a thread needs.
    pub(super) registers_needed: u32,
}

/// The numbers among the parameters, in order: sizes, the place of the first tap of the first position, and strides in elements.
pub(super) const NUMBERS: [&str; 26] = [
    "units",
    "outs",
    "strips",
    "grid_rows",
    "grid_columns",
    "groups",
    "rows",
    "columns",
    "origin_row",
    "origin_column",
    "gathered_image",
    "gathered_row",
    "gathered_column",
    "gathered_channel",
    "gathered_group",
    "filter_first",
    "filter_out",
    "filter_channel",
    "filter_row",
    "filter_column",
    "filter_group",
    "result_image",
    "result_row",
    "result_column",
    "result_out",
    "result_group",
];

/// Registers that hold the parameters.
struct Params {
    gathered: Reg,
    filter: Reg,
    result: Reg,
    bias: Option<Reg>,
    residual: Option<Reg>,
    units: Reg,
    outs: Reg,
    strips: Reg,
    grid: [Reg; 2],
    groups: Reg,
    extent: [Reg; 2],
    origin: [Reg; 2],
    /// From image to image, row to row, column to column, channel to channel and group to group.
    from: [Reg; 5],
    /// The first tap; from output to output, channel to channel, row to row, column to column and group to group.
    first: Reg,
    by: [Reg; 5],
    /// From image to image, row to row, column to column, output to output and group to group.
    to: [Reg; 5],
}

/// Where a thread stands.
struct Position {
    tid: Reg,
    group: Option<Reg>,
    image: Reg,
    row: Reg,
    /// The first column of the strip.
    column: Reg,
    /// The first output.
    k0: Reg,
    /// Whether there is such a strip.
    works: Reg,
}

/// Where filters are read: in shared memory, or by the offset of the first output's tap.
#[derive(Clone, Copy)]
struct Filters {
    start: Reg,
    channel: Operand,
    row: Operand,
}

/// Repeats code that walks over memory: registers, and what is added to each after every time. Once is no loop.
fn walk<const N: usize>(
    b: &mut Builder,
    (name, count, unrolled): (&'static str, usize, bool),
    walks: [(Reg, Operand); N],
    mut f: impl FnMut(&mut Builder, [Reg; N]),
) {
    let mut regs = walks.map(|(from, _)| from);
    if unrolled || count == 1 {
        for i in 0..count {
            if i > 0 {
                let step = |b: &mut Builder, i: usize| b.add(Type::U32, regs[i], walks[i].1);
                regs = from_fn(|i| step(b, i));
            }
            f(b, regs);
        }
        return;
    }
    let regs = walks.map(|(from, step)| b.walking(Type::U32, from, step));
    b.repeat(name, count as u32, |b, _| {
        f(b, regs);
        regs.into_iter().zip(walks).for_each(|(reg, (_, step))| b.advance(Type::U32, reg, step));
    });
}

impl Code {
    /// The module.
    pub(super) fn module(&self) -> Module {
        let mut b = Builder::new();
        let params = b.block("parameters", |b| self.params(b));
        let at = b.block("position", |b| self.position(b, &params));
        let filters = b.block("filters", |b| self.filters(b, &params, &at));
        b.when(at.works, Form::Branch, |b| {
            let sums = self.sums(b, &params, &at, filters);
            self.store(b, &params, &at, &sums);
        });
        let name = format!("conv_direct_{}_{}", self.arithmetic.dtype, self.direction.name());
        // Twice the need, which is an estimate: without a limit, or with a closer one, the assembler was seen to spill for a block more.
        // Where rows of taps are unrolled it moves loads up as far as it likes, and spills more often with a limit than without.
        let allowed = (self.registers_needed * 2).next_multiple_of(8).min(255);
        let entry = Entry {
            max_registers: (!self.config.unrolled).then_some(allowed),
            shared_bytes: self.shared_bytes(),
            ..b.finish(&name, self.config.threads)
        };
        Module { target: self.target, entry }
    }

    fn params(&self, b: &mut Builder) -> Params {
        let bytes = self.arithmetic.bytes();
        let [gathered, filter, result] = ["gathered", "filter", "result"].map(|name| b.buffer(name, bytes));
        let bias = self.epilogue.bias.then(|| b.buffer("bias", bytes));
        let residual = self.epilogue.residual.then(|| b.buffer("residual", bytes));
        let numbers = NUMBERS.map(|name| b.param(name, Type::U32, 1));
        let [
            units,
            outs,
            strips,
            rows,
            columns,
            groups,
            image_rows,
            image_columns,
            origin_row,
            origin_column,
            rest @ ..,
        ] = numbers;
        let [i, r, c, ch, g, first, strides @ ..] = rest;
        let [fk, fc, fr, fs, fg, to @ ..] = strides;
        Params {
            gathered,
            filter,
            result,
            bias,
            residual,
            units,
            outs,
            strips,
            grid: [rows, columns],
            groups,
            extent: [image_rows, image_columns],
            origin: [origin_row, origin_column],
            from: [i, r, c, ch, g],
            first,
            by: [fk, fc, fr, fs, fg],
            to,
        }
    }

    fn position(&self, b: &mut Builder, params: &Params) -> Position {
        let config = &self.config;
        let (tid, block) = (b.special(Special::Tid), b.special(Special::Ctaid(Axis::X)));
        let unit = b.scale_add(Some(block), config.threads, tid);
        let works = b.compare(Compare::Lt, unit, params.units, None);
        let k0 = b.special(Special::Ctaid(Axis::Y));
        let k0 = b.scale(k0, config.k_s);
        let (group, unit) = match (self.grouped, config.along_groups) {
            (true, true) => {
                let [group, unit] = split(b, unit, params.groups);
                (Some(group), unit)
            }
            (true, false) => (Some(b.special(Special::Ctaid(Axis::Z))), unit),
            (false, _) => (None, unit),
        };
        let [strip, rest] = split(b, unit, params.strips);
        let [row, image] = split(b, rest, params.grid[0]);
        let column = b.scale(strip, config.q_s);
        Position { tid, group, image, row, column, k0, works }
    }

    /// Elements of the filters of a block.
    fn filter_elements(&self) -> u32 {
        let [rows, columns] = self.taps.counts.map(|count| count as u32);
        self.config.k_s * self.channels * rows * columns
    }

    /// Loads of a thread of the block's filters.
    fn passes(&self) -> u32 {
        if self.config.shared { self.filter_elements().div_ceil(self.config.threads) } else { 0 }
    }

    fn shared_bytes(&self) -> u32 {
        self.passes() * self.config.threads * self.arithmetic.bytes()
    }

    /// Brings the filters to shared memory, where that is where they are read; columns of taps, rows and channels follow each other,
    /// with their outputs side by side.
    fn filters(&self, b: &mut Builder, params: &Params, at: &Position) -> Filters {
        let (of, k_s) = (self.arithmetic, self.config.k_s);
        let [_, channel, row, column, group] = params.by;
        let start = offset(b, Some(params.first), [(at.group, group)]);
        if self.passes() == 0 {
            let start = offset(b, Some(start), [(Some(at.k0), params.by[0])]);
            return Filters { start, channel: channel.into(), row: row.into() };
        }
        let [rows, columns] = self.taps.counts.map(|count| count as u32);
        let shared = b.mov(Type::U32, Operand::Shared);
        let to = b.scale_add(Some(at.tid), of.bytes(), shared);
        for pass in 0..self.passes() {
            let element = b.add(Type::U32, at.tid, pass * self.config.threads);
            let out = b.rem(element, k_s);
            let out = b.scale_add(out, 1, at.k0);
            let rest = b.div(element, k_s);
            let (s, rest) = (b.rem(rest, columns), b.div(rest, columns));
            let (r, c) = (b.rem(rest, rows), b.div(rest, rows));
            let exists = b.compare(Compare::Lt, out, params.outs, None);
            let exists = b.compare(Compare::Lt, element, self.filter_elements(), Some(exists));
            let terms = [(Some(out), params.by[0]), (Some(c), channel), (r, row), (s, column)];
            let from = offset(b, Some(start), terms);
            let value = read(b, of, (params.filter, from), exists);
            b.store(Space::Shared, of.ty, &[value], to, (pass * self.config.threads * of.bytes()).into());
        }
        b.barrier();
        let row = columns * k_s * of.bytes();
        Filters { start: shared, channel: (rows * row).into(), row: row.into() }
    }

    /// Columns of the image that a strip sees, from the first one on.
    fn seen(&self) -> Vec<u32> {
        let of_tap = |q: u32| (0..self.taps.counts[1]).map(move |s| q * self.step[1] + (s * self.taps.apart[1]) as u32);
        let mut seen: Vec<u32> = (0..self.config.q_s).flat_map(of_tap).collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    /// The sums of a thread, those of a column side by side.
    fn sums(&self, b: &mut Builder, params: &Params, at: &Position, filters: Filters) -> Vec<Reg> {
        let count = self.config.k_s * self.config.q_s;
        let sums: Vec<Reg> = (0..count).map(|_| self.arithmetic.zero(b)).collect();
        let [rows, columns] = self.taps.counts;
        if self.channels == 0 || rows * columns == 0 {
            return sums;
        }
        let row = b.scale_add(Some(at.row), self.step[0], params.origin[0]);
        let column = b.scale_add(Some(at.column), self.step[1], params.origin[1]);
        let [image_stride, row_stride, column_stride, channel_stride, group_stride] = params.from;
        let terms = [
            (Some(at.image), image_stride),
            (Some(row), row_stride),
            (Some(column), column_stride),
            (at.group, group_stride),
        ];
        let start = offset(b, None, terms);
        let look = Look::new(b, self, params, column);
        let down = self.taps.apart[0] as u32;
        let next_row = b.scale(row_stride, down);
        let by_channel = [(start, channel_stride.into()), (filters.start, filters.channel)];
        walk(b, ("channels", self.channels as usize, false), by_channel, |b, [from, by]| {
            let by_row = [(from, next_row.into()), (by, filters.row), (row, down.into())];
            walk(b, ("rows", rows, self.config.unrolled), by_row, |b, [from, by, row]| {
                let seen = look.load(b, self, params, (from, row));
                for s in 0..columns {
                    let filter = look.filter(b, self, params, (by, s));
                    for (q, sums) in sums.chunks(self.config.k_s as usize).enumerate() {
                        let at = q as u32 * self.step[1] + (s * self.taps.apart[1]) as u32;
                        for (sum, f) in sums.iter().zip(&filter) {
                            self.arithmetic.multiply_add(b, &[*sum], &[*f], &[seen[&at]]);
                        }
                    }
                }
            });
        });
        sums
    }

    fn store(&self, b: &mut Builder, params: &Params, at: &Position, sums: &[Reg]) {
        let (of, k_s) = (self.arithmetic, self.config.k_s as usize);
        let [image, row, column, out, group] = params.to;
        let terms = [
            (Some(at.image), image),
            (Some(at.row), row),
            (Some(at.column), column),
            (Some(at.k0), out),
            (at.group, group),
        ];
        let mut start = offset(b, None, terms);
        let number = offset(b, Some(at.k0), [(at.group, params.outs)]);
        let outs: Vec<(Reg, Option<Reg>)> = (0..self.config.k_s)
            .map(|k| {
                let out = b.add(Type::U32, at.k0, k);
                let exists = b.compare(Compare::Lt, out, params.outs, None);
                let number = b.add(Type::U32, number, k);
                (exists, params.bias.map(|bias| read(b, of, (bias, number), exists)))
            })
            .collect();
        for (q, sums) in sums.chunks(k_s).enumerate() {
            let at_column = b.add(Type::U32, at.column, q as u32);
            let mut to = start;
            for (k, (sum, (exists, bias))) in sums.iter().zip(&outs).enumerate() {
                let inside = b.compare(Compare::Lt, at_column, params.grid[1], Some(*exists));
                let residual = params.residual.map(|residual| read(b, of, (residual, to), inside));
                let relu = self.epilogue.activation == Activation::Relu;
                let value = of.finished(b, *sum, [*bias, residual], relu);
                write(b, of, (params.result, to), inside, value);
                if k + 1 < k_s {
                    to = b.add(Type::U32, to, out);
                }
            }
            start = b.add(Type::U32, start, column);
        }
    }
}

/// What is known before the loops: the columns that a strip sees, and where taps and outputs of the filters are.
struct Look {
    /// Columns by how far they are from the first one: the column of the image, and its offset where columns are no neighbours.
    columns: BTreeMap<u32, (Reg, Option<Reg>)>,
    /// Offsets of columns of taps, and of outputs with whether they exist; where filters are read from device memory.
    taps: Vec<Reg>,
    outs: Vec<(Reg, Reg)>,
}

impl Look {
    fn new(b: &mut Builder, code: &Code, params: &Params, first: Reg) -> Self {
        let [_, _, stride, ..] = params.from;
        let column = |b: &mut Builder, beyond: u32| {
            let offset = (!code.near_columns && beyond > 0).then(|| b.scale(stride, beyond));
            (beyond, (b.add(Type::U32, first, beyond), offset))
        };
        let columns = code.seen().into_iter().map(|beyond| column(b, beyond)).collect();
        if code.passes() > 0 {
            return Self { columns, taps: Vec::new(), outs: Vec::new() };
        }
        let [out_stride, _, _, tap_stride, _] = params.by;
        let taps = (0..code.taps.counts[1] as u32).map(|s| b.scale(tap_stride, s)).collect();
        let k0 = b.special(Special::Ctaid(Axis::Y));
        let k0 = b.scale(k0, code.config.k_s);
        let out = |b: &mut Builder, k: u32| {
            let out = b.add(Type::U32, k0, k);
            (b.scale(out_stride, k), b.compare(Compare::Lt, out, params.outs, None))
        };
        Self { columns, taps, outs: (0..code.config.k_s).map(|k| out(b, k)).collect() }
    }

    /// The columns of a row that the strip sees; zeros beyond the image.
    fn load(&self, b: &mut Builder, code: &Code, params: &Params, (from, row): (Reg, Reg)) -> BTreeMap<u32, Reg> {
        let (of, bytes) = (code.arithmetic, code.arithmetic.bytes());
        let inside = b.compare(Compare::Lt, row, params.extent[0], None);
        let columns = b.select(Type::U32, inside, params.extent[1], 0u32);
        // The first column of the strip may lie before the row: of rows that exist this offset is a signed number.
        let base = b.reg(Type::U64);
        let (wide, ty, a) = (true, Type::S32, from.into());
        b.push(Inst::Mad { wide, ty, dst: base, a, b: bytes.into(), c: params.gathered.into() });
        let load = |(beyond, (column, offset)): (&u32, &(Reg, Option<Reg>))| {
            let inside = b.compare(Compare::Lt, *column, columns, None);
            let Some(offset) = offset else {
                let dst = of.zero(b);
                let addr = Address { base, offset: if code.near_columns { i64::from(beyond * bytes) } else { 0 } };
                let (space, caching, ty) = (Space::Global, Caching::ReadOnly, of.ty);
                b.when(inside, Form::Predicate, |b| b.push(Inst::Ld { space, caching, ty, dst: vec![dst], addr }));
                return (*beyond, dst);
            };
            let at = b.add(Type::U32, from, *offset);
            (*beyond, read(b, of, (params.gathered, at), inside))
        };
        self.columns.iter().map(load).collect()
    }

    /// The outputs of one tap.
    fn filter(&self, b: &mut Builder, code: &Code, params: &Params, (by, s): (Reg, usize)) -> Vec<Reg> {
        let (of, k_s) = (code.arithmetic, code.config.k_s);
        if code.passes() > 0 {
            let chunk = chunk(k_s, of.widest());
            let at = |i: u32| i64::from((s as u32 * k_s + i * chunk) * of.bytes());
            return (0..k_s / chunk).flat_map(|i| b.load(Space::Shared, of.ty, chunk as usize, by, at(i))).collect();
        }
        let by = if s > 0 { b.add(Type::U32, by, self.taps[s]) } else { by };
        let one = |(k, (offset, exists)): (usize, &(Reg, Reg))| {
            let at = if k > 0 { b.add(Type::U32, by, *offset) } else { by };
            read(b, of, (params.filter, at), *exists)
        };
        self.outs.iter().enumerate().map(one).collect()
    }
}
