//! What an instruction counts as.

use crate::ir::{Arith, Function, Inst, MmaKind, Space, Type};
use tilewright_core::counts::{FloatOp, Op, Precision, Space as Where};

/// The operation that an instruction is.
pub(super) fn op(inst: &Inst) -> Op {
    let bits = |ty: Type, count: usize| 8 * ty.bytes() * count as u32;
    match inst {
        Inst::Mov { .. } | Inst::ToGlobal { .. } | Inst::Selp { .. } => Op::Move,
        Inst::Split { .. } | Inst::Join { .. } => Op::Move,
        Inst::LdParam { ty, .. } => Op::Load(Where::Param, bits(*ty, 1)),
        Inst::Arith { op, ty, .. } if ty.is_float() => Op::Float(float(*op), precision(*ty)),
        Inst::Arith { .. } | Inst::Mad { .. } => Op::Integer,
        Inst::Fma { ty, .. } => Op::Float(FloatOp::Fma, precision(*ty)),
        Inst::Function { function: Function::Neg, ty, .. } => Op::Float(FloatOp::Minor, precision(*ty)),
        Inst::Function { ty, .. } => Op::Float(FloatOp::Special, precision(*ty)),
        Inst::Cvt { .. } => Op::Convert,
        Inst::Setp { .. } => Op::Compare,
        Inst::Ld { space, ty, dst, .. } => Op::Load(place(*space), bits(*ty, dst.len())),
        Inst::St { space, ty, src, .. } => Op::Store(place(*space), bits(*ty, src.len())),
        Inst::Red { ty, .. } | Inst::Atom { ty, .. } => Op::Atomic(Where::Global, bits(*ty, 1)),
        Inst::CpAsync { bytes, .. } => Op::AsyncCopy(8 * bytes),
        Inst::CpAsyncCommit | Inst::CpAsyncWait { .. } => Op::Order,
        Inst::Barrier => Op::Barrier,
        Inst::Ldmatrix { dst, .. } => Op::MatrixLoad(dst.len() as u32),
        Inst::Mma { kind, .. } => match kind {
            MmaKind::F16 | MmaKind::Bf16 => Op::Tensor(Precision::Half, 16 * 8 * 16),
            MmaKind::Tf32 => Op::Tensor(Precision::Single, 16 * 8 * 8),
            MmaKind::F64 => Op::Tensor(Precision::Double, 8 * 8 * 4),
        },
    }
}

fn place(space: Space) -> Where {
    match space {
        Space::Global => Where::Global,
        Space::Shared => Where::Shared,
    }
}

fn float(op: Arith) -> FloatOp {
    match op {
        Arith::Add | Arith::Sub => FloatOp::Add,
        Arith::Div => FloatOp::Div,
        Arith::Min | Arith::Max => FloatOp::Minor,
        _ => FloatOp::Mul,
    }
}

fn precision(ty: Type) -> Precision {
    match ty {
        Type::F16 | Type::Bf16 => Precision::Half,
        Type::F16x2 | Type::Bf16x2 => Precision::Half2,
        Type::F64 => Precision::Double,
        _ => Precision::Single,
    }
}
