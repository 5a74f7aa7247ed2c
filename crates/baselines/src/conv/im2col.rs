//! Forward convolutions as products of unfolded patches and filters, by the GEMM of a library.

use super::only_sums;
use super::patches::Patches;
use crate::call::GemmCall;
use crate::kernel::{Routine, Run, threads_of};
use std::ops::Range;
use std::sync::Arc;
use tilewright_core::buffer::BufferSpec;
use tilewright_core::computation::{Computation, InputError};
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::element::Element;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::{DeviceError, HostArgs, HostCode, Program, check_buffers};
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::conv::{Conv, ConvInput, Direction, F, Layout, X, Y};
use tilewright_ops::gemm::{GemmInput, Layout as Matrices};

/// Patches are unfolded in pieces of at most so many bytes, so that the GEMM finds them in a cache,
const MOST_BYTES: usize = 4 << 20;
/// but of no fewer outputs than these, so that the GEMM has something to divide.
const FEWEST_OUTPUTS: usize = 512;

/// A convolution by the GEMM of a library.
#[derive(Debug)]
pub(super) struct PatchesByGemm {
    routine: &'static Routine,
    space: ParamSpace,
}

impl PatchesByGemm {
    pub(super) fn new(routine: &'static Routine) -> Self {
        // No rule that could fail to parse, and no parameter without values.
        let space = ParamSpace::builder().build().unwrap_or_else(|e| unreachable!("{e}"));
        Self { routine, space }
    }
}

impl Kernel for PatchesByGemm {
    type Of = Conv;
    type Plan = Program;

    fn id(&self) -> KernelId {
        KernelId::from(format!("conv.im2col-{}.1", self.routine.identity.name))
    }

    fn computation(&self) -> &Conv {
        &Conv
    }

    fn space(&self) -> &ParamSpace {
        &self.space
    }

    /// The forward direction in f32 or f64, without an epilogue.
    fn accepts(&self, input: &ConvInput) -> Result<(), InputError> {
        only_sums(input, &ConvInput::PLAIN)?;
        match input.direction {
            Direction::Forward => Ok(()),
            other => Err(InputError::new("direction", format!("{}: patches are for the forward one", other.name()))),
        }
    }

    fn symbols(&self, device: &DeviceSpec, input: &ConvInput) -> Symbols {
        input.symbols(device)
    }

