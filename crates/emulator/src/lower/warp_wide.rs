//! Exchanges within a warp.

use super::Lowering;
use super::words::Words;
use crate::counts::Class;
use crate::kernel::{AtomicOp, Constant, Exchange, ExchangeKind as Kind, Run};
use crate::module::LoadError;
use crate::text::ast::{Instruction, Operand};
use crate::types::Ty;

impl<'a> Lowering<'a> {
    pub(super) fn warp_wide(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        // The forms with a member mask have it as their last operand.
        let sync = words.take("sync");
        let (operands, members) = match i.operands.split_last() {
            Some((last, rest)) if sync => (rest, Some(self.source(last, Ty::B32)?)),
            _ => (i.operands.as_slice(), None),
        };
        let ty = words.ty();
        let exchange = match (i.name, operands) {
            ("shfl", [to, from, lane, clamp]) => self.shuffle(words, to, from, lane, clamp)?,
            ("vote", [to, from]) => self.vote(words, ty, to, from)?,
            ("activemask", [to]) => {
                let to = self.destination(to, Ty::B32)?;
                blank(Kind::ActiveMask, to)
            }
            ("match", [to, from]) => self.find_equal(words, ty, to, from)?,
            ("redux", [to, from]) => {
                let kind = reduction(words.first().unwrap_or_default(), ty);
                let Some(kind) = kind else { return self.error("this reduction is not supported") };
                let from = self.source(from, Ty::B32)?;
                let to = self.destination(to, Ty::B32)?;
                Exchange { from, ..blank(kind, to) }
            }
            ("elect", [Operand::Pair(to, flag)]) => {
                let flag = Some(self.destination(&Operand::Name(flag), Ty::Pred)?);
                let to = self.destination(&Operand::Name(to), Ty::B32)?;
                Exchange { flag, ..blank(Kind::Elect, to) }
            }
            _ => return self.error("these operands are not supported"),
        };
        self.emit(Run::Exchange(Box::new(Exchange { members, ..exchange })), Some(Class::Exchange));
        Ok(())
    }

    fn shuffle(
        &mut self,
        words: &mut Words<'a>,
        to: &Operand<'a>,
        from: &Operand<'a>,
        lane: &Operand<'a>,
        clamp: &Operand<'a>,
    ) -> Result<Exchange, LoadError> {
        use Kind::{ShuffleDown, ShuffleIndex, ShuffleUp, ShuffleXor};
        let modes = [("up", ShuffleUp), ("down", ShuffleDown), ("bfly", ShuffleXor), ("idx", ShuffleIndex)];
        let Some(kind) = words.pick(&modes) else {
            return self.error("a mode is expected: .up, .down, .bfly or .idx");
        };
        let (to, flag) = self.pair(to)?;
        let from = self.source(from, Ty::B32)?;
        let (lane, clamp) = (self.source(lane, Ty::B32)?, self.source(clamp, Ty::B32)?);
        Ok(Exchange { flag, from, lane, clamp, ..blank(kind, to) })
    }

    /// A register, and perhaps a predicate behind a bar.
    fn pair(&mut self, operand: &Operand<'a>) -> Result<(u16, Option<u16>), LoadError> {
        match operand {
            Operand::Pair(to, flag) => {
                let flag = self.destination(&Operand::Name(flag), Ty::Pred)?;
                Ok((self.destination(&Operand::Name(to), Ty::B32)?, Some(flag)))
            }
            other => Ok((self.destination(other, Ty::B32)?, None)),
        }
    }

    fn vote(
        &mut self,
        words: &mut Words<'a>,
        ty: Option<Ty>,
        to: &Operand<'a>,
        from: &Operand<'a>,
    ) -> Result<Exchange, LoadError> {
        use Kind::{VoteAll, VoteAny, VoteBallot, VoteUniform};
        let modes = [("all", VoteAll), ("any", VoteAny), ("uni", VoteUniform), ("ballot", VoteBallot)];
        let Some(kind) = words.pick(&modes) else {
            return self.error("a mode is expected: .all, .any, .uni or .ballot");
        };
        let wanted = if kind == Kind::VoteBallot { Ty::B32 } else { Ty::Pred };
        if ty != Some(wanted) {
            return self.error(format!(".{} is expected as the type", wanted.name()));
        }
        let (from, negate) = self.predicate(from)?;
        let to = self.destination(to, wanted)?;
        Ok(Exchange { from, negate, ..blank(kind, to) })
    }

    fn find_equal(
        &mut self,
        words: &mut Words<'a>,
        ty: Option<Ty>,
        to: &Operand<'a>,
        from: &Operand<'a>,
    ) -> Result<Exchange, LoadError> {
        let Some(kind) = words.pick(&[("any", Kind::MatchAny), ("all", Kind::MatchAll)]) else {
            return self.error("a mode is expected: .any or .all");
        };
        let ty = ty.unwrap_or(Ty::B32);
        let from = self.source(from, ty)?;
        let (to, flag) = self.pair(to)?;
        Ok(Exchange { flag, from, wide: ty.bytes() == 8, ..blank(kind, to) })
    }

    /// The slots of a vector operand of a certain length.
    pub(super) fn list(
        &mut self,
        operand: &Operand<'a>,
        count: usize,
        ty: Ty,
        is_destination: bool,
    ) -> Result<Vec<u16>, LoadError> {
        let elements = self.elements(operand);
        if elements.len() != count {
            return self.error(format!("{} registers where {count} are expected", elements.len()));
        }
        let mut slots = Vec::with_capacity(count);
        for element in &elements {
            slots.push(match (element, is_destination) {
                (element, true) => self.destination(element, ty)?,
                (Operand::Int(value), _) => self.constant(Constant::Bits(*value), ty)?,
                (element, false) => self.source(element, ty)?,
            });
        }
        Ok(slots)
    }
}

/// PTX has a few operations, for a few types.
fn reduction(name: &str, ty: Option<Ty>) -> Option<Kind> {
    let op = AtomicOp::parse(name)?;
    let is_known = match op {
        AtomicOp::Add | AtomicOp::Min | AtomicOp::Max => matches!(ty?, Ty::U32 | Ty::S32),
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => ty? == Ty::B32,
        _ => false,
    };
    ty.filter(|_| is_known).map(|ty| Kind::Reduce(op, ty))
}

pub(super) fn blank(kind: Kind, to: u16) -> Exchange {
    Exchange { kind, to, flag: None, from: 0, negate: false, wide: false, lane: 0, clamp: 0, members: None }
}
