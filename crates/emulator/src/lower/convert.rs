//! Moves, conversions, selections.

use super::Lowering;
use super::words::Words;
use crate::counts::Class;
use crate::kernel::{Constant, Run};
use crate::lanes::{self, Conversion, Float, Slots};
use crate::memory::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
use crate::module::LoadError;
use crate::rounding::Round;
use crate::text::ast::{Instruction, Operand};
use crate::types::{Space, Ty};

impl<'a> Lowering<'a> {
    pub(super) fn conversion(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        let wanted = match i.name {
            "selp" | "slct" | "prmt" => 4,
            _ => 2,
        };
        if i.name == "cvt" && words.take("pack") {
            return self.pack_saturated(i, words);
        }
        let pair = i.name == "cvt" && i.operands.len() == 3;
        if i.operands.len() != wanted && !pair {
            return self.error(format!("{} operands where {wanted} are expected", i.operands.len()));
        }
        match i.name {
            "mov" => self.mov(i, words),
            "cvta" => self.cvta(i, words),
            "cvt" => self.cvt(i, words),
            "prmt" => {
                words.ignore(&["b32"]);
                let run = self.known(lanes::permute(words.first()))?;
                let source = |k: usize, s: &mut Self| s.source(&i.operands[k], Ty::B32);
                let (a, b, c) = (source(1, self)?, source(2, self)?, source(3, self)?);
                let d = self.destination(&i.operands[0], Ty::B32)?;
                self.lanes(run, Slots { d, a, b, c, ..Slots::default() }, Class::Move);
                Ok(())
            }
            _ => self.select(i, words),
        }
    }

    fn select(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        let Some(mut ty) = words.ty() else { return self.error("a type is expected") };
        let by = if i.name == "slct" { words.ty().map(|first| std::mem::replace(&mut ty, first)) } else { None };
        words.ignore(&["ftz"]);
        let name = match by {
            Some(by) => format!("slct.{}", by.name()),
            None => "selp".to_owned(),
        };
        let run = self.known(lanes::select(&name, ty.bytes() == 8))?;
        let (a, b) = (self.source(&i.operands[1], ty)?, self.source(&i.operands[2], ty)?);
        let (c, negated) = match by {
            Some(by) => (self.source(&i.operands[3], by)?, false),
            None => self.predicate(&i.operands[3])?,
        };
        let (a, b) = if negated { (b, a) } else { (a, b) };
        let d = self.destination(&i.operands[0], ty)?;
        self.lanes(run, Slots { d, a, b, c, ..Slots::default() }, Class::Move);
        Ok(())
    }

    fn mov(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        let Some(ty) = words.ty() else { return self.error("a type is expected") };
        if ty == Ty::Pred {
            let (a, negated) = self.predicate(&i.operands[1])?;
            let d = self.destination(&i.operands[0], Ty::Pred)?;
            let run = self.known(lanes::combine(if negated { "not" } else { "mov" }))?;
            self.lanes(run, Slots { d, a, b: a, ..Slots::default() }, Class::Move);
            return Ok(());
        }
        if let Operand::Name("%clock" | "%clock64" | "%globaltimer" | "%globaltimer_lo") = i.operands[1] {
            let to = self.destination(&i.operands[0], ty)?;
            self.emit(Run::Clock { to, wide: ty.bytes() == 8 }, Some(Class::Move));
            return Ok(());
        }
        match (&i.operands[0], &i.operands[1]) {
            (Operand::Vector(parts), _) => self.unpack(parts, &i.operands[1], ty),
            (_, Operand::Vector(parts)) => self.pack(&i.operands[0], parts, ty),
            (to, from) => {
                let a = self.source(from, ty)?;
                let d = self.destination(to, ty)?;
                let run = self.known(lanes::move_lanes(if ty.bytes() == 8 { "64" } else { "32" }))?;
                self.lanes(run, Slots { d, a, ..Slots::default() }, Class::Move);
                Ok(())
            }
        }
    }

