//! Offsets of elements: sums of one product for each index, partial sums kept.

use crate::ir::{Arith, Builder, Inst, Operand, Reg, Space, Type};
use std::collections::HashMap;
use tilewright_loops::kernel::Array;
use tilewright_loops::{Affine, LoopError, Size};

/// What an index is at the moment.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// In a register.
    Reg(Reg),
    /// Written out.
    Const(i64),
}

/// A product: an index and its factor. Without an index the factor alone.
pub(super) type Term = (Option<&'static str>, Size);

/// An offset in elements.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    /// Products whose indices have values, in the order in which they got them.
    pub(super) terms: Vec<Term>,
    pub(super) constant: i64,
}

/// Values of sizes and indices, and what was computed of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Offsets {
    sizes: HashMap<Size, Reg>,
    open: Vec<(&'static str, Place)>,
    sums: HashMap<Vec<Term>, Reg>,
    /// Addresses that lie so many elements of so many bytes behind a base.
    addresses: HashMap<(Reg, i64, Vec<Term>), Reg>,
}

impl Offsets {
    pub(super) fn size(&mut self, name: &'static str, reg: Reg) {
        self.sizes.insert(Size::Named(name), reg);
    }

    pub(super) fn enter(&mut self, index: &'static str, place: Place) {
        self.open.push((index, place));
    }

    /// Forgets an index and all that depends on it.
    pub(super) fn leave(&mut self, index: &str) {
        self.open.retain(|(i, _)| *i != index);
        let without = |terms: &Vec<Term>| terms.iter().all(|(i, _)| *i != Some(index));
        self.sums.retain(|terms, _| without(terms));
        self.addresses.retain(|(.., terms), _| without(terms));
    }