    fn plan(&self, device: &DeviceSpec, input: &ConvInput, _: &Legal<'_>) -> Program {
        let pieces = Pieces::of(input);
        let workspace = pieces.workspace() as u64;
        let buffers = Conv.buffers(input);
        Program::host(Arc::new(Code { routine: self.routine, pieces, buffers, threads: threads_of(device) }), workspace)
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

/// Outputs in pieces, each one product.
///
/// With channels first a piece is of one image, whose outputs lie apart from the next one's; with channels last it may be of several.
#[derive(Clone, Debug)]
struct Pieces {
    input: ConvInput,
    /// Whether patches are images as they lie in memory.
    is_plain: bool,
    /// Images whose rows are counted together.
    together: usize,
    /// Rows of outputs of a piece, at most.
    rows: usize,
}

impl Pieces {
    fn of(input: &ConvInput) -> Self {
        let is_plain = (input.r, input.s, input.stride) == (1, 1, [1, 1]);
        let [p, q] = input.output();
        let together = if input.layout == Layout::Nchw { 1 } else { input.n };
        let bytes = Patches::of(input).depth() * input.dtype().size();
        let outputs = MOST_BYTES.checked_div(bytes).unwrap_or(usize::MAX).max(FEWEST_OUTPUTS);
        let all = (p * together).max(1);
        let most = if is_plain { all } else { (outputs / q).clamp(1, all) };
        // As even as they can be.
        let rows = all.div_ceil(all.div_ceil(most));
        Self { input: input.clone(), is_plain, together, rows }
    }

    /// Bytes of the patches of a piece.
    fn workspace(&self) -> usize {
        let of_a_row = self.input.output()[1] * Patches::of(&self.input).depth() * self.input.dtype().size();
        if self.is_plain { 0 } else { self.rows * of_a_row }
    }

    /// First image and rows of each piece.
    fn all(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let (all, rows) = (self.input.output()[0] * self.together, self.rows);
        let images = (0..self.input.n).step_by(self.together.max(1));
        images.flat_map(move |image| (0..all).step_by(rows).map(move |row| (image, row..all.min(row + rows))))
    }
}

struct Code {
    routine: &'static Routine,
    pieces: Pieces,
    buffers: Vec<BufferSpec>,
    threads: usize,
}

/// Images, filters, outputs, and memory for patches.
struct Tensors<'a, T> {
    x: &'a [T],
    f: &'a [T],
    y: &'a mut [T],
    patches: &'a mut [T],
}

impl Code {
    fn compute<T>(&self, gemm: &Run<T>, mut tensors: Tensors<'_, T>) -> Result<(), InputError>
    where
        T: Element + Default + Send + Sync + From<u8>,
    {
        let groups = self.pieces.input.groups;
        for (image, rows) in self.pieces.all() {
            (0..groups).try_for_each(|group| self.piece(gemm, &mut tensors, (image, group), rows.clone()))?;
        }
        Ok(())
    }

    fn piece<T>(
        &self,
        gemm: &Run<T>,
        tensors: &mut Tensors<'_, T>,
        (image, group): (usize, usize),
        rows: Range<usize>,
    ) -> Result<(), InputError>
    where
        T: Element + Default + Send + Sync + From<u8>,
    {
        let input = &self.pieces.input;
        let &ConvInput { c, h, w, layout, .. } = input;
        let ([p, q], patches) = (input.output(), Patches::of(input));
        let (of_c, of_k, depth) = (c / input.groups, input.k / input.groups, patches.depth());
        if of_k == 0 {
            return Ok(());
        }
        let count = rows.len() * q;
        // Where the group begins in the images, and the piece in the outputs.
        let (x, y) = match layout {
            Layout::Nchw => {
                ((image * c + group * of_c) * h * w, (image * input.k + group * of_k) * p * q + rows.start * q)
            }
            Layout::Nhwc => (image * h * w * c + group * of_c, (image * p + rows.start) * q * input.k + group * of_k),
        };
        let (matrix, ld) = match (self.pieces.is_plain, layout) {
            (true, Layout::Nchw) => (&tensors.x[x + rows.start * q..], p * q),
            (true, Layout::Nhwc) => (&tensors.x[x + rows.start * q * c..], c),
            (false, _) => {
                let out = &mut tensors.patches[..count * depth];
                patches.unfold(&tensors.x[x..], rows, self.threads, out);
                (&*out, if layout == Layout::Nchw { count } else { depth })
            }
        };
        self.multiply(gemm, (matrix, ld, count), &tensors.f[group * of_k * depth..], &mut tensors.y[y..])
    }

    /// The product of a group's filters and the patches of so many outputs.
    fn multiply<T>(
        &self,
        gemm: &Run<T>,
        (patches, ld, count): (&[T], usize, usize),
        f: &[T],
        y: &mut [T],
    ) -> Result<(), InputError>
    where
        T: From<u8> + Copy,
    {
        let input = &self.pieces.input;
        let ([p, q], of_k, depth) = (input.output(), input.k / input.groups, Patches::of(input).depth());
        let scalars = (T::from(1), T::from(0));
        // BLAS asks for a leading dimension of 1 even where there is nothing.
        let (ld, ld_filters) = (ld.max(1), depth.max(1));
        let mut call = match input.layout {
            Layout::Nchw => {
                let shape = product([count, of_k, depth], Matrices::Nn);
                GemmCall::new(&GemmInput { lda: ld, ldb: ld_filters, ldc: p * q, ..shape }, scalars, patches, f, y)?
            }
            Layout::Nhwc => {
                let shape = product([of_k, count, depth], Matrices::Tn);
                GemmCall::new(&GemmInput { lda: ld_filters, ldb: ld, ldc: input.k, ..shape }, scalars, f, patches, y)?
            }
        };
        gemm(&mut call, self.threads);
        Ok(())
    }
}

/// The element type is that of the call.
fn product([m, n, k]: [usize; 3], layout: Matrices) -> GemmInput {
    GemmInput::new(m, n, k, DType::F32, layout)
}

impl HostCode for Code {
    fn leaves_threads_spinning(&self) -> bool {
        self.threads > 1
    }

    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        check_buffers(&self.buffers, args.buffers)?;
        let argument = |name: &str, message| DeviceError::Argument { name: name.to_owned(), message };
        let given = args.buffers.len();
        let Ok([x, f, y]) = args.buffers.get_disjoint_mut([X, F, Y]) else {
            return Err(argument("buffers", format!("a convolution has x, f and y, {given} are given")));
        };
        let patches = args.workspace.bytes_mut().get_mut(..self.pieces.workspace());
        let Some(patches) = patches else {
            return Err(argument("workspace", format!("{} bytes are needed", self.pieces.workspace())));
        };
        let done = match self.pieces.input.dtype() {
            DType::F32 => {
                let (x, f, y) = (x.as_slice(), f.as_slice(), y.as_mut_slice());
                self.compute(&self.routine.sgemm, Tensors { x, f, y, patches: bytemuck::cast_slice_mut(patches) })
            }
            _ => {
                let (x, f, y) = (x.as_slice(), f.as_slice(), y.as_mut_slice());
                self.compute(&self.routine.dgemm, Tensors { x, f, y, patches: bytemuck::cast_slice_mut(patches) })
            }
        };
        done.map_err(|e| argument(&e.field, e.message))
    }
}
