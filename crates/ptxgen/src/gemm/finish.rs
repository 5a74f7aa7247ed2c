//! Kernels beside the product: `C = beta C`, and the ordered sum of the slices of a split reduction.

use super::frame::{Elements, Frame};
use crate::ir::{Address, Arith, Axis, Builder, Form, Index, Inst, Module, Reg, Space, Special, Type};
use crate::simt::ordered_sum;
use tilewright_ops::gemm::{Bias, ScalarClass};

/// Threads of a block along rows.
pub(crate) const ROWS: u32 = 32;
/// Threads of a block along columns.
pub(crate) const COLUMNS: u32 = 8;

/// Blocks along columns, at most: the limit of a grid's second axis.
pub(crate) const LINES: u32 = 65_535;

/// What is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// `beta C` with what the epilogue does to it; zeros without reading C where beta = 0.
    Scale,
    /// `alpha` times the sum of the slices, in order, plus `beta C`, and the epilogue.
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
    bias: Option<Reg>,
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
        bias: (frame.epilogue.bias != Bias::None).then(|| frame.bias(b)),
    });
    if finish == Finish::Sum && frame.overlaps() {
        b.push(Inst::GridWait);
    }
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
    let bias = Added::new(b, frame, params.bias, (row, inside), (column, step));
    let (at, ld) = ((row, column), |of| (of, step));
    let [c, by] = columns(b, frame.results(), params.c, at, ld(params.ldc));
    let work = params.work.map(|(work, slab)| (columns(b, frame.sums(), work, at, ld(params.m)), slab));
    let left = b.sub(Type::U32, params.n, column);
    let meaning = b.meaning(left).minus(&b.meaning(step).times(&Index::from(b.next_loop())));
    let left = b.carried(Type::U32, left, meaning);
    let c = b.walking(Type::U64, c, by);
    let work = work.map(|([work, by], slab)| (b.walking(Type::U64, work, by), by, slab));
    let bias = bias.map(|bias| bias.carried(b));
    b.repeat("columns", params.passes, |b, _| {
        let inside = b.exceeds(left, 0, Some(inside));
        b.when(inside, Form::Branch, |b| {
            let bias = bias.as_ref().map(|bias| bias.get(b, frame));
            one(b, frame, finish, &params, c, (work.map(|(work, _, slab)| (work, slab)), bias));
        });
        bias.iter().for_each(|bias| bias.advance(b));
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

/// Where a bias comes from.
enum Added {
    /// One for all columns of a row.
    Row(Vec<Reg>),
    /// A pointer that goes over columns, and its step in bytes.
    Column(Reg, Reg),
}

impl Added {
    /// Of a row that may lie outside, and of columns so many apart.
    fn new(
        b: &mut Builder,
        frame: &Frame,
        base: Option<Reg>,
        (row, inside): (Reg, Reg),
        (column, step): (Reg, Reg),
    ) -> Option<Self> {
        let (base, bytes) = (base?, frame.results().bytes);
        if frame.epilogue.bias == Bias::Row {
            let base = b.mad_wide(row, bytes, base);
            return Some(Self::Row(frame.arithmetic.load_results(b, Address { base, offset: 0 }, 1, Some(inside))));
        }
        let pointer = b.mad_wide(column, bytes, base);
        Some(Self::Column(pointer, b.arith(Arith::MulWide, Type::U32, step, bytes)))
    }

    /// From here on the next loop goes on in place.
    fn carried(self, b: &mut Builder) -> Self {
        match self {
            Self::Column(pointer, by) => Self::Column(b.walking(Type::U64, pointer, by), by),
            row => row,
        }
    }

    fn get(&self, b: &mut Builder, frame: &Frame) -> Vec<Reg> {
        match self {
            Self::Row(row) => row.clone(),
            Self::Column(base, _) => frame.arithmetic.load_results(b, Address { base: *base, offset: 0 }, 1, None),
        }
    }

    fn advance(&self, b: &mut Builder) {
        if let Self::Column(pointer, by) = self {
            b.advance(Type::U64, *pointer, *by);
        }
    }
}

/// One element, of the partial sums that there are and the bias.
fn one(
    b: &mut Builder,
    frame: &Frame,
    finish: Finish,
    params: &Params,
    c: Reg,
    (work, bias): (Option<(Reg, Reg)>, Option<Vec<Reg>>),
) {
    let numbers = frame.arithmetic;
    let addr = Address { base: c, offset: 0 };
    let product = match (finish, work) {
        (Finish::Sum, Some((work, slab))) => Some(sum(b, frame, params, work, slab)),
        _ => None,
    };
    let old = (frame.beta != ScalarClass::Zero).then(|| numbers.load_results(b, addr, 1, None));
    let mut part = |part: usize| {
        let of = |of: &Option<Vec<Reg>>| of.as_ref().map(|of| of[part]);
        let value = match (of(&product), of(&old)) {
            (None, None) => numbers.zero(b),
            (None, Some(old)) => numbers.multiply(b, old, params.beta),
            (Some(product), None) => product,
            (Some(product), Some(old)) => numbers.fused(b, old, params.beta, product),
        };
        numbers.finished(b, value, [of(&bias), None], frame.relu())
    };
    let values = (0..numbers.parts()).map(&mut part).collect();
    let (values, ty) = numbers.rounded_all(b, values);
    b.store(Space::Global, ty, &values, c, 0);
}

/// The slices in order, times alpha.
fn sum(b: &mut Builder, frame: &Frame, params: &Params, work: Reg, slab: Reg) -> Vec<Reg> {
    let total = ordered_sum(b, frame.arithmetic, frame.k_g, (work, slab));
    match frame.alpha {
        ScalarClass::One => total,
        _ => total.into_iter().map(|part| frame.arithmetic.multiply(b, part, params.alpha)).collect(),
    }
}
