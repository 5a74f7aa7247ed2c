//! Element types.

use tilewright_core::dtype::DType;

/// What vectors of a kernel on the host hold: numbers, or components of complex ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Float {
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl Float {
    /// The one of operands; the space has no point for others.
    pub(crate) fn of(dtype: DType) -> Self {
        if matches!(dtype, DType::F64 | DType::C64) { Self::F64 } else { Self::F32 }
    }

    /// Size of one element in bytes.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// What elements of operands are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Numbers {
    /// Of one number.
    #[default]
    Real,
    /// Of a real part and an imaginary one, side by side.
    Complex,
    /// The same, multiplied by three products of real numbers: of both parts, and of their sums.
    ThreeM,
    /// Of two integers of 16 bits, whose products are added to a sum of 32 bits.
    Pairs,
    /// Of four integers of 8 bits: those along vectors have signs, those across them are 128 more than what they stand for. What that
    /// adds to a sum is taken away beforehand, by a step that comes before the others along vectors.
    Quads,
    /// Of two bfloat16 numbers, whose products are added to a sum of binary32.
    Halves,
}

impl Numbers {
    /// Those of operands, for vectors that have instructions for narrow ones or not.
    pub(crate) fn of(dtype: DType, kind: Kind, native: bool) -> Self {
        match dtype {
            DType::C32 | DType::C64 if kind == Kind::ThreeM => Self::ThreeM,
            DType::C32 | DType::C64 => Self::Complex,
            DType::I8 if native => Self::Quads,
            DType::I8 => Self::Pairs,
            DType::Bf16 if native => Self::Halves,
            _ => Self::Real,
        }
    }

    /// Whether sums are integers.
    pub(crate) const fn are_integers(self) -> bool {
        matches!(self, Self::Pairs | Self::Quads)
    }

    /// Steps that come before the reduction's in a packed panel along vectors: what sums begin with.
    pub(crate) const fn head(self) -> usize {
        match self {
            Self::Quads => 1,
            Self::Real | Self::Complex | Self::ThreeM | Self::Pairs | Self::Halves => 0,
        }
    }

    /// Components of an element.
    pub(crate) const fn parts(self) -> usize {
        match self {
            Self::Real | Self::Pairs | Self::Quads | Self::Halves => 1,
            Self::Complex | Self::ThreeM => 2,
        }
    }

    /// Numbers of an element that is packed to be broadcast: of three products its parts and their sum.
    pub(crate) const fn packed_across(self) -> usize {
        if matches!(self, Self::ThreeM) { 3 } else { self.parts() }
    }
}

/// What operands lie in memory as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stored {
    /// What vectors hold.
    Same,
    /// 16-bit floating point, which becomes binary32 when it is packed or when vectors of it are loaded.
    Bf16,
    F16,
    /// 8-bit integers, which become pairs of 16-bit ones.
    I8,
    /// The same and bfloat16 as they are: neighbours along the reduction come together, as many as fill 32 bits.
    I8Quads,
    Bf16Pairs,
}

impl Stored {
    /// That of operands, for vectors that have instructions for narrow ones or not.
    pub(crate) fn of(dtype: DType, native: bool) -> Self {
        match dtype {
            DType::Bf16 if native => Self::Bf16Pairs,
            DType::I8 if native => Self::I8Quads,
            DType::Bf16 => Self::Bf16,
            DType::F16 => Self::F16,
            DType::I8 => Self::I8,
            _ => Self::Same,
        }
    }

    /// Steps of the reduction that a packed number takes.
    pub(crate) const fn group(self) -> usize {
        match self {
            Self::I8Quads => 4,
            Self::I8 | Self::Bf16Pairs => 2,
            Self::Same | Self::Bf16 | Self::F16 => 1,
        }
    }

    /// Bytes of an element, of what vectors hold one of 32 bits.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Same => 4,
            Self::Bf16 | Self::F16 | Self::Bf16Pairs => 2,
            Self::I8 | Self::I8Quads => 1,
        }
    }
}

/// Which of the kernels that share tiles, driver and parameters: each has a space of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Binary32 and binary64.
    #[default]
    Real,
    Complex,
    /// Complex numbers by three real products, where the accuracy that is asked for allows that.
    ThreeM,
    /// Operands of fewer bits than vectors compute with: converted or woven when they are packed or loaded, or read where they lie by
    /// instructions that multiply neighbours along the reduction.
    Narrow,
}

impl Kind {
    /// The one for operands of a type, at any accuracy.
    pub(crate) fn of(dtype: DType) -> Self {
        match (dtype.is_complex(), Stored::of(dtype, false)) {
            (true, _) => Self::Complex,
            (false, Stored::Same) => Self::Real,
            (false, _) => Self::Narrow,
        }
    }

    /// Bytes of an element as tiles read it.
    pub(crate) fn element(self, dtype: DType) -> usize {
        if self == Self::Narrow { Float::F32.bytes() } else { dtype.size() }
    }
}
