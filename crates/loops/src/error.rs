//! What can be wrong with a kernel of loops.

/// A fault of a kernel, of a transformation, or of sizes. Names the loop, array or size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoopError {
    /// A name that nothing has.
    #[error("{what} {name:?} is not known to the kernel {kernel:?}")]
    Unknown {
        /// The kernel.
        kernel: String,
        /// What was looked for: `loop`, `array`, `local`, `size`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A name that is taken.
    #[error("{what} {name:?} is there twice in the kernel {kernel:?}")]
    Twice {
        /// The kernel.
        kernel: String,
        /// What has the name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A quotient that has a remainder.
    #[error("{of}: {value} is not divisible by {by}")]
    Indivisible {
        /// The loop, array or size.
        of: String,
        /// What is divided.
        value: i64,
        /// By what.
        by: i64,
    },
    /// A size or extent out of range.
    #[error("{of} is {value}: it must be within {min}..={max}")]
    Range {
        /// The loop, array or size.
        of: String,
        /// Its value.
        value: i64,
        /// The least.
        min: i64,
        /// The most.
        max: i64,
    },
    /// An index that leaves its array.
    #[error("array {array:?}: index {dim} runs over {low}..={high}, it has {extent} elements")]
    Bounds {
        /// The array.
        array: String,
        /// Which dimension, from zero.
        dim: usize,
        /// The least index.
        low: i64,
        /// The largest.
        high: i64,
        /// The extent of the dimension.
        extent: i64,
    },
    /// An element type or operation that no lowering knows.
    #[error("{what} is not supported for {of}")]
    Unsupported {
        /// What is asked for.
        what: String,
        /// Of what.
        of: String,
    },
    /// A loop, array or local that cannot be handled as asked.
    #[error("{of}: {message}")]
    Misused {
        /// Which: `loop "k"`.
        of: String,
        /// Why not.
        message: String,
    },
}

impl LoopError {
    pub(crate) fn of_loop(index: &str, message: impl Into<String>) -> Self {
        Self::Misused { of: format!("loop {index:?}"), message: message.into() }
    }

    pub(crate) fn of_array(name: &str, message: impl Into<String>) -> Self {
        Self::Misused { of: format!("array {name:?}"), message: message.into() }
    }

    pub(crate) fn overflow(of: impl Into<String>) -> Self {
        Self::Misused { of: of.into(), message: "the sizes overflow 64 bits".to_owned() }
    }
}
