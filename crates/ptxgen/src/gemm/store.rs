//! From registers to C, or to the workspace.

use super::blueprint::Blueprint;
use super::emit::Position;
use super::frame::{Frame, Params, Template};
use crate::ir::{Address, Builder, Compare, Form, Inst, Reg, Space, Type};
use tilewright_ops::gemm::ScalarClass;

/// Stores a thread's tile: all of it, or what lies inside of C.
pub(crate) fn store(b: &mut Builder, bp: &Blueprint, params: &Params, at: &Position, acc: &[Reg]) {
    match at.group {
        None => tile(b, bp, params, at, acc),
        Some(group) => {
            let first = b.compare(Compare::Eq, group, 0u32, None);
            b.when(first, Form::Branch, |b| tile(b, bp, params, at, acc));
        }
    }
}

fn tile(b: &mut Builder, bp: &Blueprint, params: &Params, at: &Position, acc: &[Reg]) {
    let (config, tiles, frame) = (&bp.config, bp.arrangement(), bp.frame());
    let elements = frame.stored();
    let row = b.scale_add(at.t_m, tiles.chunk_m, at.block.m0);
    let column = b.scale_add(at.t_n, tiles.chunk_n, at.block.n0);
    let mut pointer = elements.at(b, params.c, (Some(row), Some(column)), params.ldc);
    let left = bp.checked().then(|| (b.sub(Type::U32, params.m, row), b.sub(Type::U32, params.n, column)));
    let next = (tiles.chunk_n > 1).then(|| elements.columns(b, params.ldc, 1));
    let jump =
        (config.n_s > tiles.chunk_n).then(|| elements.columns(b, params.ldc, tiles.chunk_n * (tiles.t_n - 1) + 1));
    for (j, column) in acc.chunks(config.m_s as usize).enumerate() {
        let j = j as u32;
        if j > 0 {
            let step = if j.is_multiple_of(tiles.chunk_n) { jump } else { next };
            pointer = step.map_or(pointer, |step| b.add(Type::U64, pointer, step));
        }
        let place = j / tiles.chunk_n * tiles.chunk_n * tiles.t_n + j % tiles.chunk_n;
        let inside = left.map(|(rows, columns)| (rows, b.exceeds(columns, place, None)));
        let row = |i: u32| i / tiles.chunk_m * tiles.chunk_m * tiles.t_m + i % tiles.chunk_m;
        Column { pointer, inside, sums: column, row }.store(b, &frame, params);
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
}

impl<R: Fn(u32) -> u32> Column<'_, R> {
    /// Stores results or partial sums, or adds to results.
    pub(crate) fn store(&self, b: &mut Builder, frame: &Frame, params: &Params) {
        let (vec, numbers, bytes) = (frame.vec[2] as usize, frame.arithmetic, frame.stored().bytes);
        let piece = |b: &mut Builder, i: usize| {
            let row = (self.row)((i * vec) as u32);
            let pred = self.inside.map(|(rows, column)| b.exceeds(rows, row, Some(column)));
            (Address { base: self.pointer, offset: i64::from(row * bytes) }, pred)
        };
        let pieces: Vec<_> = (0..self.sums.len() / vec).map(|i| piece(b, i)).collect();
        let before: Vec<Vec<Reg>> = if frame.reads_c() {
            pieces.iter().map(|(addr, pred)| numbers.load_results(b, *addr, vec, *pred)).collect()
        } else {
            Vec::new()
        };
        for (i, (addr, pred)) in pieces.iter().enumerate() {
            let sums = &self.sums[i * vec..][..vec];
            let old = before.get(i).map(Vec::as_slice);
            let values: Vec<Reg> =
                sums.iter().enumerate().map(|(e, sum)| value(b, frame, params, *sum, old.map(|o| o[e]))).collect();
            let (values, ty) = if frame.ordered() { (values, numbers.ty) } else { numbers.rounded_all(b, values) };
            b.predicated(*pred, |b| {
                if frame.atomic() {
                    let (src, addr) = (values[0].into(), *addr);
                    b.push(Inst::Red { ty, addr, src });
                } else {
                    b.store(Space::Global, ty, &values, addr.base, addr.offset);
                }
            });
        }
    }
}

/// `alpha * sum + beta * old`; partial sums are stored as they are.
fn value(b: &mut Builder, frame: &Frame, params: &Params, sum: Reg, old: Option<Reg>) -> Reg {
    if frame.ordered() {
        return sum;
    }
    let product = match frame.alpha {
        ScalarClass::One => sum,
        _ => frame.arithmetic.multiply(b, sum, params.alpha),
    };
    match (old, frame.beta) {
        (Some(old), ScalarClass::One) => frame.arithmetic.add(b, product, old),
        (Some(old), _) => frame.arithmetic.fused(b, old, params.beta, product),
        (None, _) => product,
    }
}
