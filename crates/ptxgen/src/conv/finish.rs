//! What runs after the products: the ordered sum of the slices, with what is done to results. Where there is nothing to sum, zeros.

use super::blueprint::Blueprint;
use crate::ir::{Address, Arith, Axis, Builder, Compare, Form, Module, Space, Special, Type};
use crate::simt::ordered_sum;

/// Threads of a block.
pub(crate) const THREADS: u32 = 256;

/// The module of the finishing kernel, of so many slices; the result is taken as it lies in memory.
pub(crate) fn module(bp: &Blueprint, slices: u32) -> Module {
    let mut b = Builder::new();
    let (sum, bytes) = (bp.arithmetic.ty.bytes(), bp.arithmetic.result.bytes());
    let result = b.buffer("result", bytes);
    let work = (slices > 0).then(|| (b.buffer("work", sum), b.param("slab", Type::U64, sum)));
    // Elements from output to output, and how many outputs there are.
    let bias = bp
        .epilogue
        .bias
        .then(|| (b.buffer("bias", bytes), b.param("apart", Type::U32, 1), b.param("outputs", Type::U32, 1)));
    let residual = bp.epilogue.residual.then(|| b.buffer("residual", bytes));
    let elements = b.param("elements", Type::U32, 1);
    let (tid, block) = (b.special(Special::Tid), b.special(Special::Ctaid(Axis::X)));
    let at = b.scale_add(Some(block), THREADS, tid);
    let inside = b.compare(Compare::Lt, at, elements, None);
    b.when(inside, Form::Branch, |b| {
        let read = |b: &mut Builder, base, at| {
            let base = b.mad_wide(at, bytes, base);
            bp.arithmetic.load_result(b, Address { base, offset: 0 }, None)
        };
        let bias = bias.map(|(base, apart, outputs)| {
            let plane = b.arith(Arith::Div, Type::U32, at, apart);
            let output = b.arith(Arith::Rem, Type::U32, plane, outputs);
            read(b, base, output)
        });
        let residual = residual.map(|base| read(b, base, at));
        let sum = match work {
            Some((work, slab)) => {
                let from = b.mad_wide(at, sum, work);
                ordered_sum(b, bp.arithmetic, slices, (from, slab))[0]
            }
            None => bp.arithmetic.zero(b),
        };
        let value = bp.arithmetic.finished(b, sum, [bias, residual], bp.relu());
        let to = b.mad_wide(at, bytes, result);
        let (value, ty) = bp.arithmetic.rounded(b, value);
        b.store(Space::Global, ty, &[value], to, 0);
    });
    let name = format!("conv_{}_{}", bp.arithmetic.dtype, if slices > 0 { "sum" } else { "fill" });
    Module { target: bp.target, entry: b.finish(&name, THREADS) }
}
