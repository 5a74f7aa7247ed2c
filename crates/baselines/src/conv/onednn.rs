//! oneDNN's convolutions as kernels.

use super::{not_empty, only_sums};
use crate::foreign::onednn::{Convolution, Description, OneDnn, Part, Pass, Tensor};
use crate::kernel::threads_of;
use std::sync::Arc;
use tilewright_core::buffer::BufferSpec;
use tilewright_core::computation::{Computation, InputError};
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::{DeviceError, HostArgs, HostCode, Program, check_buffers};
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::conv::{Conv, ConvInput, Direction, F, Layout, X, Y};

/// In which layouts the library works. Bringing tensors there and back is part of every run, but for [`Formats::Kept`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Formats {
    /// All tensors as it likes them best.
    Own,
    /// The filters as it likes them best, images and outputs as the caller has them.
    OwnFilters,
    /// All as the caller has them.
    Plain,
    /// All as it likes them best, brought there by the first run of a program. What later runs are given they do not look at, and
    /// their results stay in the library's layout: for times only.
    Kept,
}

impl Formats {
    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Own => "conv.onednn.1",
            Self::OwnFilters => "conv.onednn-filters.1",
            Self::Plain => "conv.onednn-plain.1",
            Self::Kept => "conv.onednn-blocked.1",
        }
    }

    /// Images, filters and outputs.
    const fn own(self) -> [bool; 3] {
        match self {
            Self::Own | Self::Kept => [true; 3],
            Self::OwnFilters => [false, true, false],
            Self::Plain => [false; 3],
        }
    }
}

/// A convolution by oneDNN.
#[derive(Debug)]
pub(super) struct OneDnnConv {
    library: &'static OneDnn,
    formats: Formats,
    space: ParamSpace,
}

impl OneDnnConv {
    pub(super) fn new(library: &'static OneDnn, formats: Formats) -> Self {
        // No rule that could fail to parse, and no parameter without values.
        let space = ParamSpace::builder().build().unwrap_or_else(|e| unreachable!("{e}"));
        Self { library, formats, space }
    }
}

impl Kernel for OneDnnConv {
    type Of = Conv;
    type Plan = Program;

    fn id(&self) -> KernelId {
        KernelId::new(self.formats.id())
    }

    fn computation(&self) -> &Conv {
        &Conv
    }

    fn space(&self) -> &ParamSpace {
        &self.space
    }

    /// Convolutions of f32 that are not empty, without an epilogue.
    fn accepts(&self, input: &ConvInput) -> Result<(), InputError> {
        only_sums(input, &[ElementTypes::all(DType::F32)])?;
        not_empty(input)
    }

    fn symbols(&self, device: &DeviceSpec, input: &ConvInput) -> Symbols {
        input.symbols(device)
    }

    /// With the library's code, so that no run makes it.
    fn plan(&self, device: &DeviceSpec, input: &ConvInput, _: &Legal<'_>) -> Program {
        let made = self.library.convolution(&description(input, self.formats, threads_of(device)));
        let part = if self.formats == Formats::Kept { Part::Inner } else { Part::All };
        let code = Code {
            buffers: Conv.buffers(input),
            made: made.map_err(|e| e.to_string()),
            direction: input.direction,
            part,
            is_parallel: threads_of(device) > 1,
        };
        Program::host(Arc::new(code), 0)
    }

    fn generate(&self, plan: &Program) -> Program {
        plan.clone()
    }

    fn feature_names(&self) -> Vec<Feature> {
        Vec::new()
    }

    fn features(&self, _: &DeviceSpec, _: &ConvInput, _: &Values<'_>, _: &mut Vec<f32>) {}

    fn default_point(&self, _: &DeviceSpec, _: &ConvInput, space: &BoundSpace) -> Option<Point> {
        space.first_legal()
    }
}

fn description(input: &ConvInput, formats: Formats, threads: usize) -> Description {
    let [p, q] = input.output();
    let (groups, c, k) = (input.groups, input.c / input.groups, input.k / input.groups);
    let pair = |of: [usize; 2]| of.map(|size| size as i64);
    let mut f = tensor(input.layout, [input.k, c, input.r, input.s]);
    if groups > 1 {
        f.dims.splice(..1, [groups as i64, k as i64]);
        f.strides.insert(0, f.strides[0] * k as i64);
    }
    Description {
        pass: match input.direction {
            Direction::Forward => Pass::Forward,
            Direction::Data => Pass::Data,
            Direction::Filter => Pass::Filter,
        },
        tensors: [
            tensor(input.layout, [input.n, input.c, input.h, input.w]),
            f,
            tensor(input.layout, [input.n, input.k, p, q]),
        ],
        own: formats.own(),
        stride: pair(input.stride),
        // The library counts places between taps.
        dilation: pair(input.dilation.map(|places| places - 1)),
        pad: pair(input.pad),
        threads,
    }
}

/// Images, channels, rows and columns, as they lie in memory.
fn tensor(layout: Layout, dims: [usize; 4]) -> Tensor {
    let [_, channels, rows, columns] = dims;
    let strides = match layout {
        Layout::Nchw => [channels * rows * columns, rows * columns, columns, 1],
        Layout::Nhwc => [channels * rows * columns, 1, columns * channels, channels],
    };
    let numbers = |of: [usize; 4]| of.map(|size| size as i64).to_vec();
    Tensor { dims: numbers(dims), strides: numbers(strides) }
}

struct Code {
    buffers: Vec<BufferSpec>,
    /// Or why there is none.
    made: Result<Convolution, String>,
    direction: Direction,
    part: Part,
    is_parallel: bool,
}

impl HostCode for Code {
    fn leaves_threads_spinning(&self) -> bool {
        self.is_parallel
    }

    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        check_buffers(&self.buffers, args.buffers)?;
        let convolution = self.made.as_ref().map_err(|why| DeviceError::Load(why.clone()))?;
        let Ok([x, f, y]) = args.buffers.get_disjoint_mut([X, F, Y]) else {
            let message = format!("a convolution has x, f and y, {} are given", args.buffers.len());
            return Err(DeviceError::Argument { name: "buffers".to_owned(), message });
        };
        let (read, written) = match self.direction {
            Direction::Forward => ([x.as_slice(), f.as_slice()], y),
            Direction::Data => ([f.as_slice(), y.as_slice()], x),
            Direction::Filter => ([x.as_slice(), y.as_slice()], f),
        };
        convolution.run(read, written.as_mut_slice(), self.part).map_err(|e| DeviceError::Fault(e.to_string()))
    }
}
