//! From registers to C, or to the workspace.

use super::blueprint::Blueprint;
use super::config::Split;
use super::emit::{Params, Position, reads_c};
use super::load::{columns, element};
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
    let (config, tiles) = (&bp.config, bp.arrangement());
    let row = b.scale_add(at.t_m, tiles.chunk_m, at.m0);
    let column = b.scale_add(at.t_n, tiles.chunk_n, at.n0);
    let mut pointer = element(b, bp, params.c, (Some(row), Some(column)), params.ldc);
    let left = bp.checked().then(|| (b.sub(Type::U32, params.m, row), b.sub(Type::U32, params.n, column)));
    let next = (tiles.chunk_n > 1).then(|| columns(b, bp, params.ldc, 1));
    let jump = (config.n_s > tiles.chunk_n).then(|| columns(b, bp, params.ldc, tiles.chunk_n * (tiles.t_n - 1) + 1));
    for (j, column) in acc.chunks(config.m_s as usize).enumerate() {
        let j = j as u32;
        if j > 0 {
            let step = if j.is_multiple_of(tiles.chunk_n) { jump } else { next };
            pointer = step.map_or(pointer, |step| b.add(Type::U64, pointer, step));
        }
        let place = j / tiles.chunk_n * tiles.chunk_n * tiles.t_n + j % tiles.chunk_n;
        let inside = left.map(|(rows, columns)| (rows, b.exceeds(columns, place, None)));
        column_of(b, bp, params, (pointer, inside), column);
    }
}

/// One column of a thread's tile.
fn column_of(
    b: &mut Builder,
    bp: &Blueprint,
    params: &Params,
    (pointer, inside): (Reg, Option<(Reg, Reg)>),
    acc: &[Reg],
) {
    let (config, tiles, ty) = (&bp.config, bp.arrangement(), bp.arithmetic.ty);
    let vec = config.vec_c as usize;
    let piece = |b: &mut Builder, i: usize| {
        let i = (i * vec) as u32;
        let row = i / tiles.chunk_m * tiles.chunk_m * tiles.t_m + i % tiles.chunk_m;
        let pred = inside.map(|(rows, column)| b.exceeds(rows, row, Some(column)));
        (Address { base: pointer, offset: i64::from(row * bp.arithmetic.bytes()) }, pred)
    };
    let pieces: Vec<_> = (0..acc.len() / vec).map(|i| piece(b, i)).collect();
    let before: Vec<Vec<Reg>> = if reads_c(bp) {
        pieces.iter().map(|(addr, pred)| read(b, ty, vec, *addr, *pred)).collect()
    } else {
        Vec::new()
    };
    for (i, (addr, pred)) in pieces.iter().enumerate() {
        let sums = &acc[i * vec..][..vec];
        let old = before.get(i).map(Vec::as_slice);
        let values: Vec<Reg> =
            sums.iter().enumerate().map(|(e, sum)| value(b, bp, params, *sum, old.map(|o| o[e]))).collect();
        b.predicated(*pred, |b| {
            if config.k_g > 1 && config.split == Split::Atomic {
                let (src, addr) = (values[0].into(), *addr);
                b.push(Inst::Red { ty, addr, src });
            } else {
                b.store(Space::Global, ty, &values, addr.base, addr.offset);
            }
        });
    }
}

/// What C holds, or zeros where it has no elements.
fn read(b: &mut Builder, ty: Type, count: usize, addr: Address, pred: Option<Reg>) -> Vec<Reg> {
    let Some(pred) = pred else {
        return b.load(Space::Global, ty, count, addr.base, addr.offset);
    };
    let dst: Vec<Reg> = (0..count).map(|_| b.mov(ty, crate::ir::Operand::Float(0.0))).collect();
    let caching = crate::ir::Caching::Default;
    let inst = Inst::Ld { space: Space::Global, caching, ty, dst: dst.clone(), addr };
    b.when(pred, Form::Predicate, |b| b.push(inst));
    dst
}

/// `alpha * sum + beta * old`; partial sums are stored as they are.
fn value(b: &mut Builder, bp: &Blueprint, params: &Params, sum: Reg, old: Option<Reg>) -> Reg {
    if bp.config.k_g > 1 && bp.config.split == Split::Ordered {
        return sum;
    }
    let product = match bp.alpha {
        ScalarClass::One => sum,
        _ => bp.arithmetic.multiply(b, sum, params.alpha),
    };
    match (old, bp.beta) {
        (Some(old), ScalarClass::One) => bp.arithmetic.add(b, product, old),
        (Some(old), _) => bp.arithmetic.fused(b, old, params.beta, product),
        (None, _) => product,
    }
}
