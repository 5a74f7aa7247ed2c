//! From registers to C, or to the workspace.

use super::blueprint::Blueprint;
use super::emit::Position;
use super::frame::{Elements, Frame, Params};
use crate::ir::{Address, Builder, Compare, Form, Inst, Reg, Space, Type};
use crate::simt::Arrangement;
use tilewright_ops::gemm::{Bias, ScalarClass};

/// Stores a thread's tile as the frame says: all of it, or what lies inside of C.
pub(crate) fn store(b: &mut Builder, bp: &Blueprint, frame: &Frame, params: &Params, at: &Position, acc: &[Reg]) {
    match at.group {
        None => tile(b, bp, frame, params, at, acc),
        Some(group) => {
            let first = b.compare(Compare::Eq, group, 0u32, None);
            b.when(first, Form::Branch, |b| tile(b, bp, frame, params, at, acc));
        }
    }
}

/// The columns of a thread's tile in a matrix that is stored column by column, and what of them lies inside.
pub(crate) struct Columns {
    tiles: Arrangement,
    elements: Elements,
    ld: Reg,
    /// First row and column of the thread.
    corner: [Reg; 2],
    /// Rows and columns from there on; `None` where all are inside.
    left: Option<(Reg, Reg)>,
    /// Bytes to the neighbouring column, and to the next that is no neighbour.
    next: Option<Reg>,
    jump: Option<Reg>,
}

impl Columns {
    pub(crate) fn new(
        b: &mut Builder,
        bp: &Blueprint,
        at: &Position,
        elements: Elements,
        params: &Params,
        ld: Reg,
    ) -> Self {
        let tiles = bp.arrangement;
        let row = b.scale_add(at.t_m, tiles.chunk_m, at.block.m0);
        let column = b.scale_add(at.t_n, tiles.chunk_n, at.block.n0);
        let left = bp.checked().then(|| (b.sub(Type::U32, params.m, row), b.sub(Type::U32, params.n, column)));
        let next = (tiles.chunk_n > 1).then(|| elements.columns(b, ld, 1));
        let apart = tiles.chunk_n * (tiles.t_n - 1) + 1;
        let jump = (bp.config.n_s > tiles.chunk_n).then(|| elements.columns(b, ld, apart));
        Self { tiles, elements, ld, corner: [row, column], left, next, jump }
    }

    /// Where the first column begins in a matrix.
    pub(crate) fn first(&self, b: &mut Builder, base: Reg) -> Reg {
        let [row, column] = self.corner.map(Some);
        self.elements.at(b, base, (row, column), self.ld)
    }

    /// Where a column begins, from the one before it; the first stays.
    pub(crate) fn next(&self, b: &mut Builder, pointer: Reg, j: u32) -> Reg {
        let step = if j.is_multiple_of(self.tiles.chunk_n) { self.jump } else { self.next };
        step.filter(|_| j > 0).map_or(pointer, |step| b.add(Type::U64, pointer, step))
    }

    /// Rows beyond the first.
    pub(crate) fn row(&self, i: u32) -> u32 {
        self.tiles.row(i)
    }

    /// Rows that are left, and whether a column lies inside; `None` where all do.
    pub(crate) fn inside(&self, b: &mut Builder, j: u32) -> Option<(Reg, Reg)> {
        self.left.map(|(rows, columns)| (rows, b.exceeds(columns, self.tiles.column(j), None)))
    }
}

/// Stores the tile of a thread that has one.
fn tile(b: &mut Builder, bp: &Blueprint, frame: &Frame, params: &Params, at: &Position, acc: &[Reg]) {
    let mut tile = Tile::new(b, bp, frame, params, at);
    acc.chunks(bp.column()).for_each(|sums| tile.column(b, sums));
}

/// The tile of a thread in C, or in the workspace, that is stored column by column.
pub(crate) struct Tile {
    frame: Frame,
    params: Params,
    columns: Columns,
    added: Option<Added>,
    /// Where the next column is stored, once the one before it is.
    pointer: Reg,
    next: u32,
}

impl Tile {
    pub(crate) fn new(b: &mut Builder, bp: &Blueprint, frame: &Frame, params: &Params, at: &Position) -> Self {
        let columns = Columns::new(b, bp, at, frame.stored(), params, params.ldc);
        let pointer = columns.first(b, params.c);
        let rows: Vec<u32> = (0..bp.config.m_s).map(|i| columns.row(i)).collect();
        let added = params.bias.map(|base| Added::new(b, frame, base, columns.corner, columns.left, &rows));
        Self { frame: *frame, params: *params, columns, added, pointer, next: 0 }
    }

    /// Stores the next column.
    pub(crate) fn column(&mut self, b: &mut Builder, sums: &[Reg]) {
        let (j, frame, columns) = (self.next, &self.frame, &self.columns);
        self.pointer = columns.next(b, self.pointer, j);
        let inside = columns.inside(b, j);
        let column = inside.map(|(_, column)| column);
        let bias = self.added.as_ref().map(|added| added.of_column(b, frame, columns.tiles.column(j), column));
        let row = |i| columns.row(i);
        Column { pointer: self.pointer, inside, sums, row, bias: bias.as_deref() }.store(b, frame, &self.params);
        self.next += 1;
    }
}

