//! cuDNN's convolutions on a CUDA device.

mod api;
#[cfg(test)]
mod tests;

use super::cuda::{Opened, first};
use crate::conv::{ALGORITHMS, BY_NUMBER, CUDNN_TYPES};
use crate::inventory::Identity;
use api::{Api, Handle, Performance};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use tilewright_core::buffer::BufferSpec;
use tilewright_core::computation::Computation;
use tilewright_core::dtype::DType;
use tilewright_core::program::{DeviceError, LibraryCall};
use tilewright_ops::conv::{Conv, ConvInput, Direction, F, Layout, X, Y};
use tilewright_runtime::cuda::{DeviceLibrary, Stage};

/// The file that is looked for.
pub(super) const STEM: &str = "libcudnn.so";

/// Bytes of memory that an algorithm may ask for. Those that compute by transformations need a multiple of the tensors.
const MOST_WORKSPACE: usize = 1 << 30;

const NCHW: c_int = 0;
const NHWC: c_int = 1;
const CROSS_CORRELATION: c_int = 1;
const FLOAT: c_int = 0;
const DOUBLE: c_int = 1;
const HALF: c_int = 2;
const DEFAULT_MATH: c_int = 0;
const TENSOR_OP_MATH: c_int = 1;
const FMA_MATH: c_int = 3;

/// cuDNN, or why there is none. Nothing is asked of a device yet.
pub(super) fn open() -> Result<Opened, String> {
    let (path, (api, version)) = first(STEM, |path| Ok((path.to_owned(), Api::open(path)?)))?;
    let identity = Identity { path: Some(path), ..Identity::built_in("cudnn", &version) };
    Ok((identity, vec![Box::new(Cudnn::new(api))]))
}

/// What the library calls these types, those of its sums, and how it may multiply.
///
/// In f32 only by fused multiply-adds: anything else would let it round operands to TF32. Products of f64 are the same on all units,
/// and those of f16 are what tensor cores are for.
fn numbers(input: &ConvInput) -> [c_int; 3] {
    match input.dtype() {
        DType::F64 => [DOUBLE, DOUBLE, DEFAULT_MATH],
        DType::F16 => [HALF, FLOAT, TENSOR_OP_MATH],
        _ => [FLOAT, FLOAT, FMA_MATH],
    }
}

/// What is read, and what is written, in the order of the library's arguments.
fn operands(direction: Direction) -> ([usize; 2], usize) {
    match direction {
        Direction::Forward => ([X, F], Y),
        Direction::Data => ([F, Y], X),
        Direction::Filter => ([X, Y], F),
    }
}

/// An algorithm that can be called for an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Algorithm {
    number: c_int,
    workspace: usize,
}

/// An input with its algorithms. Descriptors are a few hundred bytes and are kept to the end.
struct Described {
    input: ConvInput,
    buffers: Vec<BufferSpec>,
    /// Of images, filters and outputs.
    tensors: [Handle; 3],
    convolution: Handle,
    /// In the order of the library's heuristic, behind them those that it says nothing about.
    algorithms: Vec<Algorithm>,
}

impl Described {
    /// The algorithm that an option of a call means: a place in the heuristic's order, or a number of the library's own.
    fn algorithm(&self, option: u32) -> Result<Algorithm, DeviceError> {
        let refused = |message: String| DeviceError::Argument { name: "option".into(), message };
        if let Some(number) = option.checked_sub(BY_NUMBER) {
            let found = self.algorithms.iter().find(|a| a.number as u32 == number).copied();
            return found.ok_or_else(|| refused(format!("algorithm {number} does not compute this input")));
        }
        let found = self.algorithms.get(option as usize).copied();
        found.ok_or_else(|| refused(format!("{option} of {} algorithms for this input", self.algorithms.len())))
    }
}

/// cuDNN: what a caller of `cudnnConvolutionForward` and its gradients gets.
struct Cudnn {
    api: Api,
    handle: Option<Handle>,
    known: HashMap<String, Described>,
}

// SAFETY: a handle may be used from any thread, by one at a time; `&mut self` sees to that. Descriptors are only read after they
// were made.
unsafe impl Send for Cudnn {}

impl Cudnn {
    fn new(api: Api) -> Self {
        Self { api, handle: None, known: HashMap::new() }
    }

    fn described(&mut self, call: &LibraryCall) -> Result<&Described, DeviceError> {
        let fields = call.input.to_string();
        if !self.known.contains_key(&fields) {
            let described = self.describe(call)?;
            self.known.insert(fields.clone(), described);
        }
        self.known.get(&fields).ok_or_else(unprepared)
    }