    /// The offset of an element, as far as indices have values; `lane` is the value of one more.
    pub(super) fn sum(
        &self,
        array: &Array,
        at: &[Affine],
        lane: Option<(&'static str, i64)>,
    ) -> Result<Sum, LoopError> {
        let strides: Vec<Size> = (0..at.len()).map(|d| array.stride(d)).collect();
        let mut places = self.open.clone();
        places.extend(lane.map(|(index, value)| (index, Place::Const(value))));
        let mut fixed: Vec<i64> = at.iter().map(|a| a.constant).collect();
        let mut terms = Vec::new();
        for (index, place) in &places {
            let factors = at.iter().map(|a| a.factor(index));
            match place {
                Place::Const(value) => fixed.iter_mut().zip(factors).for_each(|(f, factor)| *f += factor * value),
                Place::Reg(_) => terms.push((Some(*index), weighted(&strides, factors)?)),
            }
        }
        let falls = || LoopError::Unsupported { what: "an index that falls".into(), of: array.name.to_owned() };
        if fixed.iter().any(|f| *f < 0) {
            return Err(falls());
        }
        let mut constant = 0;
        let mut symbolic = Vec::new();
        for (stride, value) in strides.iter().zip(&fixed) {
            match stride.constant() {
                Some(stride) => constant += stride * value,
                None => symbolic.push(stride.clone() * *value),
            }
        }
        let first = symbolic.into_iter().fold(Size::Const(0), |sum, s| sum + s);
        terms.insert(0, (None, first));
        terms.retain(|(_, factor)| factor.constant() != Some(0));
        Ok(Sum { terms, constant })
    }

    /// Whether an offset is a multiple of a power of two.
    pub(super) fn aligned(&self, sum: &Sum, to: i64, multiples: &[(&'static str, u32)]) -> bool {
        sum.constant % to == 0 && sum.terms.iter().all(|(_, factor)| multiple_of(factor, multiples) % to == 0)
    }

    /// A size in a register, or as it is.
    pub(super) fn extent(&mut self, b: &mut Builder, size: &Size) -> Operand {
        match size {
            Size::Const(c) => Operand::Int(*c),
            _ => self.sized(b, size).into(),
        }
    }

    fn sized(&mut self, b: &mut Builder, size: &Size) -> Reg {
        if let Some(reg) = self.sizes.get(size) {
            return *reg;
        }
        let reg = match size {
            Size::Const(c) => b.mov(Type::U32, *c),
            // Every name was entered with the parameters.
            Size::Named(_) => b.mov(Type::U32, 0i64),
            Size::Sum(x, y) => {
                let (x, y) = (self.sized(b, x), self.extent(b, y));
                b.arith(Arith::Add, Type::U32, x, y)
            }
            Size::Product(x, y) => {
                let (x, y) = match x.constant() {
                    Some(_) => (self.sized(b, y), self.extent(b, x)),
                    None => (self.sized(b, x), self.extent(b, y)),
                };
                match y {
                    Operand::Int(c) => b.scale(x, u32::try_from(c).unwrap_or(0)),
                    y => b.arith(Arith::Mul, Type::U32, x, y),
                }
            }
            Size::Quotient(x, by) => {
                let x = self.sized(b, x);
                b.div(x, u32::try_from(*by).unwrap_or(1))
            }
        };
        self.sizes.insert(size.clone(), reg);
        reg
    }

    /// A register with the sum; None for an empty one.
    pub(super) fn emit(&mut self, b: &mut Builder, terms: &[Term]) -> Option<Reg> {
        let ((index, factor), before) = terms.split_last()?;
        if let Some(reg) = self.sums.get(terms) {
            return Some(*reg);
        }
        let before = self.emit(b, before);
        let place = index.and_then(|index| self.open.iter().find(|(i, _)| *i == index));
        let reg = match place {
            Some((_, Place::Reg(i))) => {
                let i = *i;
                let c = before.map_or(Operand::Int(0), Operand::from);
                match self.extent(b, factor) {
                    Operand::Int(by) => b.scale_add(Some(i), u32::try_from(by).unwrap_or(0), c),
                    by => {
                        let dst = b.reg(Type::U32);
                        b.push(Inst::Mad { wide: false, ty: Type::U32, dst, a: i.into(), b: by, c });
                        dst
                    }
                }
            }
            _ => self.sized(b, factor),
        };
        self.sums.insert(terms.to_vec(), reg);
        Some(reg)
    }

    /// The address that lies so many elements behind a base.
    pub(super) fn address(&mut self, b: &mut Builder, (space, base): (Space, Reg), terms: &[Term], bytes: i64) -> Reg {
        let key = (base, bytes, terms.to_vec());
        if let Some(reg) = self.addresses.get(&key) {
            return *reg;
        }
        let reg = match (self.emit(b, terms), space) {
            (None, _) => base,
            (Some(offset), Space::Global) => b.mad_wide(offset, bytes, base),
            (Some(offset), Space::Shared) => b.scale_add(Some(offset), u32::try_from(bytes).unwrap_or(4), base),
        };
        self.addresses.insert(key, reg);
        reg
    }

    /// The value of an affine expression of indices, without strides.
    pub(super) fn value(
        &mut self,
        b: &mut Builder,
        at: &Affine,
        lane: Option<(&'static str, i64)>,
    ) -> Result<Operand, LoopError> {
        let plain = Array::shared("an index", tilewright_core::dtype::DType::F32, [i64::MAX]);
        let sum = self.sum(&plain, std::slice::from_ref(at), lane)?;
        Ok(match self.emit(b, &sum.terms) {
            None => Operand::Int(sum.constant),
            Some(reg) => b.add(Type::U32, reg, sum.constant).into(),
        })
    }
}

fn weighted(strides: &[Size], factors: impl Iterator<Item = i64>) -> Result<Size, LoopError> {
    let mut sum = Size::Const(0);
    for (stride, factor) in strides.iter().zip(factors) {
        if factor < 0 {
            return Err(LoopError::Unsupported { what: "an index that falls".into(), of: "an array".into() });
        }
        sum = sum + stride.clone() * factor;
    }
    Ok(sum)
}

/// A power of two, at most 16, that divides a size.
fn multiple_of(size: &Size, multiples: &[(&'static str, u32)]) -> i64 {
    match size {
        Size::Const(c) => 1 << c.trailing_zeros().min(4),
        Size::Named(name) => {
            multiples.iter().find(|(n, _)| n == name).map_or(1, |(_, of)| 1 << of.trailing_zeros().min(4))
        }
        Size::Sum(a, b) => multiple_of(a, multiples).min(multiple_of(b, multiples)),
        Size::Product(a, b) => (multiple_of(a, multiples) * multiple_of(b, multiples)).min(16),
        Size::Quotient(a, by) => (multiple_of(a, multiples) >> by.trailing_zeros().min(4)).max(1),
    }
}
