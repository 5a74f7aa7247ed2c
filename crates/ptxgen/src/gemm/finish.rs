//! Kernels beside the product: `C = beta C`, and the ordered sum of the slices of a split reduction.

use super::frame::{Elements, Frame};
use crate::ir::{Address, Arith, Axis, Builder, Form, Index, Inst, Module, Reg, Space, Special, Type};
use crate::simt::ordered_sum;
use tilewright_ops::gemm::ScalarClass;

/// Threads of a block along rows.
pub(crate) const ROWS: u32 = 32;
/// Threads of a block along columns.
pub(crate) const COLUMNS: u32 = 8;

/// Blocks along columns, at most: the limit of a grid's second axis.
pub(crate) const LINES: u32 = 65_535;

/// What is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// `beta C`; zeros without reading C where beta = 0.
    Scale,
    /// `alpha` times the sum of the slices, in order, plus `beta C`.
    Sum,
}

struct Params {
    c: Reg,
    work: Option<(Reg, Reg)>,
    m: Reg,
    n: Reg,
    ldc: Reg,
    alpha: Reg,
    beta: Reg,
    passes: Reg,
    stride: Option<Reg>,
}

/// The module of a finishing kernel.
pub(crate) fn module(frame: &Frame, finish: Finish) -> Module {
    let mut b = Builder::new();
    let (ty, bytes, sum) = (frame.arithmetic.ty, frame.results().bytes, frame.sums().bytes);
    let params = b.block("parameters", |b| Params {
        c: b.buffer("c", bytes),
        work: (finish == Finish::Sum).then(|| (b.buffer("work", sum), b.param("slab", Type::U64, sum))),
        m: b.param("m", Type::U32, 1),
        n: b.param("n", Type::U32, 1),
        ldc: b.param("ldc", Type::U32, 1),
        alpha: b.param("alpha", ty, 1),
        beta: b.param("beta", ty, 1),
        passes: b.param("passes", Type::U32, 1),
        stride: frame.batched.then(|| b.param("stride_c", Type::U64, bytes)),
    });
    body(&mut b, frame, finish, params);
    let what = if finish == Finish::Sum { "sum" } else { "scale" };
    let name = format!("gemm_{}_{what}", frame.arithmetic.dtype);
    Module { target: frame.target, entry: b.finish(&name, ROWS * COLUMNS) }
}

fn body(b: &mut Builder, frame: &Frame, finish: Finish, mut params: Params) {
    let tid = b.special(Special::Tid);
    let (x, y) = (b.special(Special::Ctaid(Axis::X)), b.special(Special::Ctaid(Axis::Y)));
    let lane = b.rem(tid, ROWS);
    let line = b.div(tid, ROWS);
    let x = b.scale(x, ROWS);
    let row = b.scale_add(lane, 1, x);
    let column = b.scale_add(Some(y), COLUMNS, line);
    let blocks = b.special(Special::Nctaid(Axis::Y));
    let step = b.scale(blocks, COLUMNS);
    if frame.batched {
        let z = b.special(Special::Ctaid(Axis::Z));
        let z = b.widen(z);
        if let Some(stride) = params.stride {
            let offset = b.arith(Arith::Mul, Type::U64, z, stride);
            params.c = b.add(Type::U64, params.c, offset);
        }
        if let Some((work, slab)) = &mut params.work {
            let slabs = b.arith(Arith::Mul, Type::U64, z, i64::from(frame.k_g));
            let offset = b.arith(Arith::Mul, Type::U64, slabs, *slab);
            *work = b.add(Type::U64, *work, offset);
        }
    }
    let inside = b.sub(Type::U32, params.m, row);
    let inside = b.exceeds(inside, 0, None);
    let (at, ld) = ((row, column), |of| (of, step));
    let [c, by] = columns(b, frame.results(), params.c, at, ld(params.ldc));
    let work = params.work.map(|(work, slab)| (columns(b, frame.sums(), work, at, ld(params.m)), slab));
    let left = b.sub(Type::U32, params.n, column);
    let meaning = b.meaning(left).minus(&b.meaning(step).times(&Index::from(b.next_loop())));
    let left = b.carried(Type::U32, left, meaning);
    let c = b.walking(Type::U64, c, by);
    let work = work.map(|([work, by], slab)| (b.walking(Type::U64, work, by), by, slab));
    b.repeat("columns", params.passes, |b, _| {
        let inside = b.exceeds(left, 0, Some(inside));
        b.when(inside, Form::Branch, |b| {
            one(b, frame, finish, &params, c, work.map(|(work, _, slab)| (work, slab)));
        });
        b.advance(Type::U64, c, by);
        work.iter().for_each(|(work, by, _)| b.advance(Type::U64, *work, *by));
        let (a, op) = (left.into(), Arith::Sub);
        b.push(Inst::Arith { op, ty: Type::U32, dst: left, a, b: step.into() });
    });
}

/// A pointer that goes over columns, and its step in bytes.
fn columns(b: &mut Builder, of: Elements, base: Reg, (row, column): (Reg, Reg), (ld, step): (Reg, Reg)) -> [Reg; 2] {
    let pointer = of.at(b, base, (Some(row), Some(column)), ld);
    let columns = b.arith(Arith::MulWide, Type::U32, ld, step);
    [pointer, b.arith(Arith::Shl, Type::U64, columns, of.bytes.trailing_zeros())]
}

/// One element.
fn one(b: &mut Builder, frame: &Frame, finish: Finish, params: &Params, c: Reg, work: Option<(Reg, Reg)>) {
    let addr = Address { base: c, offset: 0 };
    let product = match (finish, work) {
        (Finish::Sum, Some((work, slab))) => Some(sum(b, frame, params, work, slab)),
        _ => None,
    };
    let old = (frame.beta != ScalarClass::Zero).then(|| frame.arithmetic.load_result(b, addr, None));
    let value = match (product, old) {
        (None, None) => frame.arithmetic.zero(b),
        (None, Some(old)) => frame.arithmetic.multiply(b, old, params.beta),
        (Some(product), None) => product,
        (Some(product), Some(old)) => frame.arithmetic.fused(b, old, params.beta, product),
    };
    let (value, ty) = frame.arithmetic.rounded(b, value);
    b.store(Space::Global, ty, &[value], c, 0);
}

/// The slices in order, times alpha.
fn sum(b: &mut Builder, frame: &Frame, params: &Params, work: Reg, slab: Reg) -> Reg {
    let total = ordered_sum(b, frame.arithmetic, frame.k_g, (work, slab));
    match frame.alpha {
        ScalarClass::One => total,
        _ => frame.arithmetic.multiply(b, total, params.alpha),
    }
}
