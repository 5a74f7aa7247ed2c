//! Which instruction multiplies elements of a type, and how its fragments are read from shared memory: one place for all that the
//! instruction set has in one way and not in another.

use crate::ir::MmaKind;
use crate::target::Target;
use tilewright_core::computation::InputError;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_ops::gemm::GemmInput;

/// How a fragment is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetch {
    /// `ldmatrix`: four matrices of eight rows of 16 bytes at once.
    Matrix,
    /// `ldmatrix.trans`: the same, with rows and columns of its 16-bit elements exchanged.
    Transposed,
    /// One element for each lane and register.
    Plain,
}

impl Fetch {
    /// Of operands of so many bytes that are contiguous along the reduction, or across it.
    pub(super) const fn of(bytes: u32, along_k: bool) -> Self {
        match (bytes, along_k) {
            (8, _) => Self::Plain,
            (_, true) => Self::Matrix,
            (2, false) => Self::Transposed,
            (_, false) => Self::Plain,
        }
    }

    /// Bytes of a row that are read together, and stay together where pieces of rows are permuted: rows of a matrix, or what four
    /// lanes of 8 bytes, or eight of 4, read side by side.
    pub(super) const fn grain(self) -> u32 {
        match self {
            Self::Matrix | Self::Transposed => 16,
            Self::Plain => 32,
        }
    }
}

/// The same in the language of rules: bytes that stay together, by the size of an element and the word for `along_k`.
pub(super) fn grain(along_k: &str) -> String {
    format!("32 if element == 8 or (element == 4 and not ({along_k})) else 16")
}

/// First compute capability whose f64 instruction is 16 rows high and 16 deep.
pub(super) const DEEP_F64: u32 = 90;

/// The instruction for operands of a type; types that no code is for are refused before.
pub(super) fn kind(dtype: DType, target: Target) -> MmaKind {
    match dtype {
        DType::Bf16 => MmaKind::Bf16,
        DType::Tf32 => MmaKind::Tf32,
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
pub(super) const TYPES: [ElementTypes; 9] = [
    types(DType::F16, DType::F16, DType::F16),
    types(DType::Bf16, DType::Bf16, DType::Bf16),
    types(DType::F16, DType::F32, DType::F16),
    types(DType::F16, DType::F32, DType::F32),
    types(DType::Bf16, DType::F32, DType::Bf16),
    types(DType::Bf16, DType::F32, DType::F32),
    types(DType::Tf32, DType::F32, DType::F32),
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
    if input.dtype() == DType::F32 {
        let message =
            "matrix instructions read at most tf32 of it: gemm.simt multiplies f32, dtype=tf32 is multiplied here";
        return Err(InputError::new("dtype", message));
    }
    input.only(&TYPES)?;
    let along_k = input.layout.a_transposed() && !input.layout.b_transposed();
    if input.dtype() == DType::I8 && !along_k {
        let message =
            format!("there is no code for {} of i8, whose fragments are read along the reduction: tn", input.layout);
        return Err(InputError::new("layout", message));
    }
    Ok(())
}
