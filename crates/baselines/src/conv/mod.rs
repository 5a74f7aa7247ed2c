//! Libraries as kernels of the computation `conv`: oneDNN and patches unfolded for the GEMM of every BLAS library on the host, cuDNN on
//! CUDA devices.

mod cudnn;
mod im2col;
mod onednn;
mod patches;

use crate::inventory::inventory;
#[cfg(feature = "cuda")]
pub(crate) use cudnn::{ALGORITHMS, BY_NUMBER, CUDNN_TYPES, sums_of_tensors};
use cudnn::{Choice, CudnnConv};
use im2col::PatchesByGemm;
use onednn::{Formats, OneDnnConv};
use std::sync::Arc;
use tilewright_core::computation::InputError;
use tilewright_core::element::ElementTypes;
use tilewright_core::id::KernelId;
use tilewright_core::problem::{AnyKernel, Erased};
use tilewright_ops::conv::{Activation, ConvInput};

/// Those of the host that are found on this machine.
pub(crate) fn of_host() -> Vec<Arc<dyn AnyKernel>> {
    let by_gemm = inventory().routines.iter().map(|routine| Arc::new(Erased::new(PatchesByGemm::new(routine))) as _);
    let formats = [Formats::Own, Formats::OwnFilters, Formats::Plain];
    by_gemm.chain(formats.into_iter().filter_map(onednn)).collect()
}

/// cuDNN's, whether it is found or not.
pub(crate) fn of_cuda() -> Vec<Arc<dyn AnyKernel>> {
    let choices = [Choice::Any, Choice::Precomputed];
    choices.into_iter().map(|choice| Arc::new(Erased::new(CudnnConv::new(choice))) as _).collect()
}

/// Those that are timed on tensors in a layout of the library's own.
pub(crate) fn in_own_layout() -> Vec<Arc<dyn AnyKernel>> {
    onednn(Formats::Kept).into_iter().collect()
}

/// Whether a kernel calls oneDNN.
pub(crate) fn is_onednn(kernel: &KernelId) -> bool {
    [Formats::Own, Formats::OwnFilters, Formats::Plain, Formats::Kept]
        .iter()
        .any(|formats| formats.id() == kernel.as_str())
}

/// Whether a kernel is one of [`in_own_layout`].
pub(crate) fn is_in_own_layout(kernel: &KernelId) -> bool {
    kernel.as_str() == Formats::Kept.id()
}

/// The library that a kernel of this name needs.
pub(crate) fn library_of(name: &str) -> &str {
    match name.strip_prefix("im2col-") {
        Some(library) => library,
        None => ["onednn", "cudnn"].into_iter().find(|library| belongs(name, library)).unwrap_or(name),
    }
}

/// Whether a kernel is named after a library and a way to use it: `onednn-plain`.
fn belongs(name: &str, library: &str) -> bool {
    name.strip_prefix(library).is_some_and(|rest| rest.starts_with('-'))
}

fn onednn(formats: Formats) -> Option<Arc<dyn AnyKernel>> {
    inventory().onednn.map(|library| Arc::new(Erased::new(OneDnnConv::new(library, formats))) as _)
}

/// Refuses all but sums of products in one of these types.
fn only_sums(input: &ConvInput, known: &[ElementTypes]) -> Result<(), InputError> {
    input.only(known)?;
    let epilogue = &input.epilogue;
    let more = [
        ("bias", epilogue.bias),
        ("residual", epilogue.residual),
        ("activation", epilogue.activation != Activation::None),
    ];
    more.into_iter().find(|(_, is_asked)| *is_asked).map_or(Ok(()), |(name, _)| {
        Err(InputError::new(name, "the library is called for the sums alone: nothing is done to outputs"))
    })
}

/// Refuses tensors without elements.
fn not_empty(input: &ConvInput) -> Result<(), InputError> {
    let empty = [("n", input.n), ("c", input.c), ("k", input.k)].into_iter().find(|(_, size)| *size == 0);
    empty.map_or(Ok(()), |(name, _)| Err(InputError::new(name, "0: the library is not called for empty tensors")))
}
