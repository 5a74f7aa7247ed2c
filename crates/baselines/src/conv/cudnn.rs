//! cuDNN's convolutions as kernels: steps of a library on a CUDA device.

use super::{not_empty, only_sums};
use tilewright_core::buffer::Filling;
use tilewright_core::computation::{Computation, InputError};
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::{LibraryCall, Program};
use tilewright_core::space::{BoundSpace, Legal, Param, ParamSpace, Point, Symbols, Values};
use tilewright_ops::conv::{Conv, ConvInput, Direction};

/// The library's algorithms of the forward direction, of which there are most.
pub(crate) const ALGORITHMS: u32 = 8;

/// From here on an option of a call is not a place in the order of the library's heuristic, but the number of an algorithm.
pub(crate) const BY_NUMBER: u32 = 1 << 16;

/// `CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM`.
const IMPLICIT_PRECOMP_GEMM: u32 = 1;

/// The element types that the library is called for.
pub(crate) const CUDNN_TYPES: [ElementTypes; 3] = [
    ElementTypes::all(DType::F32),
    ElementTypes::all(DType::F64),
    ElementTypes { operand: DType::F16, accumulator: DType::F32, output: DType::F16 },
];

/// Which of the library's algorithms computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The parameter `option` is a place in the order of the library's heuristic: the first is its choice.
    Any,
    /// `IMPLICIT_PRECOMP_GEMM`, with which the ISAAC paper compares.
    Precomputed,
}

/// A convolution by cuDNN. How many algorithms there are for an input only the device knows: the others do not run.
#[derive(Debug)]
pub(super) struct CudnnConv {
    choice: Choice,
    space: ParamSpace,
}

impl CudnnConv {
    pub(super) fn new(choice: Choice) -> Self {
        let options = (choice == Choice::Any).then(|| Param::ints("option", 0..i64::from(ALGORITHMS)));
        // No rule that could fail to parse, and no parameter without values.
        let space = ParamSpace::builder().params(options).build().unwrap_or_else(|e| unreachable!("{e}"));
        Self { choice, space }
    }
}

impl Kernel for CudnnConv {
    type Of = Conv;
    type Plan = Program;

    fn id(&self) -> KernelId {
        KernelId::new(match self.choice {
            Choice::Any => "conv.cudnn.1",
            Choice::Precomputed => "conv.cudnn-precomp.1",
        })
    }

    fn computation(&self) -> &Conv {
        &Conv
    }

    fn space(&self) -> &ParamSpace {
        &self.space
    }

    /// Convolutions that are not empty, without an epilogue, of plain types and of f16 summed in f32.
    fn accepts(&self, input: &ConvInput) -> Result<(), InputError> {
        sums_of_tensors(input, &CUDNN_TYPES)?;
        match (self.choice, input.direction) {
            (Choice::Any, _) | (_, Direction::Forward) => Ok(()),
            (Choice::Precomputed, other) => {
                let message = format!("{}: IMPLICIT_PRECOMP_GEMM is of the forward direction", other.name());
                Err(InputError::new("direction", message))
            }
        }
    }

    /// Some of the algorithms are Winograd's and Fourier's, which do not sum term by term.
    fn fillings(&self) -> &'static [Filling] {
        match self.choice {
            Choice::Any => &[Filling::Real],
            Choice::Precomputed => &[Filling::Real, Filling::Exact, Filling::Special],
        }
    }

    fn symbols(&self, device: &DeviceSpec, input: &ConvInput) -> Symbols {
        input.symbols(device)
    }

    fn plan(&self, _: &DeviceSpec, input: &ConvInput, at: &Legal<'_>) -> Program {
        let option = match self.choice {
            Choice::Any => at.point().first().map_or(0, |&option| u32::from(option)),
            Choice::Precomputed => BY_NUMBER + IMPLICIT_PRECOMP_GEMM,
        };
        Program::library(LibraryCall { library: "cudnn".to_owned(), option, input: Conv.fields(input) })
    }

    fn generate(&self, plan: &Program) -> Program {
        plan.clone()
    }

    fn feature_names(&self) -> Vec<Feature> {
        self.space.params().iter().map(|param| Feature::flag(&param.name)).collect()
    }

    fn features(&self, _: &DeviceSpec, _: &ConvInput, at: &Values<'_>, out: &mut Vec<f32>) {
        out.extend(at.point().iter().map(|&option| f32::from(option)));
    }

    fn default_point(&self, _: &DeviceSpec, _: &ConvInput, space: &BoundSpace) -> Option<Point> {
        space.first_legal()
    }
}

/// Refuses all but sums of products of tensors that are not empty, in one of these types.
///
/// # Errors
/// The field.
pub(crate) fn sums_of_tensors(input: &ConvInput, known: &[ElementTypes]) -> Result<(), InputError> {
    only_sums(input, known)?;
    not_empty(input)
}
