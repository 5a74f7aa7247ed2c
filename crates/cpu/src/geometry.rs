//! A GEMM as the generator sees it: sizes, strides and classes of scalars, and the same seen along the vector
//! axis.

use crate::config::Axis;
use crate::scalar::{Factor, Float};

/// `C[m x n] = alpha * op(A)[m x k] * op(B)[k x n] + beta * C`, column-major, sizes and leading dimensions in
/// elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Geometry {
    pub(crate) float: Float,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) transpose_a: bool,
    pub(crate) transpose_b: bool,
    pub(crate) lda: usize,
    pub(crate) ldb: usize,
    pub(crate) ldc: usize,
    pub(crate) alpha: Factor,
    pub(crate) beta: Factor,
}

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

impl Geometry {
    /// A, with rows of op(A) as neighbours.
    pub(crate) fn a(&self) -> Operand {
        if self.transpose_a { Operand { along: self.lda, step: 1 } } else { Operand { along: 1, step: self.lda } }
    }

    /// B, with columns of op(B) as neighbours.
    pub(crate) fn b(&self) -> Operand {
        if self.transpose_b { Operand { along: 1, step: self.ldb } } else { Operand { along: self.ldb, step: 1 } }
    }

    pub(crate) fn frame(&self, axis: Axis) -> Frame {
        let (a, b) = (self.a(), self.b());
        match axis {
            Axis::M => Frame { v_len: self.m, s_len: self.n, v: a, s: b, c_v: 1, c_s: self.ldc, swapped: false },
            Axis::N => Frame { v_len: self.n, s_len: self.m, v: b, s: a, c_v: self.ldc, c_s: 1, swapped: true },
        }
    }
}
