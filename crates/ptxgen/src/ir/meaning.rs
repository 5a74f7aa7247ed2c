//! What registers mean, found by following instructions.

use super::index::{Index, Sym};
use super::inst::{Arith, Inst};
use super::reg::{Class, Operand, Reg, Special};
use super::tree::{Comparison, Cond, Param};
use crate::print::TICKETS;
use std::collections::{BTreeMap, HashMap};

/// Meanings of the registers that have been written so far.
///
/// The builder follows instructions as they are emitted and writes what it finds into the tree; the verifier follows the
/// finished tree again.
#[derive(Clone, Debug, Default)]
pub struct Meanings {
    integers: HashMap<Reg, Index>,
    predicates: HashMap<Reg, Cond>,
    /// Claims about registers that are written more than once.
    pub carried: BTreeMap<Reg, Index>,
}

impl Meanings {
    /// Nothing written yet, with claims about registers that are written more than once.
    pub fn with_claims(carried: BTreeMap<Reg, Index>) -> Self {
        Self { carried, ..Self::default() }
    }

    /// What an operand means as an integer.
    pub fn of(&self, operand: Operand) -> Index {
        match operand {
            Operand::Int(i) => i.into(),
            Operand::Special(Special::Tid) => Sym::Tid.into(),
            Operand::Special(Special::Ctaid(axis)) => Sym::Ctaid(axis).into(),
            Operand::Special(Special::Nctaid(axis)) => Sym::Nctaid(axis).into(),
            Operand::Shared => Sym::Shared.into(),
            Operand::Tickets => Index::param(TICKETS),
            Operand::Reg(reg) => self.integers.get(&reg).cloned().unwrap_or_else(|| opaque(reg)),
            Operand::Float(_) => Sym::Opaque(u32::MAX).into(),
        }
    }

    /// What a predicate means.
    pub fn cond(&self, pred: Reg) -> Cond {
        let unknown = || {
            let left = opaque(pred);
            Cond(vec![Comparison { left, cmp: super::inst::Compare::Ne, right: 0.into() }])
        };
        self.predicates.get(&pred).cloned().unwrap_or_else(unknown)
    }

    /// Follows one instruction.
    pub fn step(&mut self, inst: &Inst, params: &[Param]) {
        if let Inst::Setp { cmp, a, b, dst, and, .. } = inst {
            let here = Cond(vec![Comparison { left: self.of(*a), cmp: *cmp, right: self.of(*b) }]);
            let cond = and.map_or_else(|| here.clone(), |and| self.cond(and).and(&here));
            self.predicates.insert(*dst, cond);
            return;
        }
        let value = self.value(inst, params);
        inst.writes(|reg, _| {
            if matches!(reg.class, Class::B32 | Class::B64) {
                let meaning = self.carried.get(&reg).cloned().or_else(|| value.clone());
                self.integers.insert(reg, meaning.unwrap_or_else(|| opaque(reg)));
            }
        });
    }

    /// What an instruction computes, as an integer, claims about its destination aside.
    pub fn value(&self, inst: &Inst, params: &[Param]) -> Option<Index> {
        match inst {
            Inst::Mov { src, .. } => Some(self.of(*src)),
            Inst::LdParam { param, .. } => params.get(*param).map(|p| Index::param(&p.name)),
            Inst::ToGlobal { src, .. } | Inst::Cvt { src, .. } => Some(self.of((*src).into())),
            Inst::Arith { op, a, b, .. } => self.arith(*op, &self.of(*a), &self.of(*b)),
            Inst::Mad { a, b, c, .. } => Some(self.of(*a).times(&self.of(*b)).plus(&self.of(*c))),
            _ => None,
        }
    }

    fn arith(&self, op: Arith, a: &Index, b: &Index) -> Option<Index> {
        let constant = b.constant().filter(|c| *c >= 0);
        match op {
            Arith::Add => Some(a.plus(b)),
            Arith::Sub => Some(a.minus(b)),
            Arith::Mul | Arith::MulWide => Some(a.times(b)),
            Arith::Div => Some(a.quotient(b)),
            Arith::Rem => match constant {
                Some(c) if c > 0 => Some(a.rem(c)),
                _ => Some(a.minus(&a.quotient(b).times(b))),
            },
            Arith::Min => Some(a.smaller(b)),
            Arith::Max => Some(a.larger(b)),
            Arith::And => constant.filter(|c| (c + 1).count_ones() == 1).map(|c| a.rem(c + 1)),
            Arith::Shl => constant.filter(|c| *c < 32).map(|c| a.times(&(1i64 << c).into())),
            Arith::Shr => constant.filter(|c| *c < 32).map(|c| a.floor(1 << c)),
            Arith::Xor => Some(a.xor(b)),
            Arith::Or => None,
        }
    }
}

fn opaque(reg: Reg) -> Index {
    let class = Class::ALL.iter().position(|c| *c == reg.class).unwrap_or(0) as u32;
    Sym::Opaque(reg.id * Class::ALL.len() as u32 + class).into()
}
