//! What a convolution is asked for by.

use std::ffi::c_int;

/// Sizes and strides of a tensor, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub(crate) dims: Vec<i64>,
    pub(crate) strides: Vec<i64>,
}

impl Tensor {
    /// Elements from the first to behind the last; none where that is not what strides and sizes can say.
    pub(super) fn reach(&self) -> Option<usize> {
        let is_fit = self.dims.len() == self.strides.len() && (1..=12).contains(&self.dims.len());
        let mut last = 0i64;
        for (&size, &stride) in self.dims.iter().zip(&self.strides) {
            last = (size > 0 && stride > 0).then(|| last.checked_add((size - 1).checked_mul(stride)?)).flatten()?;
        }
        usize::try_from(last.checked_add(1)?).ok().filter(|_| is_fit)
    }
}

/// Which tensor is computed; the tensors in the order images, filters, outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Forward,
    Data,
    Filter,
}

impl Pass {
    pub(super) fn written(self) -> usize {
        match self {
            Self::Forward => 2,
            Self::Data => 0,
            Self::Filter => 1,
        }
    }

    /// The library's numbers for the three tensors.
    pub(super) fn roles(self) -> [c_int; 3] {
        match self {
            Self::Forward => [1, 33, 17],
            Self::Data => [129, 33, 145],
            Self::Filter => [1, 161, 145],
        }
    }
}

/// A convolution: pairs are rows and columns, and a dilation of 0 is none.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    pub(crate) pass: Pass,
    /// Images, filters, outputs.
    pub(crate) tensors: [Tensor; 3],
    /// Which of them lie as the library likes it best.
    pub(crate) own: [bool; 3],
    pub(crate) stride: [i64; 2],
    pub(crate) dilation: [i64; 2],
    pub(crate) pad: [i64; 2],
    pub(crate) threads: usize,
}
