//! What a template needs to know of numbers.

use crate::ir::{Arith, Builder, Inst, Operand, Reg, Type};
use tilewright_core::dtype::DType;

/// The arithmetic of a SIMT product: fused multiply-adds in the element type, which lies in memory and in registers alike.
#[derive(Clone, Copy, Debug)]
pub struct Arithmetic {
    /// The element type of operands and results.
    pub dtype: DType,
    /// An element in memory and in registers, and an accumulator.
    pub ty: Type,
}

impl Arithmetic {
    /// Of binary32 or binary64.
    pub(crate) fn of(dtype: DType) -> Self {
        Self { dtype, ty: if dtype == DType::F64 { Type::F64 } else { Type::F32 } }
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u32 {
        self.ty.bytes()
    }

    /// Elements of the widest access: 16 bytes.
    pub(crate) fn widest(self) -> u32 {
        16 / self.bytes()
    }

    /// `acc += x * y`.
    pub(crate) fn multiply_add(self, b: &mut Builder, acc: Reg, x: Reg, y: Reg) {
        b.push(Inst::Fma { ty: self.ty, dst: acc, a: x.into(), b: y.into(), c: acc.into() });
    }

    /// `x + y`.
    pub(crate) fn add(self, b: &mut Builder, x: Reg, y: Reg) -> Reg {
        b.arith(Arith::Add, self.ty, x, y)
    }

    /// `x * y`.
    pub(crate) fn multiply(self, b: &mut Builder, x: Reg, y: Reg) -> Reg {
        b.arith(Arith::Mul, self.ty, x, y)
    }

    /// `x * y + z`.
    pub(crate) fn fused(self, b: &mut Builder, x: Reg, y: Reg, z: Reg) -> Reg {
        let dst = b.reg(self.ty);
        b.push(Inst::Fma { ty: self.ty, dst, a: x.into(), b: y.into(), c: z.into() });
        dst
    }

    /// An accumulator of 0.
    pub(crate) fn zero(self, b: &mut Builder) -> Reg {
        b.mov(self.ty, Operand::Float(0.0))
    }
}
