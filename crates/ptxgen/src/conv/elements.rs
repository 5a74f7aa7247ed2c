//! What threads do with numbers of elements, and with single elements.

use crate::ir::{Address, Arith, Builder, Caching, Form, Inst, Reg, Space, Type};
use crate::simt::Arithmetic;

/// A number modulo another, and the quotient.
pub(super) fn split(b: &mut Builder, number: Reg, by: Reg) -> [Reg; 2] {
    [Arith::Rem, Arith::Div].map(|op| b.arith(op, Type::U32, number, by))
}

/// A number, or 0, and a sum of products of indices and strides; terms without an index are 0.
pub(super) fn offset<const N: usize>(b: &mut Builder, first: Option<Reg>, terms: [(Option<Reg>, Reg); N]) -> Reg {
    let sum = terms.into_iter().fold(first, |sum, (index, stride)| {
        let Some(index) = index else { return sum };
        let product = b.arith(Arith::Mul, Type::U32, index, stride);
        Some(sum.map_or(product, |sum| b.add(Type::U32, sum, product)))
    });
    sum.unwrap_or_else(|| b.mov(Type::U32, 0u32))
}

/// What memory holds at so many elements from a base, or zero where the predicate is false. Offsets are 32-bit numbers that wrap round.
pub(super) fn read(b: &mut Builder, of: Arithmetic, (base, offset): (Reg, Reg), inside: Reg) -> Reg {
    let base = b.mad_wide(offset, of.bytes(), base);
    let (ty, dst) = (of.ty, of.zero(b));
    let addr = Address { base, offset: 0 };
    let inst = Inst::Ld { space: Space::Global, caching: Caching::ReadOnly, ty, dst: vec![dst], addr };
    b.when(inside, Form::Predicate, |b| b.push(inst));
    dst
}

/// Stores where the predicate is true.
pub(super) fn write(b: &mut Builder, of: Arithmetic, (base, offset): (Reg, Reg), inside: Reg, value: Reg) {
    let to = b.mad_wide(offset, of.bytes(), base);
    b.when(inside, Form::Predicate, |b| b.store(Space::Global, of.ty, &[value], to, 0));
}
