//! Arithmetic and logic.

use super::Lowering;
use super::words::Words;
use crate::counts::{Class, FloatOp, Precision};
use crate::lanes::{self, Flag, Float, LaneOp, Slots};
use crate::module::LoadError;
use crate::text::ast::Instruction;
use crate::types::Ty;

impl<'a> Lowering<'a> {
    pub(super) fn arithmetic(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        // The one modifier that stands behind the types.
        let accumulates = i.name == "vabsdiff4" && words.take("add");
        let Some(ty) = words.ty() else { return self.error("this instruction is not supported") };
        let op = match (i.name, ty) {
            ("and" | "or" | "xor" | "not", Ty::Pred) => return self.logic(i),
            _ if ty.is_float() => return self.float(i, words, ty),
            ("dp4a" | "dp2a" | "vabsdiff4", b) => {
                let Some(a) = words.ty() else { return self.error("two types are expected") };
                words.ignore(&["u32"]);
                let name = words.joined(i.name);
                lanes::dot(&if accumulates { name + ".add" } else { name }, a, b)
            }
            _ => {
                let name = words.joined(i.name);
                let is_read = matches!(i.name, "addc" | "subc" | "madc");
                let is_written = name.ends_with(".cc");
                match is_read || is_written {
                    true => self.with_carry(name.trim_end_matches(".cc"), ty, is_read, is_written)?,
                    false => lanes::bits(&name, ty).or_else(|| lanes::integer(&name, ty)),
                }
            }
        };
        self.apply(i, op, Class::Integer)
    }

    /// An instruction whose operands are those of a lane function.
    pub(super) fn apply(&mut self, i: &Instruction<'a>, op: Option<LaneOp>, class: Class) -> Result<(), LoadError> {
        let op = self.known(op)?;
        self.expect_operands(i, op.from.len() + 1)?;
        let mut slots = Slots::default();
        for ((slot, operand), ty) in slots.from.iter_mut().zip(&i.operands[1..]).zip(&op.from) {
            *slot = self.source(operand, *ty)?;
        }
        slots.d = self.destination(&i.operands[0], op.to)?;
        self.lanes(op, slots, class);
        Ok(())
    }

    pub(super) fn expect_operands(&self, i: &Instruction<'a>, wanted: usize) -> Result<(), LoadError> {
        match i.operands.len() {
            found if found == wanted => Ok(()),
            found => self.error(format!("{found} operands where {wanted} are expected")),
        }
    }

    fn logic(&mut self, i: &Instruction<'a>) -> Result<(), LoadError> {
        let wanted = if i.name == "not" { 2 } else { 3 };
        self.expect_operands(i, wanted)?;
        let (a, a_negated) = self.predicate(&i.operands[1])?;
        let (b, b_negated) = self.predicate(&i.operands[wanted - 1])?;
        if a_negated {
            return self.error("a negated first operand is not supported");
        }
        let d = self.destination(&i.operands[0], Ty::Pred)?;
        self.combine(i.name, d, (a, (b, b_negated)), Class::Compare)
    }

    /// A boolean operation on predicates.
    pub(super) fn combine(
        &mut self,
        name: &str,
        d: u16,
        (a, (b, negated)): (u16, (u16, bool)),
        class: Class,
    ) -> Result<(), LoadError> {
        let op = self.known(lanes::combine(name, negated))?;
        self.lanes(op, Slots::new(d, [a, b]), class);
        Ok(())
    }

    fn with_carry(&mut self, name: &str, ty: Ty, is_read: bool, is_written: bool) -> Result<Option<LaneOp>, LoadError> {
        let slot = match self.carry_flag {
            Some(flag) => flag,
            None => self.fresh(Ty::Pred)?,
        };
        self.carry_flag = Some(slot);
        let name = if is_read { name.replacen('c', "", 1) } else { name.to_owned() };
        Ok(lanes::carry(&name, ty, Flag { slot, is_read, is_written }))
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
        // Without a rounding of its own, mad is fma on every target that is left.
        let name = words.joined(if i.name == "mad" { "fma" } else { i.name });
        self.apply(i, lanes::float(&name, ty, options), Class::Float(float_op(&name), precision(ty)))
    }
}

fn float_op(name: &str) -> FloatOp {
    match name {
        "add" | "sub" => FloatOp::Add,
        "mul" => FloatOp::Mul,
        "fma" => FloatOp::Fma,
        "div" | "rcp" => FloatOp::Div,
        "min" | "max" | "min.NaN" | "max.NaN" | "neg" | "abs" | "copysign" => FloatOp::Minor,
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