    fn describe(&mut self, call: &LibraryCall) -> Result<Described, DeviceError> {
        let input = parsed(call)?;
        let handle = match self.handle {
            Some(handle) => handle,
            None => *self.handle.insert(self.api.handle()?),
        };
        let ([p, q], layout) = (input.output(), if input.layout == Layout::Nchw { NCHW } else { NHWC });
        let images = self.tensor(&input, layout, [input.n, input.c, input.h, input.w])?;
        let outputs = self.tensor(&input, layout, [input.n, input.k, p, q])?;
        let filters = self.filters(&input, layout)?;
        let convolution = self.convolution(&input)?;
        let buffers = Conv.buffers(&input);
        let mut described =
            Described { input, buffers, tensors: [images, filters, outputs], convolution, algorithms: Vec::new() };
        described.algorithms = self.algorithms(handle, &described)?;
        Ok(described)
    }

    fn tensor(&self, input: &ConvInput, layout: c_int, sizes: [usize; 4]) -> Result<Handle, DeviceError> {
        let (api, [n, c, h, w]) = (&self.api, sizes.map(int));
        let tensor = api.made("cudnnCreateTensorDescriptor", api.make_tensor)?;
        // SAFETY: the descriptor is alive, the rest are numbers.
        let status = unsafe { (api.set_tensor)(tensor, layout, numbers(input)[0], n, c, h, w) };
        api.ok(status, "cudnnSetTensor4dDescriptor").map(|()| tensor)
    }

    fn filters(&self, input: &ConvInput, layout: c_int) -> Result<Handle, DeviceError> {
        let api = &self.api;
        let [k, c, r, s] = [input.k, input.c / input.groups, input.r, input.s].map(int);
        let filters = api.made("cudnnCreateFilterDescriptor", api.make_filter)?;
        // SAFETY: the descriptor is alive, the rest are numbers.
        let status = unsafe { (api.set_filter)(filters, numbers(input)[0], layout, k, c, r, s) };
        api.ok(status, "cudnnSetFilter4dDescriptor").map(|()| filters)
    }

    fn convolution(&self, input: &ConvInput) -> Result<Handle, DeviceError> {
        let (api, [_, sums, math]) = (&self.api, numbers(input));
        let convolution = api.made("cudnnCreateConvolutionDescriptor", api.make_convolution)?;
        let [[pad_h, pad_w], [stride_h, stride_w], [dilation_h, dilation_w]] =
            [input.pad, input.stride, input.dilation].map(|pair| pair.map(int));
        // SAFETY: the descriptor is alive, the rest are numbers.
        unsafe {
            let (mode, set) = (CROSS_CORRELATION, api.set_convolution);
            let status = set(convolution, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, mode, sums);
            api.ok(status, "cudnnSetConvolution2dDescriptor")?;
            api.ok((api.set_math)(convolution, math), "cudnnSetConvolutionMathType")?;
            api.ok((api.set_groups)(convolution, int(input.groups)), "cudnnSetConvolutionGroupCount")?;
        }
        Ok(convolution)
    }

    /// All algorithms that compute the input in the memory they may have. Whether one does is asked for the descriptors as they are:
    /// the heuristic also names kinds of arithmetic that these do not allow.
    fn algorithms(&self, handle: Handle, described: &Described) -> Result<Vec<Algorithm>, DeviceError> {
        let direction = described.input.direction;
        let (pass, [first, second, written]) = (self.api.pass(direction), ordered(direction, described.tensors));
        let convolution = described.convolution;
        // The library names an algorithm once for each kind of arithmetic.
        let mut proposed = [Performance::default(); 4 * ALGORITHMS as usize];
        let mut count = 0;
        // SAFETY: handle and descriptors are alive; the results have room for as many as are asked for.
        let status = unsafe {
            let (asked, results) = (proposed.len() as c_int, proposed.as_mut_ptr());
            (pass.propose)(handle, first, second, convolution, written, asked, &raw mut count, results)
        };
        self.api.ok(status, "the heuristic for convolutions")?;
        let named = proposed.iter().take(usize::try_from(count).unwrap_or(0)).filter(|p| p.status == 0);
        let mut found: Vec<Algorithm> = Vec::new();
        for number in named.map(|p| p.algorithm).chain(0..pass.algorithms) {
            let mut workspace = 0;
            // SAFETY: as above; the place is ours.
            let status =
                unsafe { (pass.workspace)(handle, first, second, convolution, written, number, &raw mut workspace) };
            let is_new = found.iter().all(|a| a.number != number);
            if status == 0 && workspace <= MOST_WORKSPACE && is_new {
                found.push(Algorithm { number, workspace });
            }
        }
        Ok(found)
    }
}

