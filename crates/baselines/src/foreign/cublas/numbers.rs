//! How cuBLAS calls the numbers of a product: the enumerations of `library_types.h` and `cublas_api.h`, unchanged from release 11 to 13.

use tilewright_core::dtype::DType;
use tilewright_core::element::F16;
use tilewright_ops::gemm::{Accuracy, GemmInput};

/// What is called for a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    /// `cudaDataType_t` of A and B, and of C.
    pub(super) operand: u32,
    pub(super) output: u32,
    /// `cublasComputeType_t`.
    pub(super) compute: u32,
    /// What alpha and beta are read as.
    scale: DType,
}

impl Numbers {
    /// Of an input whose types are among [`crate::kernel::ON_DEVICES`]. Where the caller allows tf32 it is taken, as by whoever calls the
    /// library so; three products of tf32 are no faster for it than full accuracy, which is right too.
    pub(super) fn of(input: &GemmInput) -> Self {
        let types = input.types;
        let (compute, scale) = match (types.operand, types.accumulator) {
            (DType::Tf32, _) => (77, DType::F32),
            (DType::F32, _) if input.accuracy == Accuracy::Tf32 => (77, DType::F32),
            (operand @ (DType::F64 | DType::C64), _) => (70, operand),
            (DType::I8, _) => (72, DType::I32),
            (_, DType::F16) => (64, DType::F16),
            (DType::C32, _) => (68, DType::C32),
            _ => (68, DType::F32),
        };
        Self { operand: data(types.operand), output: data(types.output), compute, scale }
    }

    /// `cudaDataType_t` of alpha and beta.
    pub(super) fn scale(&self) -> u32 {
        data(self.scale)
    }

    /// A scalar as it is read.
    pub(super) fn scalar(&self, value: f64) -> Scalar {
        let words = match self.scale {
            DType::F64 | DType::C64 => value.to_bits(),
            DType::F16 => F16::from_f64(value).0.into(),
            // Of integers it is 0 or 1.
            DType::I32 => u64::from((value as i32).cast_unsigned()),
            _ => u64::from((value as f32).to_bits()),
        };
        Scalar([words.to_le_bytes(), [0; 8]])
    }
}

/// A number of any type in its first bytes; of a complex one the imaginary part is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub(super) struct Scalar([[u8; 8]; 2]);

/// `cudaDataType_t`.
fn data(dtype: DType) -> u32 {
    match dtype {
        DType::F64 => 1,
        DType::F16 => 2,
        DType::I8 => 3,
        DType::C32 => 4,
        DType::C64 => 5,
        DType::I32 => 10,
        DType::Bf16 => 14,
        _ => 0,
    }
}

/// `cublasOperation_t`.
pub(super) fn operation(transposed: bool, conjugated: bool) -> u32 {
    u32::from(transposed) + u32::from(conjugated)
}
