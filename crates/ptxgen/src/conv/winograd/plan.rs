//! A legal (device, input, configuration), and the program that comes of it.

use super::super::operands::Tensor;
use super::super::taps::Taps;
use super::space::Description;
use super::transform::{THREADS, Transform, What};
use crate::gemm::{GemmPlan, launch};
use crate::ir::{Module, Type};
use crate::simt::Arithmetic;
use crate::target::Target;
use tilewright_core::program::{Arg, Program, Step};
use tilewright_core::space::Values;
use tilewright_ops::conv::{BIAS, ConvInput, Correlation, Layout};
use tilewright_ops::gemm::{self, Batch, GemmInput};

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct WinogradPlan {
    input: ConvInput,
    transform: Transform,
    product: GemmPlan,
    of: Correlation,
    taps: Taps,
    /// Tiles of an image, of all images, and those with padding.
    tiles: [usize; 2],
    tile_count: usize,
    tile_pitch: usize,
    out_pitch: usize,
    /// Where transformed inputs and products begin in the workspace, and its length, in bytes.
    inputs: u64,
    products: u64,
    workspace: u64,
}

impl WinogradPlan {
    /// Of a legal point; `None` for one of another space.
    pub(super) fn new(target: Target, input: &ConvInput, at: &Values<'_>) -> Option<Self> {
        let names = Description::get();
        let [side, rows, columns, tile_count, tile_pitch, out_pitch, filters, inputs, workspace] =
            at.ints::<u64, _>(names.shape)?;
        let of = Correlation::all(input).into_iter().next()?;
        let transform = Transform {
            target,
            arithmetic: Arithmetic::of(input.types),
            side: side as usize,
            channels_first: input.layout == Layout::Nhwc,
            epilogue: input.epilogue,
        };
        let (tile_pitch, out_pitch) = (tile_pitch as usize, out_pitch as usize);
        let shape = [tile_pitch, out_pitch, of.channels.count];
        let batch = (side as usize + 2).pow(2) * input.groups;
        let product = GemmPlan::new(target, &products(input, shape, batch as u32), &names.product, at)?;
        Some(Self {
            input: input.clone(),
            transform,
            product,
            taps: Taps::of(&of),
            of,
            tiles: [rows as usize, columns as usize],
            tile_count: tile_count as usize,
            tile_pitch,
            out_pitch,
            inputs: filters,
            products: filters + inputs,
            workspace,
        })
    }

    /// The input.
    pub fn input(&self) -> &ConvInput {
        &self.input
    }

    /// The plan of the products, in words of the GEMM: tiles and outputs with their padding, by channels.
    pub fn product(&self) -> &GemmPlan {
        &self.product
    }

    /// Every module of the program, in order, as trees.
    pub fn modules(&self) -> Vec<Module> {
        if self.tile_count == 0 {
            return Vec::new();
        }
        let [filters, inputs, outputs] =
            [What::Filters, What::Inputs, What::Products].map(|what| self.transform.module(what));
        [filters, inputs].into_iter().chain(self.product.modules()).chain([outputs]).collect()
    }

    /// The program.
    pub fn program(&self) -> Program {
        if self.tile_count == 0 {
            return Program::new(Vec::new(), 0);
        }
        Program::new(vec![self.filters(), self.inputs(), self.multiply(), self.outputs()], self.workspace)
    }

    /// Threads of a transformation: numbers of one place of the tile, of all groups.
    fn count(&self, what: What) -> usize {
        let channels = self.of.channels.count;
        let of_group = match what {
            What::Filters => channels * self.out_pitch,
            What::Inputs => channels * self.tile_pitch,
            What::Products => self.out_pitch * self.tile_pitch,
        };
        self.input.groups * of_group
    }

    /// A launch: addresses, bytes from place to place of the tile, and sizes, the number of threads first.
    fn launch(&self, what: What, addresses: Vec<Arg>, sizes: impl IntoIterator<Item = usize>) -> Step {
        let (module, count) = (self.transform.module(what), self.count(what));
        let bytes = u64::from(self.transform.arithmetic.bytes());
        let sizes = [count].into_iter().chain(sizes).map(|x| Arg::U32(x as u32));
        let args = addresses.into_iter().chain([Arg::U64(count as u64 * bytes)]).chain(sizes).collect();
        launch(&module, [(count as u32).div_ceil(THREADS), 1, 1], 0, args)
    }

    fn filters(&self) -> Step {
        let of = &self.of;
        let (filter, group) = Tensor::Filter.of(&self.input, of);
        let sizes = [of.channels.count, of.outs.count, self.out_pitch];
        let strides = [of.outs.stride, of.filter_channel, group];
        let taps = [self.taps.first, self.taps.strides[0], self.taps.strides[1]].map(|x| x as usize);
        self.launch(What::Filters, vec![filter, Arg::Workspace(0)], sizes.into_iter().chain(taps).chain(strides))
    }

    fn inputs(&self) -> Step {
        let (of, [rows, columns]) = (&self.of, self.tiles);
        let (gathered, group) = Tensor::Gathered.of(&self.input, of);
        let sizes = [of.channels.count, self.tile_pitch, self.tile_count, rows, columns];
        // What lies in the padding is negative and wraps round.
        let image = [of.rows.count, of.columns.count, of.origin[0] as usize, of.origin[1] as usize];
        let strides = [of.images.stride, of.rows.stride, of.columns.stride, of.channels.stride, group];
        let addresses = vec![gathered, Arg::Workspace(self.inputs)];
        self.launch(What::Inputs, addresses, sizes.into_iter().chain(image).chain(strides))
    }

    fn multiply(&self) -> Step {
        let [filters, inputs, products] = [0, self.inputs, self.products].map(Arg::Workspace);
        let [a, b] = if self.transform.channels_first { [filters, inputs] } else { [inputs, filters] };
        let scalars = match self.transform.arithmetic.ty {
            Type::F64 => [Arg::F64(1.0), Arg::F64(0.0)],
            _ => [Arg::F32(1.0), Arg::F32(0.0)],
        };
        self.product.product_of([a, b, products], scalars)
    }

    fn outputs(&self) -> Step {
        let (of, input, [rows, columns]) = (&self.of, &self.input, self.tiles);
        let (result, group) = Tensor::Result.of(input, of);
        let mut addresses = vec![Arg::Workspace(self.products), result];
        addresses.extend(input.epilogue.bias.then_some(Arg::Buffer(BIAS, 0)));
        addresses.extend(input.residual().map(|buffer| Arg::Buffer(buffer, 0)));
        let sizes = [of.outs.count, self.out_pitch, self.tile_pitch, self.tile_count, rows, columns];
        let strides = [of.result.image, of.result.row, of.result.column, of.result.out, group];
        self.launch(What::Products, addresses, sizes.into_iter().chain(of.grid).chain(strides))
    }
}

/// The products as the GEMM sees them, of tiles and outputs with their padding, and of channels.
fn products(input: &ConvInput, [tiles, outs, channels]: [usize; 3], batch: u32) -> GemmInput {
    let one = match input.layout {
        Layout::Nchw => GemmInput::new(tiles, outs, channels, input.dtype(), gemm::Layout::Nt),
        Layout::Nhwc => GemmInput::new(outs, tiles, channels, input.dtype(), gemm::Layout::Nn),
    };
    GemmInput { batch: Batch::tight(batch, &one), ..one }
}