/// Descriptors as the library takes them: what is read, what is written.
fn ordered(direction: Direction, tensors: [Handle; 3]) -> [Handle; 3] {
    let ([first, second], written) = operands(direction);
    [first, second, written].map(|at| tensors[at])
}

/// Sizes of inputs are below 2^31.
fn int(x: usize) -> c_int {
    c_int::try_from(x).unwrap_or(c_int::MAX)
}

fn unprepared() -> DeviceError {
    DeviceError::Load("the call was not prepared".into())
}

fn parsed(call: &LibraryCall) -> Result<ConvInput, DeviceError> {
    let argument = |name: &str, message: String| DeviceError::Argument { name: name.to_owned(), message };
    let input = Conv.parse(&call.input).map_err(|e| argument(&e.field, e.message.clone()))?;
    crate::conv::sums_of_tensors(&input, &CUDNN_TYPES).map_err(|e| argument(&e.field, e.message.clone()))?;
    Ok(input)
}

/// Checks that the buffers hold what the input needs, and that there is memory to work in.
fn fits(described: &Described, algorithm: Algorithm, stage: &Stage<'_>) -> Result<(), DeviceError> {
    let needs: Vec<u64> = described.buffers.iter().map(BufferSpec::bytes).collect();
    let short = needs.iter().zip(stage.bytes).any(|(need, have)| *need > *have as u64);
    if short || stage.bytes.len() < needs.len() || stage.buffers.len() < needs.len() {
        let message = format!("{:?} bytes where {needs:?} are needed", stage.bytes);
        return Err(DeviceError::Argument { name: "buffers".into(), message });
    }
    if algorithm.workspace > stage.scratch_bytes {
        return Err(DeviceError::OutOfMemory {
            need: algorithm.workspace as u64,
            have: Some(stage.scratch_bytes as u64),
        });
    }
    Ok(())
}

impl DeviceLibrary for Cudnn {
    fn name(&self) -> &str {
        "cudnn"
    }

    fn scratch_bytes(&mut self, call: &LibraryCall) -> Result<usize, DeviceError> {
        Ok(self.described(call)?.algorithm(call.option)?.workspace)
    }

    fn prepare(&mut self, call: &LibraryCall, stage: &Stage<'_>) -> Result<(), DeviceError> {
        let described = self.described(call)?;
        fits(described, described.algorithm(call.option)?, stage)?;
        let handle = self.handle.ok_or_else(unprepared)?;
        // SAFETY: the handle is alive; the stream belongs to its context.
        self.api.ok(unsafe { (self.api.set_stream)(handle, stage.stream) }, "cudnnSetStream")
    }

    fn enqueue(&mut self, call: &LibraryCall, stage: &Stage<'_>) -> Result<(), DeviceError> {
        let handle = self.handle.ok_or_else(unprepared)?;
        let described = self.known.get(&call.input.to_string()).ok_or_else(unprepared)?;
        let algorithm = described.algorithm(call.option)?;
        fits(described, algorithm, stage)?;
        let direction = described.input.direction;
        let [first, second, written] = ordered(direction, described.tensors);
        let ([a, b], to) = operands(direction);
        let data = |at: usize| std::ptr::without_provenance::<c_void>(stage.buffers[at] as usize);
        // Scalars are doubles where tensors are, and floats for all other types.
        let (doubles, singles) = ([1f64, 0.0], [1f32, 0.0]);
        let scalar = |i: usize| match described.input.dtype() {
            DType::F64 => (&raw const doubles[i]).cast::<c_void>(),
            _ => (&raw const singles[i]).cast(),
        };
        // SAFETY: handle and descriptors are alive; `fits` has compared the buffers' lengths with the tensors', and the memory to work
        // in with what the algorithm asks for; scalars are read before the call returns.
        let status = unsafe {
            (self.api.pass(direction).run)(
                handle,
                scalar(0),
                first,
                data(a),
                second,
                data(b),
                described.convolution,
                algorithm.number,
                std::ptr::without_provenance_mut(stage.scratch as usize),
                stage.scratch_bytes,
                scalar(1),
                written,
                data(to).cast_mut(),
            )
        };
        self.api.ok(status, "the convolution")
    }
}
