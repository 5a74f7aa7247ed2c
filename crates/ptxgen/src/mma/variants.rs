//! Which instruction multiplies elements of a type, and how its fragments are read from shared memory: one place for all that the
//! instruction set has in one way and not in another.

use crate::ir::{MmaKind, Ties};
use crate::target::Target;
use tilewright_core::computation::InputError;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_ops::gemm::{Accuracy, GemmInput};

/// How a fragment is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetch {
    /// `ldmatrix`: four matrices of eight rows of 16 bytes at once.
    Matrix,
    /// `ldmatrix.trans`: the same, with rows and columns of its 16-bit elements exchanged.
    Transposed,
    /// One element for each lane and register.
    Plain,
    /// Words of four rows at four steps, whose bytes are exchanged in registers: see [`super::transpose`].
    Bytes,
}

impl Fetch {
    /// Of operands of so many bytes that are contiguous along the reduction, or across it.
    pub(super) const fn of(bytes: u32, along_k: bool) -> Self {
        match (bytes, along_k) {
            (8, _) => Self::Plain,
            (_, true) => Self::Matrix,
            (2, false) => Self::Transposed,
            (1, false) => Self::Bytes,
            (_, false) => Self::Plain,
        }
    }

    /// Bytes of a row that are read together, and stay together where pieces of rows are permuted: rows of a matrix, or what four
    /// lanes of 8 bytes, or eight of 4, read side by side.
    pub(super) const fn grain(self) -> u32 {
        match self {
            Self::Matrix | Self::Transposed => 16,
            Self::Plain | Self::Bytes => 32,
        }
    }
}

/// The same in the language of rules: bytes that stay together, by the size of an element and the word for `along_k`.
pub(super) fn grain(along_k: &str) -> String {
    format!("32 if element == 8 or (element in [1, 4] and not ({along_k})) else 16")
}

/// What is multiplied of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiplied {
    /// The element as it lies in memory.
    Whole,
    /// A binary32 rounded to tf32.
    Rounded,
    /// Two parts of a binary32: the number rounded to tf32, and what that left, rounded. Three of the four products are added, small ones
    /// first. Markidis, Der Chien, Laure, Peng and Vetter, *NVIDIA tensor core programmability, performance and precision*, 2018, split
    /// operands so; what the products of such parts are off by is in `tilewright_ops::gemm::Accuracy`.
    Split,
}

impl Multiplied {
    /// What an input allows.
    pub(super) fn of(input: &GemmInput) -> Self {
        match input.accuracy {
            // There are no complex products here.
            Accuracy::Full | Accuracy::ThreeM => Self::Whole,
            Accuracy::Tf32 => Self::Rounded,
            Accuracy::ThreeTf32 => Self::Split,
        }
    }

    /// The parts of both factors, larger ones first, that products are made of, in the order that they are added in.
    pub(super) const fn products(self) -> &'static [(usize, usize)] {
        match self {
            Self::Whole | Self::Rounded => &[(0, 0)],
            Self::Split => &[(1, 0), (0, 1), (0, 0)],
        }
    }
}

/// First compute capability that rounds to tf32 in one instruction.
const EVEN_TF32: u32 = 90;

/// How numbers are rounded to tf32 that are half-way between two: as the target does it soonest.
pub(super) fn ties(target: Target) -> Ties {
    if target.sm() < EVEN_TF32 { Ties::Away } else { Ties::Even }
}

/// First compute capability whose f64 instruction is 16 rows high and 16 deep.
pub(super) const DEEP_F64: u32 = 90;

/// The instruction for operands of a type; types that no code is for are refused before.
pub(super) fn kind(dtype: DType, target: Target) -> MmaKind {
    match dtype {
        DType::Bf16 => MmaKind::Bf16,
        // What there is of binary32.
        DType::Tf32 | DType::F32 => MmaKind::Tf32,
        DType::F64 if target.sm() >= DEEP_F64 => MmaKind::F64Deep,
        DType::F64 => MmaKind::F64,
        DType::I8 => MmaKind::S8,
        _ => MmaKind::F16,
    }
}

const fn types(operand: DType, accumulator: DType, output: DType) -> ElementTypes {
    ElementTypes { operand, accumulator, output }
}

/// Element types that there is code for. Sums of 16 bits are kept in 32, which is more than was asked for.
pub(super) const TYPES: [ElementTypes; 10] = [
    types(DType::F16, DType::F16, DType::F16),
    types(DType::Bf16, DType::Bf16, DType::Bf16),
    types(DType::F16, DType::F32, DType::F16),
    types(DType::F16, DType::F32, DType::F32),
    types(DType::Bf16, DType::F32, DType::Bf16),
    types(DType::Bf16, DType::F32, DType::F32),
    types(DType::Tf32, DType::F32, DType::F32),
    types(DType::F32, DType::F32, DType::F32),
    types(DType::F64, DType::F64, DType::F64),
    types(DType::I8, DType::I32, DType::I32),
];

/// The types that code works in.
pub(super) fn worked_in(types: ElementTypes) -> ElementTypes {
    let accumulator = if types.accumulator.size() < 4 { DType::F32 } else { types.accumulator };
    ElementTypes { accumulator, ..types }
}

/// Refuses what there is no code for.
pub(super) fn accepts(input: &GemmInput) -> Result<(), InputError> {
    input.only_types(&TYPES)?;
    if input.dtype() == DType::F32 && input.accuracy == Accuracy::Full {
        let message = "full: matrix instructions read at most tf32 of f32, which accuracy=tf32 or 3xtf32 allows; \
                       gemm.simt multiplies f32 as it is";
        return Err(InputError::new("accuracy", message));
    }
    Ok(())
}
