//! Registers, their types, and what an instruction can name.

use std::fmt;

/// What a register holds, as far as PTX tells registers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// A predicate.
    Pred,
    /// 16 bits: half floats too.
    B16,
    /// 32 bits: integers, pairs of half floats, shared addresses.
    B32,
    /// 64 bits: integers and global addresses.
    B64,
    /// binary32.
    F32,
    /// binary64.
    F64,
}

impl Class {
    /// Every class, in the order of declarations.
    pub const ALL: [Self; 6] = [Self::Pred, Self::B16, Self::B32, Self::B64, Self::F32, Self::F64];

    /// The prefix of register names.
    pub const fn prefix(self) -> &'static str {
        self.names().0
    }

    /// The type in declarations.
    pub const fn declared(self) -> &'static str {
        self.names().1
    }

    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Pred => ("%p", ".pred"),
            Self::B16 => ("%h", ".b16"),
            Self::B32 => ("%r", ".b32"),
            Self::B64 => ("%rd", ".b64"),
            Self::F32 => ("%f", ".f32"),
            Self::F64 => ("%fd", ".f64"),
        }
    }
}

/// The type an instruction gives an operand.
#[expect(missing_docs, reason = "the names are those of PTX")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    Pred,
    B8,
    B16,
    B32,
    B64,
    U32,
    U64,
    S32,
    S64,
    F16,
    Bf16,
    F16x2,
    Bf16x2,
    F32,
    F64,
}

impl Type {
    /// The class of registers that hold it.
    pub const fn class(self) -> Class {
        self.facts().0
    }

    /// Bytes in memory; a predicate has none.
    pub const fn bytes(self) -> u32 {
        self.facts().1
    }

    /// The suffix in PTX, with its dot.
    pub const fn suffix(self) -> &'static str {
        self.facts().2
    }

    const fn facts(self) -> (Class, u32, &'static str) {
        match self {
            Self::Pred => (Class::Pred, 0, ".pred"),
            // No register is so narrow: loads fill the rest with zeros, stores leave it.
            Self::B8 => (Class::B16, 1, ".b8"),
            Self::B16 => (Class::B16, 2, ".b16"),
            Self::B32 => (Class::B32, 4, ".b32"),
            Self::B64 => (Class::B64, 8, ".b64"),
            Self::U32 => (Class::B32, 4, ".u32"),
            Self::U64 => (Class::B64, 8, ".u64"),
            Self::S32 => (Class::B32, 4, ".s32"),
            Self::S64 => (Class::B64, 8, ".s64"),
            Self::F16 => (Class::B16, 2, ".f16"),
            Self::Bf16 => (Class::B16, 2, ".bf16"),
            Self::F16x2 => (Class::B32, 4, ".f16x2"),
            Self::Bf16x2 => (Class::B32, 4, ".bf16x2"),
            Self::F32 => (Class::F32, 4, ".f32"),
            Self::F64 => (Class::F64, 8, ".f64"),
        }
    }

    /// Whether arithmetic on it rounds.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F16x2 | Self::Bf16x2 | Self::F32 | Self::F64)
    }
}

/// A virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg {
    /// What it holds.
    pub class: Class,
    /// Its number within the class.
    pub id: u32,
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.class.prefix(), self.id)
    }
}

/// A dimension of blocks and grids.
#[expect(missing_docs, reason = "the names are those of PTX")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axis {
    X,
    Y,
    Z,
}

impl Axis {
    /// `x`, `y` or `z`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X => "x",
            Self::Y => "y",
            Self::Z => "z",
        }
    }
}

/// A special register. Blocks are one-dimensional, so a thread has one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Special {
    /// Index of the thread in its block.
    Tid,
    /// Index of the block.
    Ctaid(Axis),
    /// Number of blocks.
    Nctaid(Axis),
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tid => f.write_str("%tid.x"),
            Self::Ctaid(axis) => write!(f, "%ctaid.{}", axis.name()),
            Self::Nctaid(axis) => write!(f, "%nctaid.{}", axis.name()),
        }
    }
}

/// What an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// An integer.
    Int(i64),
    /// A float, printed exactly in the type of the instruction.
    Float(f64),
    /// A special register.
    Special(Special),
    /// The address of the block's shared memory.
    Shared,
    /// The address of the module's tickets.
    Tickets,
}

macro_rules! operand_from {
    ($($ty:ty: |$x:ident| $operand:expr;)*) => {$(
        impl From<$ty> for Operand {
            fn from($x: $ty) -> Self {
                $operand
            }
        }
    )*};
}

operand_from! {
    Reg: |reg| Self::Reg(reg);
    i64: |value| Self::Int(value);
    u32: |value| Self::Int(value.into());
    Special: |special| Self::Special(special);
}
