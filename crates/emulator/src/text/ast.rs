//! What stands in a PTX text, with names unresolved. Text is borrowed from the source.

use super::place::Place;
use crate::types::{Space, Ty};
use std::collections::BTreeMap;

/// A text.
#[derive(Debug, Default)]
pub(crate) struct Ast<'a> {
    /// Of the language: major, minor.
    pub(crate) version: (u32, u32),
    /// `sm_80`.
    pub(crate) target: &'a str,
    /// Variables at module scope.
    pub(crate) variables: Vec<Variable<'a>>,
    /// Names of source files by their numbers, from `.file`.
    pub(crate) files: BTreeMap<u64, &'a str>,
    /// Kernels and functions.
    pub(crate) functions: Vec<Function<'a>>,
}

/// A declared variable or parameter; registers are [`Registers`].
#[derive(Clone, Debug)]
pub(crate) struct Variable<'a> {
    pub(crate) space: Space,
    pub(crate) name: &'a str,
    pub(crate) ty: Ty,
    /// Bytes of the whole; `None` for an array whose length the launch decides.
    pub(crate) bytes: Option<u64>,
    /// A power of two.
    pub(crate) align: u64,
    /// Element values, zero-extended; shorter than the variable is filled up with zeros.
    pub(crate) values: Vec<u64>,
    /// Values that are addresses: the element, the name, an offset.
    pub(crate) symbols: Vec<(usize, &'a str, i64)>,
    pub(crate) place: Place,
}

/// Declared registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers<'a> {
    pub(crate) ty: Ty,
    /// Elements of a vector register, else one.
    pub(crate) width: u8,
    pub(crate) name: &'a str,
    /// `%r<8>` declares `%r0` to `%r7`.
    pub(crate) count: Option<u64>,
    pub(crate) place: Place,
}

/// A kernel or function.
#[derive(Debug)]
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    pub(crate) is_entry: bool,
    /// Where a function leaves its results.
    pub(crate) returns: Vec<Variable<'a>>,
    pub(crate) params: Vec<Variable<'a>>,
    /// Performance directives with their numbers: `maxntid 16, 16, 1`.
    pub(crate) directives: Vec<(&'a str, Vec<u64>)>,
    /// `None` for a prototype.
    pub(crate) body: Option<Vec<Statement<'a>>>,
    pub(crate) place: Place,
}

/// A statement of a body.
#[derive(Debug)]
pub(crate) enum Statement<'a> {
    Label(&'a str, Place),
    Registers(Registers<'a>),
    Variable(Variable<'a>),
    /// `.branchtargets`, named by the label before it.
    Targets(Vec<&'a str>),
    Instruction(Instruction<'a>),
    /// `.loc`: where what follows stands in the source.
    Location(Location),
    Block(Vec<Statement<'a>>),
}

/// File, line and column of a source.
pub(crate) type SourcePlace = [u64; 3];

/// A line of the source, and where the function that it stands in was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) at: SourcePlace,
    pub(crate) inlined_at: Option<SourcePlace>,
}

/// An instruction.
#[derive(Clone, Debug)]
pub(crate) struct Instruction<'a> {
    /// A predicate, and whether it is negated.
    pub(crate) guard: Option<(&'a str, bool)>,
    /// The first word, `ld`.
    pub(crate) name: &'a str,
    /// The words behind its dots, `global`, `f32`.
    pub(crate) modifiers: Vec<&'a str>,
    pub(crate) operands: Vec<Operand<'a>>,
    pub(crate) place: Place,
}

impl Instruction<'_> {
    /// The name with all modifiers.
    pub(crate) fn opcode(&self) -> String {
        let mut out = self.name.to_owned();
        for m in &self.modifiers {
            out.push('.');
            out.push_str(m);
        }
        out
    }
}

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand<'a> {
    Name(&'a str),
    /// `%tid.x`.
    Component(&'a str, &'a str),
    /// `!%p1`.
    Not(&'a str),
    /// `name+8`.
    Offset(&'a str, i64),
    /// `%p1|%p2`.
    Pair(&'a str, &'a str),
    Int(u64),
    F32(u32),
    F64(u64),
    /// `{a, b}`.
    Vector(Vec<Operand<'a>>),
    /// `[base+offset]`, `[base, {x, y}]`.
    Address(Vec<Operand<'a>>),
    /// `(a, b)`.
    Group(Vec<Operand<'a>>),
}

impl Operand<'_> {
    /// A number in a type; `None` for what is none. An integer where a float is expected is converted; otherwise its low
    /// bits are taken.
    pub(crate) fn bits(&self, ty: Ty) -> Option<u64> {
        Some(match (self, ty) {
            (Self::Int(value), Ty::F32) => u64::from((*value as i64 as f32).to_bits()),
            (Self::Int(value), Ty::F64) => (*value as i64 as f64).to_bits(),
            (Self::Int(value), _) if ty.bytes() >= 8 => *value,
            (Self::Int(value), _) => value & ((1 << (8 * ty.bytes())) - 1),
            (Self::F32(bits), Ty::F64) => f64::from(f32::from_bits(*bits)).to_bits(),
            (Self::F32(bits), _) => u64::from(*bits),
            (Self::F64(bits), _) if ty.bytes() >= 8 => *bits,
            (Self::F64(bits), _) => u64::from((f64::from_bits(*bits) as f32).to_bits()),
            _ => return None,
        })
    }
}
