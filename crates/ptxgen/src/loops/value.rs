//! Values of expressions.

use super::Lower;
use crate::ir::{Address, Arith, Caching, Function, Inst, Operand, Reg, Type};
use tilewright_loops::LoopError;
use tilewright_loops::kernel::{Binary, Expr, Unary};

impl Lower<'_> {
    /// The value of an expression in one lane.
    pub(super) fn value(&mut self, e: &Expr, ty: Type, lane: usize) -> Result<Operand, LoopError> {
        match e {
            Expr::Number(x) => Ok(Operand::Float(*x)),
            Expr::Local(name) => {
                let regs = self.locals.get(name).cloned().unwrap_or_default();
                Ok(regs.get(lane.min(regs.len().saturating_sub(1))).map_or(Operand::Float(f64::NAN), |r| (*r).into()))
            }
            Expr::Load(access) => match self.joined.get(&(access.array, access.at.clone())) {
                Some(regs) => Ok(regs[lane.min(regs.len() - 1)].into()),
                None => self.compute(e, ty, lane),
            },
            Expr::Index(at) => {
                let of_lane = self.lanes.map(|(index, _)| (index, lane as i64));
                match self.offsets.value(&mut self.b, at, of_lane)? {
                    Operand::Reg(src) => {
                        let dst = self.b.reg(ty);
                        self.b.push(Inst::Cvt { to: ty, from: Type::U32, dst, src });
                        Ok(dst.into())
                    }
                    Operand::Int(i) => Ok(Operand::Float(i as f64)),
                    other => Ok(other),
                }
            }
            _ => self.compute(e, ty, lane),
        }
    }

    fn compute(&mut self, e: &Expr, ty: Type, lane: usize) -> Result<Operand, LoopError> {
        let dst = self.b.reg(ty);
        self.value_into(e, ty, lane, dst)?;
        Ok(dst.into())
    }

    /// The value of an expression in a register of the caller's.
    pub(super) fn value_into(&mut self, e: &Expr, ty: Type, lane: usize, dst: Reg) -> Result<(), LoopError> {
        let inst = match e {
            Expr::Load(access) if !self.joined.contains_key(&(access.array, access.at.clone())) => {
                let (space, base, offset, ty) = self.address(access, lane)?;
                let addr = Address { base, offset };
                Inst::Ld { space, caching: Caching::Default, ty, dst: vec![dst], addr }
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.value(a, ty, lane)?, self.value(b, ty, lane)?);
                let op = match op {
                    Binary::Add => Arith::Add,
                    Binary::Sub => Arith::Sub,
                    Binary::Mul => Arith::Mul,
                    Binary::Div => Arith::Div,
                };
                Inst::Arith { op, ty, dst, a, b }
            }
            Expr::Fma(a, b, c) => {
                let (a, b, c) = (self.value(a, ty, lane)?, self.value(b, ty, lane)?, self.value(c, ty, lane)?);
                Inst::Fma { ty, dst, a, b, c }
            }
            Expr::Unary(op, a) => {
                let src = self.value(a, ty, lane)?;
                self.function(*op, ty, dst, src)
            }
            Expr::Number(_) | Expr::Local(_) | Expr::Load(_) | Expr::Index(_) => {
                Inst::Mov { ty, dst, src: self.value(e, ty, lane)? }
            }
        };
        self.b.push(inst);
        Ok(())
    }

    fn function(&mut self, op: Unary, ty: Type, dst: Reg, src: Operand) -> Inst {
        match (op, ty) {
            (Unary::Sqrt, _) => Inst::Function { function: Function::Sqrt, ty, dst, src },
            (Unary::Rsqrt, Type::F64) => {
                let root = self.b.reg(ty);
                self.b.push(Inst::Function { function: Function::Sqrt, ty, dst: root, src });
                Inst::Arith { op: Arith::Div, ty, dst, a: Operand::Float(1.0), b: root.into() }
            }
            (Unary::Rsqrt, _) => Inst::Function { function: Function::Rsqrt, ty, dst, src },
            (Unary::Exp, _) => {
                let scaled = self.b.arith(Arith::Mul, ty, src, Operand::Float(std::f64::consts::LOG2_E));
                Inst::Function { function: Function::Exp2, ty, dst, src: scaled.into() }
            }
        }
    }
}
