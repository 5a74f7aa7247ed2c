//! What an instruction counts as.

use crate::ir::{Arith, Function, Inst, MmaKind, Space, Type};
use tilewright_core::counts::{FloatOp, Op, Precision, Space as Where};

/// The operation that an instruction is.
pub(super) fn op(inst: &Inst) -> Op {
    let bits = |ty: Type, count: usize| 8 * ty.bytes() * count as u32;
    match inst {
        Inst::Mov { .. } | Inst::ToGlobal { .. } | Inst::Selp { .. } => Op::Move,
        Inst::Split { .. } | Inst::Join { .. } | Inst::Bits { .. } | Inst::Prmt { .. } => Op::Move,
        Inst::LdParam { ty, .. } => Op::Load(Where::Param, bits(*ty, 1)),
        Inst::Arith { op, ty, .. } if ty.is_float() => Op::Float(float(*op), precision(*ty)),
        Inst::Arith { .. } | Inst::Mad { .. } => Op::Integer,
        Inst::Fma { ty, .. } => Op::Float(FloatOp::Fma, precision(*ty)),
        Inst::Function { function: Function::Neg, ty, .. } => Op::Float(FloatOp::Minor, precision(*ty)),
        Inst::Function { ty, .. } => Op::Float(FloatOp::Special, precision(*ty)),
        Inst::Cvt { .. } | Inst::RoundTf32 { .. } => Op::Convert,
        Inst::Setp { .. } => Op::Compare,
        Inst::Ld { space, ty, dst, .. } => Op::Load(place(*space), bits(*ty, dst.len())),
        Inst::St { space, ty, src, .. } => Op::Store(place(*space), bits(*ty, src.len())),
        Inst::Red { ty, .. } | Inst::Atom { ty, .. } => Op::Atomic(Where::Global, bits(*ty, 1)),
        Inst::CpAsync { bytes, .. } => Op::AsyncCopy(8 * bytes),
        Inst::CpAsyncCommit | Inst::CpAsyncWait { .. } | Inst::Fence { .. } | Inst::GridRelease | Inst::GridWait => {
            Op::Order
        }
        Inst::Barrier => Op::Barrier,
        Inst::Ldmatrix { dst, .. } => Op::MatrixLoad(dst.len() as u32),
        Inst::Mma { kind, .. } => {
            let precision = match kind {
                MmaKind::F16 | MmaKind::Bf16 => Precision::Half,
                MmaKind::Tf32 => Precision::Single,
                MmaKind::F64 | MmaKind::F64Deep => Precision::Double,
                MmaKind::S8 => Precision::Byte,
            };
            Op::Tensor(precision, kind.shape().into_iter().product())
        }
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
