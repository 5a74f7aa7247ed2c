//! Element types.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An element type of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// IEEE 754 binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// Complex of two binary32.
    C32,
    /// Complex of two binary64.
    C64,
    /// Signed 8-bit integer.
    I8,
    /// Signed 32-bit integer.
    I32,
}

impl DType {
    /// Every element type, in declaration order.
    pub const ALL: [Self; 8] = [Self::F16, Self::Bf16, Self::F32, Self::F64, Self::C32, Self::C64, Self::I8, Self::I32];

    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            Self::I8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
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

    /// The name used in inputs and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::C32 => "c32",
            Self::C64 => "c64",
            Self::I8 => "i8",
            Self::I32 => "i32",
        }
    }

    /// Unit round-off of the type that one component is rounded to (2^-p), or zero for integers.
    pub fn unit_roundoff(self) -> f64 {
        match self {
            Self::F16 => 2f64.powi(-11),
            Self::Bf16 => 2f64.powi(-8),
            Self::F32 | Self::C32 => 2f64.powi(-24),
            Self::F64 | Self::C64 => 2f64.powi(-53),
            Self::I8 | Self::I32 => 0.0,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no element type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown dtype {0:?}: expected one of f16, bf16, f32, f64, c32, c64, i8, i32")]
pub struct UnknownDType(pub String);

impl FromStr for DType {
    type Err = UnknownDType;

    fn from_str(text: &str) -> Result<Self, UnknownDType> {
        Self::ALL.into_iter().find(|d| d.name() == text).ok_or_else(|| UnknownDType(text.into()))
    }
}
