//! Moves, conversions, selections.

use super::Lowering;
use super::words::Words;
use crate::counts::Class;
use crate::kernel::{Constant, Run};
use crate::lanes::{self, Conversion, Float, Slots};
use crate::memory::window;
use crate::module::LoadError;
use crate::rounding::Round;
use crate::text::ast::{Instruction, Operand};
use crate::types::Ty;

/// Nanoseconds of `%globaltimer` for an instruction of a warp: coarse, as on devices, so that loops that wait for a time are short.
const TIMER_STEP: u64 = 128;

impl<'a> Lowering<'a> {
    pub(super) fn select(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        self.expect_operands(i, 4)?;
        let Some(mut ty) = words.ty() else { return self.error("a type is expected") };
        let by = if i.name == "slct" { words.ty().map(|first| std::mem::replace(&mut ty, first)) } else { None };
        words.ignore(&["ftz"]);
        let op = self.known(lanes::select(by, ty.bytes() == 8))?;
        let (a, b) = (self.source(&i.operands[1], ty)?, self.source(&i.operands[2], ty)?);
        let (c, negated) = match by {
            Some(by) => (self.source(&i.operands[3], by)?, false),
            None => self.predicate(&i.operands[3])?,
        };
        let (a, b) = if negated { (b, a) } else { (a, b) };
        let d = self.destination(&i.operands[0], ty)?;
        self.lanes(op, Slots::new(d, [a, b, c]), Class::Move);
        Ok(())
    }

    pub(super) fn mov(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        self.expect_operands(i, 2)?;
        let Some(ty) = words.ty() else { return self.error("a type is expected") };
        if ty == Ty::Pred {
            let (a, negated) = self.predicate(&i.operands[1])?;
            let d = self.destination(&i.operands[0], Ty::Pred)?;
            return self.combine(if negated { "not" } else { "mov" }, d, (a, (a, false)), Class::Move);
        }
        let step = match i.operands[1] {
            Operand::Name("%clock" | "%clock64") => Some(1),
            Operand::Name("%globaltimer" | "%globaltimer_lo") => Some(TIMER_STEP),
            _ => None,
        };
        if let Some(step) = step {
            let to = self.destination(&i.operands[0], ty)?;
            self.emit(Run::Clock { to, wide: ty.bytes() == 8, step }, Some(Class::Move));
            return Ok(());
        }
        match (&i.operands[0], &i.operands[1]) {
            (Operand::Vector(parts), _) => self.unpack(parts, &i.operands[1], ty),
            (_, Operand::Vector(parts)) => self.pack(&i.operands[0], parts, ty),
            (to, from) => {
                let a = self.source(from, ty)?;
                let d = self.destination(to, ty)?;
                self.lanes(lanes::same(ty.bytes() == 8), Slots::new(d, [a]), Class::Move);
                Ok(())
            }
        }
    }

