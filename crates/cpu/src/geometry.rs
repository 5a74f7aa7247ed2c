//! A GEMM as the generator sees it: sizes and strides along the vector axis and across it.

use crate::config::Axis;
use tilewright_ops::gemm::GemmInput;

/// One operand: distance in elements between neighbours along its own dimension, and between steps of k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operand {
    pub(crate) along: usize,
    pub(crate) step: usize,
}

/// The problem seen along the vector axis: dimension `v` of the operand that is loaded as vectors, `s` of the
/// broadcast one. `c_v` and `c_s` are the strides of C along them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) v_len: usize,
    pub(crate) s_len: usize,
    pub(crate) v: Operand,
    pub(crate) s: Operand,
    pub(crate) c_v: usize,
    pub(crate) c_s: usize,
    /// Whether `v` is B rather than A.
    pub(crate) swapped: bool,
}

impl Frame {
    pub(crate) fn of(input: &GemmInput, axis: Axis) -> Self {
        let operand = |contiguous: bool, ld: usize| {
            if contiguous { Operand { along: 1, step: ld } } else { Operand { along: ld, step: 1 } }
        };
        // Neighbours are rows of op(A) and columns of op(B).
        let a = operand(!input.layout.a_transposed(), input.lda);
        let b = operand(input.layout.b_transposed(), input.ldb);
        let (m, n, ldc) = (input.m, input.n, input.ldc);
        match axis {
            Axis::M => Self { v_len: m, s_len: n, v: a, s: b, c_v: 1, c_s: ldc, swapped: false },
            Axis::N => Self { v_len: n, s_len: m, v: b, s: a, c_v: ldc, c_s: 1, swapped: true },
        }
    }
}
