//! Comparisons.

use super::Lowering;
use super::words::Words;
use crate::counts::Class;
use crate::kernel::Constant;
use crate::lanes::{self, Compare, Float, LaneFn, Slots, bits2};
use crate::memory::{LOCAL_WINDOW, PARAM_WINDOW, REGION_BITS, SHARED_WINDOW};
use crate::module::LoadError;
use crate::text::ast::{Instruction, Operand};
use crate::types::{Space, Ty};

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
            let run = lanes::test_property(words.first().unwrap_or_default(), ty);
            let run = self.known(run)?;
            let slots = self.slots(i, Ty::Pred, &[ty])?;
            self.lanes(run, Slots { b: slots.a, ..slots }, Class::Compare);
            return Ok(());
        }
        let to = if i.name == "set" { words.ty() } else { None };
        let Some(with) = words.first().and_then(Compare::parse) else { return self.error("a comparison is expected") };
        let options = Float { ftz: words.take("ftz"), ..Float::default() };
        let run = self.known(lanes::compare(with, ty, options))?;
        let combine = words.one_of(&["and", "or", "xor"]);
        let wanted = if combine.is_some() { 4 } else { 3 };
        if i.operands.len() != wanted {
            return self.error(format!("{} operands where {wanted} are expected", i.operands.len()));
        }
        let (a, b) = (self.source(&i.operands[1], ty)?, self.source(&i.operands[2], ty)?);
        if let Some(high) = lanes::compare_high(with, ty) {
            return if combine.is_none() {
                self.compare_pairs(i, to, [run, high], (a, b))
            } else {
                self.error("two comparisons and a predicate are not supported")
            };
        }
        let with = match combine {
            Some(combine) => Some((combine, self.predicate(&i.operands[3])?)),
            None => None,
        };
        match to {
            Some(to) => self.set(i, to, run, (a, b), with),
            None => self.set_predicates(i, run, (a, b), with),
        }
    }

    /// `isspacep.shared %p, %rd`
    fn space_test(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        let window = match words.space() {
            Some(Space::Shared | Space::Global) => SHARED_WINDOW,
            Some(Space::Local) => LOCAL_WINDOW,
            Some(Space::Param) => PARAM_WINDOW,
            _ => return self.error("this space is not supported"),
        };
        let is_global = i.modifiers.first() == Some(&"global");
        let mut slots = self.slots(i, Ty::Pred, &[Ty::B64])?;
        slots.b = self.constant(Constant::Bits(window >> REGION_BITS), Ty::B64)?;
        self.lanes(lanes::in_window(is_global), slots, Class::Compare);
        Ok(())
    }

    /// `setp`: one or two predicates.
    fn set_predicates(
        &mut self,
        i: &Instruction<'a>,
        run: LaneFn,
        (a, b): (u16, u16),
        with: Option<(&str, (u16, bool))>,
    ) -> Result<(), LoadError> {
        let (first, second) = match &i.operands[0] {
            Operand::Pair(first, second) => (Operand::Name(first), Some(Operand::Name(second))),
            other => (other.clone(), None),
        };
        let first = self.destination(&first, Ty::Pred)?;
        if with.is_none() && second.is_none() {
            self.lanes(run, Slots { d: first, a, b, ..Slots::default() }, Class::Compare);
            return Ok(());
        }
        let raw = self.fresh(Ty::Pred)?;
        self.lanes(run, Slots { d: raw, a, b, ..Slots::default() }, Class::Compare);
        let (op, (c, negated)) = with.unwrap_or(("mov", (raw, false)));
        let slots = Slots { a: raw, b: c, f: u16::from(negated), ..Slots::default() };
        let run = self.known(lanes::combine(op))?;
        if second.is_none() {
            self.lanes(run, Slots { d: first, ..slots }, Class::Compare);
            return Ok(());
        }
        // Both results are made of the old predicates, and the guard must hold to the end.
        let result = self.fresh(Ty::Pred)?;
        self.lanes(run, Slots { d: result, ..slots }, Class::Compare);
        let take = self.known(lanes::combine("mov"))?;
        if let Some(second) = second {
            let complement = if op == "mov" { "not".to_owned() } else { format!("not.{op}") };
            let run = self.known(lanes::combine(&complement))?;
            let other = self.fresh(Ty::Pred)?;
            self.lanes(run, Slots { d: other, ..slots }, Class::Compare);
            let second = self.destination(&second, Ty::Pred)?;
            if second == self.at.guard {
                return self.error("the guard as second destination is not supported");
            }
            self.lanes(take, Slots { d: second, a: other, b: other, ..Slots::default() }, Class::Compare);
        }
        self.lanes(take, Slots { d: first, a: result, b: result, ..Slots::default() }, Class::Compare);
        Ok(())
    }

    /// `set`: all ones or 1.0 where it holds.
    fn set(
        &mut self,
        i: &Instruction<'a>,
        to: Ty,
        run: LaneFn,
        (a, b): (u16, u16),
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
        self.lanes(run, Slots { d: flag, a, b, ..Slots::default() }, Class::Compare);
        if let Some((op, (c, negated))) = with {
            let run = self.known(lanes::combine(op))?;
            self.lanes(
                run,
                Slots { d: flag, a: flag, b: c, f: u16::from(negated), ..Slots::default() },
                Class::Compare,
            );
        }
        let a = self.constant(Constant::Bits(yes), Ty::B32)?;
        let b = self.constant(Constant::Bits(0), Ty::B32)?;
        let d = self.destination(&i.operands[0], to)?;
        let run = self.known(lanes::select("selp", false))?;
        self.lanes(run, Slots { d, a, b, c: flag, ..Slots::default() }, Class::Compare);
        Ok(())
    }
    /// `set` and `setp` of pairs: the lower halves, and the upper ones.
    fn compare_pairs(
        &mut self,
        i: &Instruction<'a>,
        to: Option<Ty>,
        runs: [LaneFn; 2],
        (a, b): (u16, u16),
    ) -> Result<(), LoadError> {
        let flags = [self.fresh(Ty::Pred)?, self.fresh(Ty::Pred)?];
        for (run, d) in runs.into_iter().zip(flags) {
            self.lanes(run, Slots { d, a, b, ..Slots::default() }, Class::Compare);
        }
        let Some(to) = to else {
            let Operand::Pair(low, high) = &i.operands[0] else { return self.error("two predicates are expected") };
            let take = self.known(lanes::combine("mov"))?;
            for (name, a) in [low, high].into_iter().zip(flags) {
                let d = self.destination(&Operand::Name(name), Ty::Pred)?;
                if d == self.at.guard {
                    return self.error("the guard as destination is not supported");
                }
                self.lanes(take, Slots { d, a, b: a, ..Slots::default() }, Class::Compare);
            }
            return Ok(());
        };
        let yes = match to {
            Ty::U32 | Ty::S32 => 0xffff,
            Ty::F16x2 => HALF_ONE,
            Ty::Bf16x2 => BFLOAT_ONE,
            _ => return self.error("this type of the result is not supported"),
        };
        let choose = self.known(lanes::select("selp", false))?;
        let none = self.constant(Constant::Bits(0), Ty::B32)?;
        let mut parts = [0; 2];
        for (shift, (part, c)) in [0, 16].into_iter().zip(parts.iter_mut().zip(flags)) {
            *part = self.fresh(Ty::B32)?;
            let a = self.constant(Constant::Bits(yes << shift), Ty::B32)?;
            self.lanes(choose, Slots { d: *part, a, b: none, c, ..Slots::default() }, Class::Compare);
        }
        let d = self.destination(&i.operands[0], Ty::B32)?;
        let join = self.known(bits2("or", Ty::B32))?;
        self.lanes(join, Slots { d, a: parts[0], b: parts[1], ..Slots::default() }, Class::Compare);
        Ok(())
    }
}