    fn pack(&mut self, to: &Operand<'a>, parts: &[Operand<'a>], ty: Ty) -> Result<(), LoadError> {
        let (what, part) = match (ty.bytes(), parts.len()) {
            (4, 2) => ("pack16x2", Ty::B16),
            (8, 2) => ("pack32x2", Ty::B32),
            (8, 4) => ("pack16x4", Ty::B16),
            _ => return self.error("a vector of these parts is not supported"),
        };
        let mut slots = [0; 4];
        for (slot, operand) in slots.iter_mut().zip(parts) {
            *slot = self.source(operand, part)?;
        }
        let d = self.destination(to, ty)?;
        let run = self.known(lanes::move_lanes(what))?;
        let [a, b, c, e] = slots;
        self.lanes(run, Slots { d, a, b, c, e, f: 0 }, Class::Move);
        Ok(())
    }

    fn unpack(&mut self, parts: &[Operand<'a>], from: &Operand<'a>, ty: Ty) -> Result<(), LoadError> {
        let (names, part): (&[&str], Ty) = match (ty.bytes(), parts.len()) {
            (4, 2) => (&["low16", "high16"], Ty::B16),
            (8, 2) => (&["low32", "high32"], Ty::B32),
            (8, 4) => (&["0of4", "1of4", "2of4", "3of4"], Ty::B16),
            _ => return self.error("a vector of these parts is not supported"),
        };
        let a = self.source(from, ty)?;
        for (name, operand) in names.iter().zip(parts) {
            let run = self.known(lanes::move_lanes(name))?;
            let d = self.destination(operand, part)?;
            self.lanes(run, Slots { d, a, ..Slots::default() }, Class::Move);
        }
        Ok(())
    }

    /// Addresses between a space and the generic one: a window is added or taken off.
    fn cvta(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        let to_space = words.take("to");
        let Some(ty) = words.ty() else { return self.error("a type is expected") };
        let window = match words.space() {
            Some(Space::Global | Space::Const) => 0,
            Some(Space::Shared) => SHARED_WINDOW,
            Some(Space::Local) => LOCAL_WINDOW,
            Some(Space::Param) => PARAM_WINDOW,
            _ => return self.error("a space is expected"),
        };
        if ty.bytes() != 8 {
            return self.error("only 64-bit addresses are supported");
        }
        let a = self.source(&i.operands[1], ty)?;
        let b = self.constant(Constant::Bits(window), ty)?;
        let d = self.destination(&i.operands[0], ty)?;
        let run = self.known(lanes::integer2(if to_space { "sub" } else { "add" }, Ty::U64))?;
        self.lanes(run, Slots { d, a, b, ..Slots::default() }, Class::Move);
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
        let run = self.known(lanes::pack(to))?;
        let (a, b) = (self.source(&i.operands[1], Ty::S32)?, self.source(&i.operands[2], Ty::S32)?);
        let c = match i.operands.get(3) {
            Some(c) => self.source(c, Ty::B32)?,
            None => self.constant(Constant::Bits(0), Ty::B32)?,
        };
        let d = self.destination(&i.operands[0], Ty::B32)?;
        self.lanes(run, Slots { d, a, b, c, ..Slots::default() }, Class::Convert);
        Ok(())
    }

    fn cvt(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        let (from, to) = (words.ty(), words.ty());
        let (Some(from), Some(to)) = (from, to) else { return self.error("two types are expected") };
        let whole = words.one_of(&["rni", "rzi", "rmi", "rpi"]);
        let round = match whole {
            Some("rni") => Some(Round::Nearest),
            Some("rzi") => Some(Round::Zero),
            Some("rmi") => Some(Round::Down),
            Some(_) => Some(Round::Up),
            None => words.round(),
        };
        let float = Float {
            // The default between floats is exact or to nearest; between floats and integers it must be named.
            round: round.unwrap_or_default(),
            ftz: words.take("ftz"),
            sat: words.take("sat") | words.take("satfinite"),
            relu: words.take("relu"),
        };
        if i.operands.len() == 3 {
            let run = self.known(lanes::convert_pair(to))?;
            let (a, b) = (self.source(&i.operands[1], from)?, self.source(&i.operands[2], from)?);
            let d = self.destination(&i.operands[0], Ty::B32)?;
            self.lanes(run, Slots { d, a, b, f: float.packed(), ..Slots::default() }, Class::Convert);
            return Ok(());
        }
        let (a, source_bytes) = self.any_source(&i.operands[1], from)?;
        let (d, register) = self.any_destination(&i.operands[0], to)?;
        let conversion = Conversion {
            to,
            from,
            round: float.round,
            to_whole: whole.is_some(),
            ftz: float.ftz,
            sat: float.sat,
            relu: float.relu,
            register,
        };
        let Some((run, e, f)) = lanes::convert(conversion, source_bytes == 8) else {
            return self.error("this conversion is not supported");
        };
        self.lanes(run, Slots { d, a, e, f, ..Slots::default() }, Class::Convert);
        Ok(())
    }

    /// A source whose register may be wider than its type, and the register's bytes.
    pub(super) fn any_source(&mut self, operand: &Operand<'a>, ty: Ty) -> Result<(u16, u64), LoadError> {
        if let Operand::Name(name) = operand
            && let Some(register) = self.register(name)?
        {
            if register.ty == Ty::Pred || register.ty.bytes() < ty.bytes() {
                return self.error(format!("{name} is too narrow for .{}", ty.name()));
            }
            return Ok((register.slot, register.ty.bytes()));
        }
        let bytes = if ty.bytes() == 8 { 8 } else { 4 };
        Ok((self.source(operand, if bytes == 8 { ty } else { Ty::B32 })?, bytes))
    }

    /// A destination whose register may be wider than its type, and the register's bytes.
    pub(super) fn any_destination(&mut self, operand: &Operand<'a>, ty: Ty) -> Result<(u16, u64), LoadError> {
        if let Operand::Name(name) = operand
            && let Some(register) = self.register(name)?
        {
            if register.ty == Ty::Pred || register.ty.bytes() < ty.bytes() {
                return self.error(format!("{name} is too narrow for .{}", ty.name()));
            }
            return Ok((register.slot, register.ty.bytes()));
        }
        Ok((self.destination(operand, ty)?, ty.bytes()))
    }
}
