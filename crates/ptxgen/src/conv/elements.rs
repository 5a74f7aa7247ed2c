//! What kernels without shared memory do with single elements.

use crate::ir::{Address, Arith, Builder, Caching, Form, Inst, Operand, Reg, Space};
use crate::simt::Arithmetic;

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

/// What is done to a sum: what is added to it, and the activation.
pub(super) fn finished(b: &mut Builder, of: Arithmetic, sum: Reg, more: [Option<Reg>; 2], relu: bool) -> Reg {
    let mut value = sum;
    for more in more.into_iter().flatten() {
        value = of.add(b, value, more);
    }
    if relu { b.arith(Arith::Max, of.ty, value, Operand::Float(0.0)) } else { value }
}
