//! Comparisons.

use super::Lowering;
use super::words::Words;
use crate::counts::Class;
use crate::kernel::Constant;
use crate::lanes::{self, Compare, LaneOp, Slots};
use crate::memory::{SHARED_WINDOW, window};
use crate::module::LoadError;
use crate::text::ast::{Instruction, Operand};
use crate::types::Ty;

/// One in binary16.
const HALF_ONE: u64 = 0x3c00;
/// One in bfloat16.
const BFLOAT_ONE: u64 = 0x3f80;

impl<'a> Lowering<'a> {
    pub(super) fn comparison(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        if i.name == "isspacep" {
            return self.space_test(i, words);
        }
        let Some(ty) = words.ty() else { return self.error("a type is expected") };
        if i.name == "testp" {
            let op = lanes::test_property(words.first().unwrap_or_default(), ty);
            return self.apply(i, op, Class::Compare);
        }
        let to = if i.name == "set" { words.ty() } else { None };
        let Some(with) = words.first().and_then(Compare::parse) else { return self.error("a comparison is expected") };
        let ftz = words.take("ftz");
        let op = self.known(lanes::compare(with, ty, ftz, false))?;
        let combine = words.one_of(&["and", "or", "xor"]);
        self.expect_operands(i, if combine.is_some() { 4 } else { 3 })?;
        let (a, b) = (self.source(&i.operands[1], ty)?, self.source(&i.operands[2], ty)?);
        if matches!(ty, Ty::F16x2 | Ty::Bf16x2) {
            let high = self.known(lanes::compare(with, ty, ftz, true))?;
            return if combine.is_none() {
                self.compare_pairs(i, to, [op, high], [a, b])
            } else {
                self.error("two comparisons and a predicate are not supported")
            };
        }
        let with = match combine {
            Some(combine) => Some((combine, self.predicate(&i.operands[3])?)),
            None => None,
        };
        match to {
            Some(to) => self.set(i, to, (op, [a, b]), with),
            None => self.set_predicates(i, (op, [a, b]), with),
        }
    }

    /// `isspacep.shared %p, %rd`
    fn space_test(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        let is_global = i.modifiers.first() == Some(&"global");
        match words.space().and_then(window) {
            // All that is in no window is global, and the windows begin with that of shared memory.
            Some(0) if !is_global => self.error("this space is not supported"),
            Some(0) => self.apply(i, Some(lanes::in_window(SHARED_WINDOW, true)), Class::Compare),
            Some(window) => self.apply(i, Some(lanes::in_window(window, false)), Class::Compare),
            None => self.error("this space is not supported"),
        }
    }

    /// `setp`: one or two predicates.
    fn set_predicates(
        &mut self,
        i: &Instruction<'a>,
        (op, sources): (LaneOp, [u16; 2]),
        with: Option<(&str, (u16, bool))>,
    ) -> Result<(), LoadError> {
        let (first, second) = match &i.operands[0] {
            Operand::Pair(first, second) => (Operand::Name(first), Some(Operand::Name(second))),
            other => (other.clone(), None),
        };
        let first = self.destination(&first, Ty::Pred)?;
        if with.is_none() && second.is_none() {
            self.lanes(op, Slots::new(first, sources), Class::Compare);
            return Ok(());
        }
        let raw = self.fresh(Ty::Pred)?;
        self.lanes(op, Slots::new(raw, sources), Class::Compare);
        let (name, other) = with.unwrap_or(("mov", (raw, false)));
        let Some(second) = second else { return self.combine(name, first, (raw, other), Class::Compare) };
        // Both results are made of the old predicates, and the guard must hold to the end.
        let (result, rest) = (self.fresh(Ty::Pred)?, self.fresh(Ty::Pred)?);
        self.combine(name, result, (raw, other), Class::Compare)?;
        let complement = if name == "mov" { "not".to_owned() } else { format!("not.{name}") };
        self.combine(&complement, rest, (raw, other), Class::Compare)?;
        let second = self.destination(&second, Ty::Pred)?;
        if second == self.at.guard {
            return self.error("the guard as second destination is not supported");
        }
        self.combine("mov", second, (rest, (rest, false)), Class::Compare)?;
        self.combine("mov", first, (result, (result, false)), Class::Compare)
    }

    /// `set`: all ones or 1.0 where it holds.
    fn set(
        &mut self,
        i: &Instruction<'a>,
        to: Ty,
        (op, sources): (LaneOp, [u16; 2]),
        with: Option<(&str, (u16, bool))>,
    ) -> Result<(), LoadError> {
        let yes = match to {
            Ty::F32 => u64::from(1f32.to_bits()),
            Ty::U32 | Ty::S32 => u64::from(u32::MAX),
            Ty::U16 | Ty::S16 => 0xffff,
            Ty::F16 => HALF_ONE,
            Ty::Bf16 => BFLOAT_ONE,
            _ => return self.error("this type of the result is not supported"),
        };
        let flag = self.fresh(Ty::Pred)?;
        self.lanes(op, Slots::new(flag, sources), Class::Compare);
        if let Some((name, other)) = with {
            self.combine(name, flag, (flag, other), Class::Compare)?;
        }
        let d = self.destination(&i.operands[0], to)?;
        self.choose(d, yes, flag)
    }

    /// A constant where a predicate holds, and zero elsewhere.
    fn choose(&mut self, d: u16, yes: u64, flag: u16) -> Result<(), LoadError> {
        let (a, b) = (self.constant(Constant::Bits(yes), Ty::B32)?, self.constant(Constant::Bits(0), Ty::B32)?);
        let op = self.known(lanes::select(None, false))?;
        self.lanes(op, Slots::new(d, [a, b, flag]), Class::Compare);
        Ok(())
    }

    /// `set` and `setp` of pairs: the lower halves, and the upper ones.
    fn compare_pairs(
        &mut self,
        i: &Instruction<'a>,
        to: Option<Ty>,
        ops: [LaneOp; 2],
        sources: [u16; 2],
    ) -> Result<(), LoadError> {
        let flags = [self.fresh(Ty::Pred)?, self.fresh(Ty::Pred)?];
        for (op, d) in ops.into_iter().zip(flags) {
            self.lanes(op, Slots::new(d, sources), Class::Compare);
        }
        let Some(to) = to else {
            let Operand::Pair(low, high) = &i.operands[0] else { return self.error("two predicates are expected") };
            for (name, a) in [low, high].into_iter().zip(flags) {
                let d = self.destination(&Operand::Name(name), Ty::Pred)?;
                if d == self.at.guard {
                    return self.error("the guard as destination is not supported");
                }
                self.combine("mov", d, (a, (a, false)), Class::Compare)?;
            }
            return Ok(());
        };
        let yes = match to {
            Ty::U32 | Ty::S32 => 0xffff,
            Ty::F16x2 => HALF_ONE,
            Ty::Bf16x2 => BFLOAT_ONE,
            _ => return self.error("this type of the result is not supported"),
        };
        let parts = [self.fresh(Ty::B32)?, self.fresh(Ty::B32)?];
        for (shift, (part, flag)) in [0, 16].into_iter().zip(parts.into_iter().zip(flags)) {
            self.choose(part, yes << shift, flag)?;
        }
        let d = self.destination(&i.operands[0], Ty::B32)?;
        let join = self.known(lanes::bits("or", Ty::B32))?;
        self.lanes(join, Slots::new(d, parts), Class::Compare);
        Ok(())
    }
}
