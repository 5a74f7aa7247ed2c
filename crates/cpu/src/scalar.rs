//! Element types and the classes of the scalars alpha and beta that code is specialised to.

/// Element type of a GEMM on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Float {
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl Float {
    /// Size of one element in bytes.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// Class of a scalar factor: generated code depends on the class, never on the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Factor {
    /// Exactly 0.
    Zero,
    /// Exactly 1.
    One,
    /// Anything else, read at run time.
    Other,
}
