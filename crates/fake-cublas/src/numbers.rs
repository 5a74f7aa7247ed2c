//! Element types of matrices, and which of them go together.

use crate::product::{Answer, Status, refused};

/// An element type of a matrix: a `cudaDataType_t` that is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Data {
    F16,
    Bf16,
    F32,
    F64,
    I8,
    I32,
    C32,
    C64,
}

impl Data {
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::I8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::F64 | Self::C32 => 8,
            Self::C64 => 16,
        }
    }

    pub(crate) fn is_complex(self) -> bool {
        matches!(self, Self::C32 | Self::C64)
    }

    /// Of a `cudaDataType_t`.
    pub(crate) fn of(number: u32) -> Answer<Self> {
        match number {
            0 => Ok(Self::F32),
            1 => Ok(Self::F64),
            2 => Ok(Self::F16),
            3 => Ok(Self::I8),
            4 => Ok(Self::C32),
            5 => Ok(Self::C64),
            10 => Ok(Self::I32),
            14 => Ok(Self::Bf16),
            _ => refused(&format!("type {number} is no cudaDataType_t that is computed here")),
        }
    }
}

/// What sums, or their components, are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sum {
    F32,
    F64,
    S32,
}

/// The numbers of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Numbers {
    pub(crate) operand: Data,
    pub(crate) output: Data,
    pub(crate) sum: Sum,
    /// Whether operands are rounded to tf32 before they are multiplied.
    pub(crate) rounds: bool,
}

impl Numbers {
    /// One real type throughout.
    pub(crate) fn plain(of: Data) -> Self {
        Self { operand: of, output: of, sum: if of == Data::F64 { Sum::F64 } else { Sum::F32 }, rounds: false }
    }

    /// Of a `cublasComputeType_t`, the type of scalars, and the types of A, B, C and D: what the library's table has.
    pub(crate) fn of(compute: u32, scale: Data, [a, b, c, d]: [Data; 4]) -> Answer<Self> {
        use Data::{Bf16, C32, C64, F16, F32, F64, I8, I32};
        let known = match (compute, scale) {
            (64, F16) => a == F16 && c == F16,
            (68, F32) => matches!((a, c), (F32, F32) | (F16, F16 | F32) | (Bf16, Bf16 | F32)),
            (77, F32) => (a, c) == (F32, F32),
            (68 | 77, C32) => (a, c) == (C32, C32),
            (70, F64) => (a, c) == (F64, F64),
            (70, C64) => (a, c) == (C64, C64),
            (72, I32) => (a, c) == (I8, I32),
            _ => false,
        };
        if !known || a != b || c != d {
            eprintln!(
                "fake cuBLAS: compute type {compute} with scalars of {scale:?} does not go with {a:?}, {b:?}, {c:?}, {d:?}"
            );
            return Err(Status::NotSupported);
        }
        let sum = match scale {
            F64 | C64 => Sum::F64,
            I32 => Sum::S32,
            _ => Sum::F32,
        };
        Ok(Self { operand: a, output: c, sum, rounds: compute == 77 })
    }

    /// The type of scalars of `cublasGemmEx`, which follows from the others.
    pub(crate) fn scale(compute: u32, operand: Data) -> Data {
        match (compute, operand) {
            (64, _) => Data::F16,
            (72, _) => Data::I32,
            (70, Data::C64) => Data::C64,
            (70, _) => Data::F64,
            (_, Data::C32) => Data::C32,
            _ => Data::F32,
        }
    }

    /// What addresses and leading dimensions are multiples of, in bytes and elements.
    pub(crate) fn multiples(self) -> [u64; 2] {
        if self.operand == Data::I8 { [4, 4] } else { [1, 1] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_library_has_goes_together() {
        use Data::{Bf16, C32, F16, F32, I8, I32};
        let of = |compute, scale, a, c| Numbers::of(compute, scale, [a, a, c, c]);
        assert_eq!(of(68, F32, F32, F32), Ok(Numbers::plain(F32)));
        assert!(of(77, F32, F32, F32).is_ok_and(|numbers| numbers.rounds));
        assert_eq!(of(72, I32, I8, I32).map(|numbers| numbers.sum), Ok(Sum::S32));
        for (compute, scale, a, c) in
            [(64, F16, F32, F32), (64, F32, F16, F16), (68, F32, Bf16, F16), (72, F32, I8, I32), (68, F32, C32, C32)]
        {
            assert_eq!(of(compute, scale, a, c), Err(Status::NotSupported), "{compute} {scale:?} {a:?} {c:?}");
        }
        assert_eq!(Numbers::of(68, F32, [F16, Bf16, F32, F32]), Err(Status::NotSupported));
        for (compute, operand) in [(64, F16), (68, Bf16), (68, C32), (77, F32), (72, I8)] {
            let output = if operand == I8 { I32 } else { operand };
            assert!(of(compute, Numbers::scale(compute, operand), operand, output).is_ok(), "{compute} {operand:?}");
        }
    }
}