/// What is added to the columns of a thread.
pub(crate) enum Added {
    /// The same to all of them: what belongs to the rows, one after the other.
    Rows(Vec<Reg>),
    /// Where what belongs to the thread's first column lies, for so many rows.
    Columns(Reg, usize),
}

impl Added {
    /// From the bias, for the thread's first row and column, what is left from there on, and the rows beyond the first.
    pub(crate) fn new(
        b: &mut Builder,
        frame: &Frame,
        base: Reg,
        [row, column]: [Reg; 2],
        left: Option<(Reg, Reg)>,
        rows: &[u32],
    ) -> Self {
        let bytes = frame.results().bytes;
        if frame.epilogue.bias == Bias::Column {
            return Self::Columns(b.mad_wide(column, bytes, base), rows.len());
        }
        let base = b.mad_wide(row, bytes, base);
        let one = |beyond: &u32| {
            let inside = left.map(|(rows, _)| b.exceeds(rows, *beyond, None));
            frame.arithmetic.load_results(b, Address { base, offset: (beyond * bytes).into() }, 1, inside)
        };
        Self::Rows(rows.iter().flat_map(one).collect())
    }

    /// What is added to each sum of the column so many beyond the first, which may lie outside.
    pub(crate) fn of_column(&self, b: &mut Builder, frame: &Frame, beyond: u32, inside: Option<Reg>) -> Vec<Reg> {
        match self {
            Self::Rows(all) => all.clone(),
            &Self::Columns(base, rows) => {
                let addr = Address { base, offset: (beyond * frame.results().bytes).into() };
                let one = frame.arithmetic.load_results(b, addr, 1, inside);
                one.repeat(rows)
            }
        }
    }
}

/// What lies in one column of C of a thread: its sums, and the rows of them, in elements beyond the pointer. Neighbours that share
/// an access are neighbours here.
pub(crate) struct Column<'a, R: Fn(u32) -> u32> {
    pub(crate) pointer: Reg,
    /// Rows that are left from the pointer on, and whether the column lies inside; `None` where all do.
    pub(crate) inside: Option<(Reg, Reg)>,
    pub(crate) sums: &'a [Reg],
    pub(crate) row: R,
    /// What is added to each of the sums.
    pub(crate) bias: Option<&'a [Reg]>,
}

impl<R: Fn(u32) -> u32> Column<'_, R> {
    /// Stores results or partial sums, or adds to results.
    pub(crate) fn store(&self, b: &mut Builder, frame: &Frame, params: &Params) {
        let (vec, numbers, bytes) = (frame.vec[2] as usize, frame.arithmetic, frame.stored().bytes);
        // Registers of an access.
        let each = vec * numbers.parts();
        let piece = |b: &mut Builder, i: usize| {
            let row = (self.row)((i * vec) as u32);
            let pred = self.inside.map(|(rows, column)| b.exceeds(rows, row, Some(column)));
            (Address { base: self.pointer, offset: i64::from(row * bytes) }, pred)
        };
        let pieces: Vec<_> = (0..self.sums.len() / each).map(|i| piece(b, i)).collect();
        let before: Vec<Vec<Reg>> = if frame.reads_c() {
            pieces.iter().map(|(addr, pred)| numbers.load_results(b, *addr, vec, *pred)).collect()
        } else {
            Vec::new()
        };
        for (i, (addr, pred)) in pieces.iter().enumerate() {
            let (old, at) = (before.get(i), i * each);
            let one = |e: usize| {
                let (old, bias) = (old.map(|old| old[e]), self.bias.map(|bias| bias[at + e]));
                value(b, frame, params, self.sums[at + e], (old, bias))
            };
            let values: Vec<Reg> = (0..each).map(one).collect();
            let (values, ty) = if frame.ordered() { (values, numbers.ty) } else { numbers.rounded_all(b, values) };
            b.predicated(*pred, |b| {
                if frame.atomic() {
                    for (src, part) in values.iter().zip(0..) {
                        let addr = Address { offset: addr.offset + part * i64::from(ty.bytes()), ..*addr };
                        b.push(Inst::Red { ty, addr, src: (*src).into() });
                    }
                } else {
                    b.store(Space::Global, ty, &values, addr.base, addr.offset);
                }
            });
        }
    }
}

/// `activation(alpha * sum + beta * old + bias)`; partial sums are stored as they are.
fn value(b: &mut Builder, frame: &Frame, params: &Params, sum: Reg, (old, bias): (Option<Reg>, Option<Reg>)) -> Reg {
    if frame.ordered() {
        return sum;
    }
    let product = match frame.alpha {
        ScalarClass::One => sum,
        _ => frame.arithmetic.multiply(b, sum, params.alpha),
    };
    let value = match (old, frame.beta) {
        (Some(old), ScalarClass::One) => frame.arithmetic.add(b, product, old),
        (Some(old), _) => frame.arithmetic.fused(b, old, params.beta, product),
        (None, _) => product,
    };
    frame.arithmetic.finished(b, value, [bias, None], frame.relu())
}
