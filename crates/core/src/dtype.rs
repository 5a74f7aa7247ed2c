//! Element types.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

named! {
    /// An element type of a buffer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum DType {
        /// IEEE 754 binary16.
        F16 = "f16",
        /// bfloat16.
        Bf16 = "bf16",
        /// What tensor cores read of a binary32: eight bits of exponent, ten of fraction; kept in 32 bits.
        Tf32 = "tf32",
        /// IEEE 754 binary32.
        F32 = "f32",
        /// IEEE 754 binary64.
        F64 = "f64",
        /// Complex of two binary32.
        C32 = "c32",
        /// Complex of two binary64.
        C64 = "c64",
        /// Signed 8-bit integer.
        I8 = "i8",
        /// Signed 32-bit integer.
        I32 = "i32",
    }
}

impl DType {
    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            Self::I8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::Tf32 | Self::F32 | Self::I32 => 4,
            Self::F64 | Self::C32 => 8,
            Self::C64 => 16,
        }
    }

    /// Bytes that elements in anyone's memory are aligned to: those of one component.
    pub const fn align(self) -> usize {
        match self {
            Self::C32 | Self::C64 => self.size() / 2,
            real => real.size(),
        }
    }

    /// Whether it has an imaginary part.
    pub const fn is_complex(self) -> bool {
        matches!(self, Self::C32 | Self::C64)
    }

    /// Whether it holds integers.
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::I8 | Self::I32)
    }

    /// Unit round-off of the type that one component is rounded to (2^-p), or zero for integers.
    pub fn unit_roundoff(self) -> f64 {
        match self {
            Self::F16 | Self::Tf32 => 2f64.powi(-11),
            Self::Bf16 => 2f64.powi(-8),
            Self::F32 | Self::C32 => 2f64.powi(-24),
            Self::F64 | Self::C64 => 2f64.powi(-53),
            Self::I8 | Self::I32 => 0.0,
        }
    }
}

/// A name that is no element type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown dtype {0:?}: it is one of f16, bf16, tf32, f32, f64, c32, c64, i8 (s8), i32 (s32)")]
pub struct UnknownDType(pub String);

impl FromStr for DType {
    type Err = UnknownDType;

    fn from_str(text: &str) -> Result<Self, UnknownDType> {
        // Assemblers and libraries call signed integers so.
        let text = match text {
            "s8" => "i8",
            "s32" => "i32",
            other => other,
        };
        Self::by_name(text).ok_or_else(|| UnknownDType(text.into()))
    }
}
