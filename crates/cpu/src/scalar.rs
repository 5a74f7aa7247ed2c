//! Element types and the classes of the scalars alpha and beta that code is specialised to.

use serde::{Deserialize, Serialize};

/// Element type of a GEMM on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Float {
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl Float {
    /// Size of one element in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// Class of a scalar factor: generated code depends on the class, never on the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Factor {
    /// Exactly 0.
    Zero,
    /// Exactly 1.
    One,
    /// Anything else, read at run time.
    Other,
}

impl Factor {
    /// The class of `value`; NaN is [`Factor::Other`].
    #[must_use]
    pub fn of(value: f64) -> Self {
        if value == 0.0 {
            Self::Zero
        } else if value == 1.0 {
            Self::One
        } else {
            Self::Other
        }
    }
}