    fn pack(&mut self, to: &Operand<'a>, parts: &[Operand<'a>], ty: Ty) -> Result<(), LoadError> {
        let op = self.known(lanes::pack(ty.bytes(), parts.len()))?;
        let mut slots = Slots::default();
        for ((slot, operand), part) in slots.from.iter_mut().zip(parts).zip(&op.from) {
            *slot = self.source(operand, *part)?;
        }
        slots.d = self.destination(to, ty)?;
        self.lanes(op, slots, Class::Move);
        Ok(())
    }

    fn unpack(&mut self, parts: &[Operand<'a>], from: &Operand<'a>, ty: Ty) -> Result<(), LoadError> {
        let a = self.source(from, ty)?;
        for (at, operand) in parts.iter().enumerate() {
            let op = self.known(lanes::unpack(ty.bytes(), parts.len(), at))?;
            let d = self.destination(operand, op.to)?;
            self.lanes(op, Slots::new(d, [a]), Class::Move);
        }
        Ok(())
    }

    /// Addresses between a space and the generic one: a window is added or taken off.
    pub(super) fn cvta(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        self.expect_operands(i, 2)?;
        let to_space = words.take("to");
        let Some(ty) = words.ty() else { return self.error("a type is expected") };
        let Some(window) = words.space().and_then(window) else { return self.error("a space is expected") };
        if ty.bytes() != 8 {
            return self.error("only 64-bit addresses are supported");
        }
        let a = self.source(&i.operands[1], ty)?;
        let b = self.constant(Constant::Bits(window), ty)?;
        let d = self.destination(&i.operands[0], ty)?;
        let op = self.known(lanes::integer(if to_space { "sub" } else { "add" }, Ty::U64))?;
        self.lanes(op, Slots::new(d, [a, b]), Class::Move);
        Ok(())
    }

    /// `cvt.pack.sat.s16.s32 d, a, b` and `cvt.pack.sat.u8.s32.b32 d, a, b, c`
    fn pack_saturated(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        let has_third = i.operands.len() == 4;
        let third = if has_third { words.ty() } else { None };
        let (from, to) = (words.ty(), words.ty());
        let (Some(Ty::S32), Some(to), true) = (from, to, words.take("sat")) else {
            return self.error(".sat, a narrow type and .s32 are expected");
        };
        if has_third != (to.bytes() == 1) || (has_third && third != Some(Ty::B32)) || !matches!(i.operands.len(), 3 | 4)
        {
            return self.error("these operands are not supported");
        }
        let op = self.known(lanes::pack_saturated(to))?;
        let (a, b) = (self.source(&i.operands[1], Ty::S32)?, self.source(&i.operands[2], Ty::S32)?);
        let c = match i.operands.get(3) {
            Some(c) => self.source(c, Ty::B32)?,
            None => self.constant(Constant::Bits(0), Ty::B32)?,
        };
        let d = self.destination(&i.operands[0], Ty::B32)?;
        self.lanes(op, Slots::new(d, [a, b, c]), Class::Convert);
        Ok(())
    }

    pub(super) fn cvt(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        if words.take("pack") {
            return self.pack_saturated(i, words);
        }
        if i.operands.len() != 3 {
            self.expect_operands(i, 2)?;
        }
        let (from, to) = (words.ty(), words.ty());
        let (Some(from), Some(to)) = (from, to) else { return self.error("two types are expected") };
        use Round::{Down, Nearest, Up, Zero};
        let whole = words.pick(&[("rni", Nearest), ("rzi", Zero), ("rmi", Down), ("rpi", Up)]);
        let round = whole.or_else(|| words.round());
        let float = Float {
            // The default between floats is exact or to nearest; between floats and integers it must be named.
            round: round.unwrap_or_default(),
            ftz: words.take("ftz"),
            sat: words.take("sat") | words.take("satfinite"),
            relu: words.take("relu"),
        };
        if i.operands.len() == 3 {
            let op = self.known(lanes::convert_pair(to, float))?;
            let (a, b) = (self.source(&i.operands[1], from)?, self.source(&i.operands[2], from)?);
            let d = self.destination(&i.operands[0], Ty::B32)?;
            self.lanes(op, Slots::new(d, [a, b]), Class::Convert);
            return Ok(());
        }
        let (a, source_bytes) = self.any_source(&i.operands[1], from)?;
        let (d, register) = self.any_destination(&i.operands[0], to)?;
        let conversion = Conversion { to, from, to_whole: whole.is_some(), float, register };
        let op = self.known(lanes::convert(conversion, source_bytes == 8))?;
        self.lanes(op, Slots::new(d, [a]), Class::Convert);
        Ok(())
    }

    /// A register at least as wide as a type, and its bytes; `None` for other operands.
    fn wide_register(&mut self, operand: &Operand<'a>, ty: Ty) -> Result<Option<(u16, u64)>, LoadError> {
        let Operand::Name(name) = operand else { return Ok(None) };
        let Some(register) = self.register(name)? else { return Ok(None) };
        if register.ty == Ty::Pred || register.ty.bytes() < ty.bytes() {
            return self.error(format!("{name} is too narrow for .{}", ty.name()));
        }
        Ok(Some((register.slot, register.ty.bytes())))
    }

    /// A source whose register may be wider than its type, and the register's bytes.
    pub(super) fn any_source(&mut self, operand: &Operand<'a>, ty: Ty) -> Result<(u16, u64), LoadError> {
        if let Some(register) = self.wide_register(operand, ty)? {
            return Ok(register);
        }
        let bytes = if ty.bytes() == 8 { 8 } else { 4 };
        Ok((self.source(operand, if bytes == 8 { ty } else { Ty::B32 })?, bytes))
    }

    /// A destination whose register may be wider than its type, and the register's bytes.
    pub(super) fn any_destination(&mut self, operand: &Operand<'a>, ty: Ty) -> Result<(u16, u64), LoadError> {
        match self.wide_register(operand, ty)? {
            Some(register) => Ok(register),
            None => Ok((self.destination(operand, ty)?, ty.bytes())),
        }
    }
}
