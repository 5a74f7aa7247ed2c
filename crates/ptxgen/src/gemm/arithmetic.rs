//! What a template needs to know of numbers.

use crate::ir::{Arith, Builder, Inst, Operand, Reg, Type};
use std::fmt::Debug;
use tilewright_core::dtype::DType;

/// The arithmetic of a SIMT product: how elements lie in memory and in registers, and how they are multiplied and added.
pub trait Arithmetic: Debug + Send + Sync {
    /// The element type of A, B and C.
    fn dtype(&self) -> DType;

    /// An element in memory, and in the registers that it is loaded to.
    fn element(&self) -> Type;

    /// An accumulator.
    fn accumulator(&self) -> Type;

    /// `acc += x * y`.
    fn multiply_add(&self, b: &mut Builder, acc: Reg, x: Reg, y: Reg);

    /// Bytes of an element.
    fn bytes(&self) -> u32 {
        self.element().bytes()
    }

    /// Elements of the widest access: 16 bytes.
    fn widest(&self) -> u32 {
        16 / self.bytes()
    }

    /// `x + y` of accumulators.
    fn add(&self, b: &mut Builder, x: Reg, y: Reg) -> Reg {
        b.arith(Arith::Add, self.accumulator(), x, y)
    }

    /// `acc += x` of accumulators.
    fn add_to(&self, b: &mut Builder, acc: Reg, x: Reg) {
        b.push(Inst::Arith { op: Arith::Add, ty: self.accumulator(), dst: acc, a: acc.into(), b: x.into() });
    }

    /// `x * y` of accumulators.
    fn multiply(&self, b: &mut Builder, x: Reg, y: Reg) -> Reg {
        b.arith(Arith::Mul, self.accumulator(), x, y)
    }

    /// `x * y + z` of accumulators.
    fn fused(&self, b: &mut Builder, x: Reg, y: Reg, z: Reg) -> Reg {
        let (ty, dst) = (self.accumulator(), b.reg(self.accumulator()));
        b.push(Inst::Fma { ty, dst, a: x.into(), b: y.into(), c: z.into() });
        dst
    }

    /// An accumulator of 0.
    fn zero(&self, b: &mut Builder) -> Reg {
        b.mov(self.accumulator(), Operand::Float(0.0))
    }
}

/// Fused multiply-adds in the element type itself.
#[derive(Clone, Copy, Debug)]
pub struct Fused {
    dtype: DType,
    ty: Type,
}

/// binary32 throughout.
pub static F32: Fused = Fused { dtype: DType::F32, ty: Type::F32 };
/// binary64 throughout.
pub static F64: Fused = Fused { dtype: DType::F64, ty: Type::F64 };

impl Arithmetic for Fused {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn element(&self) -> Type {
        self.ty
    }

    fn accumulator(&self) -> Type {
        self.ty
    }

    fn multiply_add(&self, b: &mut Builder, acc: Reg, x: Reg, y: Reg) {
        b.push(Inst::Fma { ty: self.ty, dst: acc, a: x.into(), b: y.into(), c: acc.into() });
    }
}
