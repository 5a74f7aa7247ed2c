//! Element types.

use tilewright_core::dtype::DType;

/// Element type of a GEMM on the host.
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
        if dtype == DType::F64 { Self::F64 } else { Self::F32 }
    }

    /// Size of one element in bytes.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}
