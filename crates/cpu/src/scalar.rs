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
    /// Of two integers of 16 bits, whose products are added to a sum of 32 bits.
    Pairs,
}

impl Numbers {
    /// Those of operands.
    pub(crate) fn of(dtype: DType) -> Self {
        match dtype {
            DType::C32 | DType::C64 => Self::Complex,
            DType::I8 => Self::Pairs,
            _ => Self::Real,
        }
    }

    /// Components of an element.
    pub(crate) const fn parts(self) -> usize {
        match self {
            Self::Real | Self::Pairs => 1,
            Self::Complex => 2,
        }
    }
}

/// What operands lie in memory as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stored {
    /// What vectors hold.
    Same,
    /// 16-bit floating point, which becomes binary32 when it is packed.
    Bf16,
    F16,
    /// 8-bit integers, which become pairs of 16-bit ones.
    I8,
}

impl Stored {
    /// That of operands.
    pub(crate) fn of(dtype: DType) -> Self {
        match dtype {
            DType::Bf16 => Self::Bf16,
            DType::F16 => Self::F16,
            DType::I8 => Self::I8,
            _ => Self::Same,
        }
    }

    /// Steps of the reduction that a packed number takes.
    pub(crate) const fn group(self) -> usize {
        match self {
            Self::I8 => 2,
            Self::Same | Self::Bf16 | Self::F16 => 1,
        }
    }

    /// Bytes of an element, of what vectors hold one of 32 bits.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Same => 4,
            Self::Bf16 | Self::F16 => 2,
            Self::I8 => 1,
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
    /// Operands of fewer bits than vectors compute with: always packed, and converted on the way.
    Narrow,
}

impl Kind {
    /// The one for operands of a type.
    pub(crate) fn of(dtype: DType) -> Self {
        match (dtype.is_complex(), Stored::of(dtype)) {
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
