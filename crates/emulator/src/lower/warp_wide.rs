//! Exchanges within a warp.

use super::Lowering;
use super::words::Words;
use crate::counts::Class;
use crate::kernel::{AtomicOp, Constant, Exchange, Flow, Reg, Run};
use crate::machine::exchange::{self, ExchangeFn, Question, Source};
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
        let run = match (i.name, operands) {
            ("shfl", [to, from, lane, clamp]) => self.shuffle(words, to, [from, lane, clamp])?,
            ("vote", [to, from]) => self.vote(words, ty, to, from)?,
            ("activemask", [to]) => exchange::active(self.destination(to, Ty::B32)?),
            ("match", [to, from]) => self.find_equal(words, ty, to, from)?,
            ("redux", [to, from]) => {
                let (op, ty) = self.reduction(words.first().unwrap_or_default(), ty)?;
                let from = self.source(from, Ty::B32)?;
                exchange::reduce(self.destination(to, Ty::B32)?, from, op, ty)
            }
            ("elect", [to @ Operand::Pair(..)]) => {
                let (to, flag) = self.pair(to)?;
                exchange::elect(to, flag.unwrap_or_default())
            }
            _ => return self.error("these operands are not supported"),
        };
        let (to, from) = (self.exchanged(operands.first()), self.exchanged(operands.get(1)));
        let flow = Flow { to, from, is_wide: i.name != "shfl", ..Flow::default() };
        let run = Run::Exchange(Box::new(Exchange { members, run, is_barrier: false }));
        self.emit_with(run, flow, Some(Class::Exchange));
        Ok(())
    }

    /// The registers of an operand of an exchange.
    fn exchanged(&mut self, to: Option<&Operand<'a>>) -> Vec<Reg> {
        let names = match to {
            Some(Operand::Pair(to, flag)) => vec![*to, *flag],
            Some(Operand::Name(to)) => vec![*to],
            _ => Vec::new(),
        };
        let found = names.into_iter().filter_map(|name| self.register(name).ok().flatten());
        found.map(|r| Reg::new(r.ty, r.slot)).collect()
    }

    /// `bar.warp.sync`.
    pub(super) fn warp_barrier(&mut self, members: Option<u16>) {
        let run = ExchangeFn::new(|_, _| None);
        self.emit(Run::Exchange(Box::new(Exchange { members, run, is_barrier: true })), Some(Class::Exchange));
    }

    fn shuffle(
        &mut self,
        words: &mut Words<'a>,
        to: &Operand<'a>,
        from: [&Operand<'a>; 3],
    ) -> Result<ExchangeFn, LoadError> {
        let modes: [(&str, (bool, Source)); 4] = [
            ("up", (true, |lane, by, _| lane.wrapping_sub(by))),
            ("down", (false, |lane, by, _| lane + by)),
            ("bfly", (false, |lane, by, _| lane ^ by)),
            ("idx", (false, |lane, by, segment| lane & segment | by & !segment)),
        ];
        let Some(mode) = words.pick(&modes) else {
            return self.error("a mode is expected: .up, .down, .bfly or .idx");
        };
        let to = self.pair(to)?;
        let [from, lane, clamp] = from;
        let from = [self.source(from, Ty::B32)?, self.source(lane, Ty::B32)?, self.source(clamp, Ty::B32)?];
        Ok(exchange::shuffle(to, from, mode))
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
    ) -> Result<ExchangeFn, LoadError> {
        let modes: [(&str, Option<Question>); 4] = [
            ("all", Some(|holds, mask| holds == mask)),
            ("any", Some(|holds, _| holds != 0)),
            ("uni", Some(|holds, mask| holds == 0 || holds == mask)),
            ("ballot", None),
        ];
        let Some(of) = words.pick(&modes) else {
            return self.error("a mode is expected: .all, .any, .uni or .ballot");
        };
        let wanted = if of.is_none() { Ty::B32 } else { Ty::Pred };
        if ty != Some(wanted) {
            return self.error(format!(".{} is expected as the type", wanted.name()));
        }
        let from = self.predicate(from)?;
        Ok(exchange::vote(self.destination(to, wanted)?, from, of))
    }

    fn find_equal(
        &mut self,
        words: &mut Words<'a>,
        ty: Option<Ty>,
        to: &Operand<'a>,
        from: &Operand<'a>,
    ) -> Result<ExchangeFn, LoadError> {
        let Some(all) = words.pick(&[("any", false), ("all", true)]) else {
            return self.error("a mode is expected: .any or .all");
        };
        let ty = ty.unwrap_or(Ty::B32);
        let from = (self.source(from, ty)?, ty.bytes() == 8);
        Ok(exchange::find_equal(self.pair(to)?, from, all))
    }

    /// PTX has a few reductions, for a few types.
    fn reduction(&self, name: &str, ty: Option<Ty>) -> Result<(AtomicOp, Ty), LoadError> {
        match (AtomicOp::parse(name), ty) {
            (Some(op @ (AtomicOp::Add | AtomicOp::Min | AtomicOp::Max)), Some(ty @ (Ty::U32 | Ty::S32))) => {
                Ok((op, ty))
            }
            (Some(op @ (AtomicOp::And | AtomicOp::Or | AtomicOp::Xor)), Some(Ty::B32)) => Ok((op, Ty::B32)),
            _ => self.error("this reduction is not supported"),
        }
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
