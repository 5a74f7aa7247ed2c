//! Arithmetic and logic.

use super::words::Words;
use super::{Lowering, Typed};
use crate::counts::{Class, FloatOp, Precision};
use crate::lanes::{
    self, Float, LaneFn, READS, Slots, WRITES, bits2, bits3, bits4, carry, float1, float2, float3, integer1, integer2,
    integer3, wide,
};
use crate::module::LoadError;
use crate::text::ast::Instruction;
use crate::types::Ty;

impl<'a> Lowering<'a> {
    pub(super) fn arithmetic(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        // The one modifier that stands behind the types.
        let accumulates = i.name == "vabsdiff4" && words.take("add");
        let Some(ty) = words.ty() else { return self.error("this instruction is not supported") };
        match (i.name, ty) {
            ("and" | "or" | "xor" | "not", Ty::Pred) => self.logic(i),
            ("and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "popc" | "clz" | "brev" | "bfind", _) => {
                let amount = words.take("shiftamt");
                self.bits(i, if amount { "bfind.shiftamt" } else { i.name }, ty)
            }
            ("bfe" | "bfi" | "lop3" | "shf", _) => self.fields(i, words, ty),
            ("dp4a" | "dp2a", _) => self.dot(i, words, ty),
            ("vabsdiff4", Ty::U32) => {
                words.ignore(&["u32"]);
                let run = lanes::byte_differences(accumulates);
                let slots = self.slots(i, ty, &[ty, ty, ty])?;
                self.lanes(run, slots, Class::Integer);
                Ok(())
            }
            ("fns", Ty::B32) => {
                let slots = self.slots(i, ty, &[ty, Ty::B32, Ty::S32])?;
                self.lanes(lanes::nth_set(), slots, Class::Integer);
                Ok(())
            }
            _ if ty.is_float() => self.float(i, words, ty),
            _ => self.integer(i, words, ty),
        }
    }

    /// Slots of a destination and up to four sources.
    pub(super) fn slots(&mut self, i: &Instruction<'a>, d: Ty, types: &[Ty]) -> Result<Slots, LoadError> {
        if i.operands.len() != types.len() + 1 {
            return self.error(format!("{} operands where {} are expected", i.operands.len(), types.len() + 1));
        }
        let mut slots = Slots::default();
        let typed: Vec<Typed<'_, 'a>> = i.operands[1..].iter().zip(types.iter().copied()).collect();
        for (k, (operand, ty)) in typed.into_iter().enumerate() {
            let slot = self.source(operand, ty)?;
            *[&mut slots.a, &mut slots.b, &mut slots.c, &mut slots.e][k.min(3)] = slot;
        }
        slots.d = self.destination(&i.operands[0], d)?;
        Ok(slots)
    }

    fn logic(&mut self, i: &Instruction<'a>) -> Result<(), LoadError> {
        let run = self.known(lanes::combine(i.name))?;
        let wanted = if i.name == "not" { 2 } else { 3 };
        if i.operands.len() != wanted {
            return self.error(format!("{} operands where {wanted} are expected", i.operands.len()));
        }
        let (a, a_negated) = self.predicate(&i.operands[1])?;
        let (b, b_negated) = self.predicate(&i.operands[wanted - 1])?;
        if a_negated {
            return self.error("a negated first operand is not supported");
        }
        let d = self.destination(&i.operands[0], Ty::Pred)?;
        self.lanes(run, Slots { d, a, b, f: u16::from(b_negated), ..Slots::default() }, Class::Compare);
        Ok(())
    }

    fn bits(&mut self, i: &Instruction<'a>, name: &str, ty: Ty) -> Result<(), LoadError> {
        let run = self.known(bits2(name, ty))?;
        let slots = match i.name {
            "popc" | "clz" | "bfind" => self.slots(i, Ty::U32, &[ty])?,
            "not" | "cnot" | "brev" => self.slots(i, ty, &[ty])?,
            "shl" | "shr" => self.slots(i, ty, &[ty, Ty::U32])?,
            _ => self.slots(i, ty, &[ty, ty])?,
        };
        self.lanes(run, slots, Class::Integer);
        Ok(())
    }

    fn fields(&mut self, i: &Instruction<'a>, words: &mut Words<'a>, ty: Ty) -> Result<(), LoadError> {
        let run = match i.name {
            "bfi" | "lop3" => bits4(i.name, ty),
            "shf" => {
                let side = words.one_of(&["l", "r"]).unwrap_or_default();
                let mode = words.one_of(&["wrap", "clamp"]).unwrap_or_default();
                bits3(&format!("shf.{side}.{mode}"), ty)
            }
            _ => bits3(i.name, ty),
        };
        let run = self.known(run)?;
        let slots = match i.name {
            "bfe" => self.slots(i, ty, &[ty, Ty::U32, Ty::U32])?,
            "bfi" => self.slots(i, ty, &[ty, ty, Ty::U32, Ty::U32])?,
            "lop3" => self.slots(i, ty, &[ty, ty, ty, Ty::U32])?,
            _ => self.slots(i, ty, &[ty, ty, ty])?,
        };
        self.lanes(run, slots, Class::Integer);
        Ok(())
    }

    /// `dp4a.u32.s32`, `dp2a.lo.s32.s32`
    fn dot(&mut self, i: &Instruction<'a>, words: &mut Words<'a>, b: Ty) -> Result<(), LoadError> {
        let Some(a) = words.ty() else { return self.error("two types are expected") };
        let half = words.one_of(&["lo", "hi"]).map(|h| format!(".{h}")).unwrap_or_default();
        let run = self.known(lanes::dot(&format!("{}{half}", i.name), a, b))?;
        let slots = self.slots(i, Ty::B32, &[Ty::B32, Ty::B32, Ty::B32])?;
        self.lanes(run, slots, Class::Integer);
        Ok(())
    }

    fn integer(&mut self, i: &Instruction<'a>, words: &mut Words<'a>, ty: Ty) -> Result<(), LoadError> {
        if words.take("wide") {
            let add = i.name == "mad";
            let run = self.known(if add || i.name == "mul" { wide(ty, add) } else { None })?;
            let double = match ty.bytes() {
                2 => Ty::B32,
                _ => Ty::B64,
            };
            let types = [ty, ty, double];
            let slots = self.slots(i, double, &types[..if add { 3 } else { 2 }])?;
            self.lanes(run, slots, Class::Integer);
            return Ok(());
        }
        let half = words.one_of(&["lo", "hi"]).map(|h| format!(".{h}")).unwrap_or_default();
        let writes = words.take("cc");
        let reads = matches!(i.name, "addc" | "subc" | "madc");
        if writes || reads {
            let base = i.name.strip_suffix('c').filter(|_| reads).unwrap_or(i.name);
            return self.with_carry(i, &format!("{base}{half}"), ty, reads, writes);
        }
        let saturated = if words.take("sat") { ".sat" } else { "" };
        let name = format!("{}{half}{saturated}", i.name);
        let arity = i.operands.len().saturating_sub(1);
        let run = match arity {
            1 => integer1(&name, ty),
            2 => integer2(&name, ty),
            3 => integer3(&name, ty),
            _ => None,
        };
        let run = self.known(run)?;
        let slots = self.slots(i, ty, &[ty, ty, ty][..arity])?;
        self.lanes(run, slots, Class::Integer);
        Ok(())
    }

    fn with_carry(
        &mut self,
        i: &Instruction<'a>,
        name: &str,
        ty: Ty,
        reads: bool,
        writes: bool,
    ) -> Result<(), LoadError> {
        let run = self.known(carry(name, ty))?;
        let flag = match self.carry_flag {
            Some(flag) => flag,
            None => self.fresh(Ty::Pred)?,
        };
        self.carry_flag = Some(flag);
        let mut slots = self.slots(i, ty, &[ty, ty, ty][..if name.starts_with("mad") { 3 } else { 2 }])?;
        slots.e = flag;
        slots.f = if reads { READS } else { 0 } | if writes { WRITES } else { 0 };
        self.lanes(run, slots, Class::Integer);
        Ok(())
    }

    fn float(&mut self, i: &Instruction<'a>, words: &mut Words<'a>, ty: Ty) -> Result<(), LoadError> {
        let round = words.round();
        let options = Float {
            round: round.unwrap_or_default(),
            ftz: words.take("ftz"),
            sat: words.take("sat"),
            relu: words.take("relu"),
        };
        words.ignore(&["approx", "full"]);
        let name = match (i.name, words.take("NaN")) {
            ("min", true) => "min.nan",
            ("max", true) => "max.nan",
            // Without a rounding of its own, mad is fma on every target that is left.
            ("mad", _) => "fma",
            (name, _) => name,
        };
        let arity = i.operands.len().saturating_sub(1);
        let run: Option<LaneFn> = match arity {
            1 => float1(name, ty, options),
            2 => float2(name, ty, options),
            3 => float3(name, ty, options),
            _ => None,
        };
        let run = self.known(run)?;
        let mut slots = self.slots(i, ty, &[ty, ty, ty][..arity])?;
        slots.f = options.packed();
        self.lanes(run, slots, Class::Float(float_op(name), precision(ty)));
        Ok(())
    }
}

fn float_op(name: &str) -> FloatOp {
    match name {
        "add" | "sub" => FloatOp::Add,
        "mul" => FloatOp::Mul,
        "fma" => FloatOp::Fma,
        "div" | "rcp" => FloatOp::Div,
        "min" | "max" | "min.nan" | "max.nan" | "neg" | "abs" | "copysign" => FloatOp::Minor,
        _ => FloatOp::Special,
    }
}

fn precision(ty: Ty) -> Precision {
    match ty {
        Ty::F16 | Ty::Bf16 => Precision::Half,
        Ty::F16x2 | Ty::Bf16x2 => Precision::Half2,
        Ty::F64 => Precision::Double,
        _ => Precision::Single,
    }
}
