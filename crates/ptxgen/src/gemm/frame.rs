//! What every template of a product has in common: its sizes, its scalars, where blocks stand, and how matrices lie.
//!
//! Templates differ in how a block multiplies. Parameters, coordinates, slices of the reduction, launches, and what runs before
//! and after the product do not depend on that; they read a [`Frame`].

use super::config::{Bounds, GROUP, Raster, Split};
use crate::ir::{Arith, Axis, Builder, Inst, Module, Reg, Special, Type};
use crate::simt::Arithmetic;
use crate::target::Target;
use std::fmt::Debug;
use tilewright_ops::gemm::{Activation, Bias, Epilogue, GemmInput, ScalarClass};

/// Bytes that addresses within one operand stay below where 32 bits do.
const NARROW: u128 = 1 << 31;

/// A product, apart from how a block computes it.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// What code is made for.
    pub target: Target,
    /// Numbers.
    pub arithmetic: Arithmetic,
    /// Whether A is stored k x m.
    pub a_transposed: bool,
    /// Whether B is stored n x k.
    pub b_transposed: bool,
    /// Class of alpha.
    pub alpha: ScalarClass,
    /// Class of beta.
    pub beta: ScalarClass,
    /// What is done to results.
    pub epilogue: Epilogue,
    /// Whether offsets into an operand need 64 bits.
    pub wide: bool,
    /// Whether there is a batch of products.
    pub batched: bool,
    /// Rows and columns of C of a block.
    pub tile: [u32; 2],
    /// Steps of a stage.
    pub u: u32,
    /// Slices of the reduction over the grid.
    pub k_g: u32,
    /// Elements of one access to A, B and C.
    pub vec: [u32; 3],
    /// How slices are summed.
    pub split: Split,
    /// Which way neighbouring blocks lie.
    pub raster: Raster,
    /// Whether accesses are predicated.
    pub bounds: Bounds,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
}

/// A template of products: what the code of one launch depends on, and the code.
pub trait Template: Clone + Debug {
    /// What it has in common with the others.
    fn frame(&self) -> Frame;

    /// The module of the product.
    fn module(&self) -> Module;
}

/// Elements of a matrix: how wide they are, and whether offsets need 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements {
    pub(crate) bytes: u32,
    pub(crate) wide: bool,
}

/// Registers that hold the parameters.
#[derive(Clone, Copy)]
pub(crate) struct Params {
    pub(crate) a: Reg,
    pub(crate) b: Reg,
    pub(crate) c: Reg,
    pub(crate) m: Reg,
    pub(crate) n: Reg,
    pub(crate) k: Reg,
    pub(crate) lda: Reg,
    pub(crate) ldb: Reg,
    pub(crate) ldc: Reg,
    pub(crate) alpha: Reg,
    pub(crate) beta: Reg,
    /// Steps of a slice of the reduction.
    slice: Option<Reg>,
    /// Bytes from one product of a batch to the next, of A, B and C.
    strides: Option<[Reg; 3]>,
    /// Bytes of the partial sums of one slice, where a kernel of its own sums them.
    slab: Option<Reg>,
    /// Where partial sums lie that the last block of a tile sums.
    pub(crate) work: Option<Work>,
    /// What is added to results, where they are stored.
    pub(crate) bias: Option<Reg>,
}

/// Partial sums beside C.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    /// Those of the first slice, and of the block's own.
    pub(crate) first: Reg,
    own: Reg,
    /// Bytes from slice to slice.
    pub(crate) slab: Reg,
}

impl Work {
    /// The same of a block that has the slice of a number.
    fn of_slice(self, b: &mut Builder, number: Reg) -> Self {
        let number = b.widen(number);
        let offset = b.arith(Arith::Mul, Type::U64, number, self.slab);
        Self { own: b.add(Type::U64, self.first, offset), ..self }
    }
}

impl Params {
    /// The same of a block that has the slice of a number.
    pub(crate) fn of_slice(&self, b: &mut Builder, number: Reg) -> Self {
        Self { work: self.work.map(|work| work.of_slice(b, number)), ..*self }
    }

    /// As blocks store partial sums that one of them will sum; `None` where they store something else.
    pub(crate) fn of_partial_sums(&self) -> Option<Self> {
        self.work.map(|work| Self { c: work.own, ldc: self.m, bias: None, ..*self })
    }
}

/// Where a block stands.
pub(crate) struct Block {
    /// Index of the thread.
    pub(crate) tid: Reg,
    /// First row and column of the block's tile.
    pub(crate) m0: Reg,
    pub(crate) n0: Reg,
    /// Which slice of the reduction; `None` where there is one.
    pub(crate) slice: Option<Reg>,
    /// First step of the slice; `None` for the first.
    pub(crate) k0: Option<Reg>,
    /// Stages of the slice, at least one.
    pub(crate) trips: Reg,
    /// Steps of the first stage: the remainder comes first, so that all others are full. `None` where it is full too.
    pub(crate) first: Option<Reg>,
}

/// Whether an operand of this input is so large, with tiles that end so many elements beyond its edges, that offsets need 64 bits.
pub(crate) fn is_wide(input: &GemmInput, beyond: u32) -> bool {
    let [a, b, c] = input.operand_types().map(|dtype| dtype.size() as u128);
    let extent = |ld: usize, columns: usize, bytes: u128| (ld as u128) * (columns as u128 + u128::from(beyond)) * bytes;
    let operands = extent(input.lda, input.a_stored().1, a).max(extent(input.ldb, input.b_stored().1, b));
    // Partial sums may be wider than results.
    let c = c.max(input.types.accumulator.size().max(4) as u128);
    operands.max(extent(input.ldc.max(input.m), input.n, c)) >= NARROW
}

impl Frame {
    /// Whether shared memory is more than can be declared in the code.
    pub fn dynamic_shared(&self) -> bool {
        self.shared_bytes > 48 << 10
    }

    pub(crate) fn checked(&self) -> bool {
        self.bounds == Bounds::Checked
    }

    /// Whether what blocks store is summed by a kernel of its own.
    pub(crate) fn ordered(&self) -> bool {
        self.k_g > 1 && self.split == Split::Ordered
    }

    /// Whether the kernel that sums what blocks store begins beneath them: from sm_90 it can wait by itself.
    pub(crate) fn overlaps(&self) -> bool {
        self.ordered() && self.target.sm() >= 90
    }

    /// Lets the next launch begin, where it overlaps: its blocks are there when the last of these have stored. What orders
    /// memory is that they wait, whenever they begin.
    pub(crate) fn release(&self, b: &mut Builder) {
        if self.overlaps() {
            b.push(Inst::GridRelease);
        }
    }

    /// Whether a fixed number of blocks share the stages of all tiles.
    pub(crate) fn streams(&self) -> bool {
        self.split == Split::Stream
    }

    /// Whether the last block of each tile sums what all of them store beside C.
    pub(crate) fn takes_tickets(&self) -> bool {
        self.k_g > 1 && self.split == Split::Ticket || self.streams()
    }

    /// The same of blocks that store partial sums: of more than one slice, whatever divides the reduction.
    pub(crate) fn partial(&self) -> Self {
        Self { split: Split::Ordered, k_g: self.k_g.max(2), ..*self }
    }

    /// The same of a block that has the whole sum.
    pub(crate) fn whole(&self) -> Self {
        Self { split: Split::Ordered, k_g: 1, ..*self }
    }

    /// Whether partial sums lie in the workspace.
    pub(crate) fn uses_workspace(&self) -> bool {
        self.ordered() || self.takes_tickets()
    }

    /// The grid of so many rows and columns of tiles, without slices.
    pub(crate) fn grid(&self, rows: u32, columns: u32) -> [u32; 2] {
        match self.raster {
            Raster::M => [rows, columns],
            Raster::N => [columns, rows],
            Raster::Grouped => [rows * GROUP, columns / GROUP],
        }
    }

    /// The number of the block's tile.
    pub(crate) fn tile_number(&self, b: &mut Builder) -> Reg {
        let [x, y] = [Axis::X, Axis::Y].map(|axis| b.special(Special::Ctaid(axis)));
        let across = b.special(Special::Nctaid(Axis::X));
        let rows = b.arith(Arith::Mul, Type::U32, y, across);
        b.add(Type::U32, rows, x)
    }

    /// Whether blocks add to C.
    pub(crate) fn atomic(&self) -> bool {
        self.k_g > 1 && self.split == Split::Atomic
    }

    /// Whether the store of C reads it.
    pub(crate) fn reads_c(&self) -> bool {
        self.k_g == 1 && self.beta != ScalarClass::Zero
    }

    /// Whether the product itself adds a bias.
    pub(crate) fn adds_bias(&self) -> bool {
        self.epilogue.bias != Bias::None && !self.ordered()
    }

    /// The parameter that is the bias.
    pub(crate) fn bias(&self, b: &mut Builder) -> Reg {
        b.buffer("bias", self.results().bytes)
    }

    pub(crate) fn relu(&self) -> bool {
        self.epilogue.activation == Activation::Relu
    }

    pub(crate) fn operands(&self) -> Elements {
        Elements { bytes: self.arithmetic.bytes(), wide: self.wide }
    }

    pub(crate) fn results(&self) -> Elements {
        Elements { bytes: self.arithmetic.result_bytes(), wide: self.wide }
    }

    pub(crate) fn sums(&self) -> Elements {
        Elements { bytes: self.arithmetic.sum_bytes(), wide: self.wide }
    }

    /// What blocks store: results, or partial sums.
    pub(crate) fn stored(&self) -> Elements {
        if self.ordered() { self.sums() } else { self.results() }
    }

    /// The parameters of the product.
    pub(crate) fn params(&self, b: &mut Builder) -> Params {
        let (ty, bytes) = (self.arithmetic.ty, self.arithmetic.bytes());
        let [vec_a, vec_b, vec_c] = self.vec;
        let c_bytes = vec_c * self.stored().bytes;
        // A size that vectors lie along is a multiple of them; both may lie along k.
        let along_k = |yes: bool, vec: u32| if yes { vec } else { 1 };
        let k = along_k(self.a_transposed, vec_a).max(along_k(!self.b_transposed, vec_b));
        Params {
            a: b.buffer("a", vec_a * bytes),
            b: b.buffer("b", vec_b * bytes),
            c: b.buffer("c", c_bytes),
            // Columns of partial sums are as long.
            m: b.param("m", Type::U32, if self.takes_tickets() { vec_c } else { 1 }),
            n: b.param("n", Type::U32, 1),
            k: b.param("k", Type::U32, k),
            lda: b.param("lda", Type::U32, vec_a),
            ldb: b.param("ldb", Type::U32, vec_b),
            ldc: b.param("ldc", Type::U32, vec_c),
            alpha: b.param("alpha", ty, 1),
            beta: b.param("beta", ty, 1),
            slice: (self.k_g > 1).then(|| b.param("slice", Type::U32, 1 << self.u.trailing_zeros())),
            strides: self.batched.then(|| {
                [("stride_a", vec_a * bytes), ("stride_b", vec_b * bytes), ("stride_c", c_bytes)]
                    .map(|(name, multiple)| b.param(name, Type::U64, multiple))
            }),
            slab: self.ordered().then(|| b.param("slab", Type::U64, c_bytes)),
            work: self.takes_tickets().then(|| {
                let bytes = vec_c * self.sums().bytes;
                let first = b.buffer("work", bytes);
                Work { first, own: first, slab: b.param("slab", Type::U64, bytes) }
            }),
            bias: self.adds_bias().then(|| self.bias(b)),
        }
    }

    /// The thread, and the first row and column of its block's tile.
    pub(crate) fn corner(&self, b: &mut Builder) -> [Reg; 3] {
        let tid = b.special(Special::Tid);
        let [x, y] = [Axis::X, Axis::Y].map(|axis| b.special(Special::Ctaid(axis)));
        let (block_m, block_n) = match self.raster {
            Raster::M => (x, y),
            Raster::N => (y, x),
            Raster::Grouped => {
                let within = b.rem(x, GROUP).unwrap_or(x);
                (b.div(x, GROUP), b.scale_add(Some(y), GROUP, within))
            }
        };
        [tid, b.scale(block_m, self.tile[0]), b.scale(block_n, self.tile[1])]
    }

    /// Where a block stands, of a thread and a tile that are known; moves operands there.
    pub(crate) fn block(&self, b: &mut Builder, params: &mut Params, [tid, m0, n0]: [Reg; 3]) -> Block {
        let (slice, k0) = self.slices(b, params).unzip();
        let (trips, first) = self.stages(b, params, k0);
        Block { tid, m0, n0, slice, k0, trips, first }
    }

    /// Moves operands to the block's product of the batch and its slice of the reduction; returns the slice and its first step.
    fn slices(&self, b: &mut Builder, params: &mut Params) -> Option<(Reg, Reg)> {
        let k_g = self.k_g;
        if k_g == 1 && !self.batched {
            return None;
        }
        let z = b.special(Special::Ctaid(Axis::Z));
        if let Some([a, bb, c]) = params.strides {
            let batch = b.div(z, k_g);
            let mut advance = |base: Reg, stride: Reg| {
                let batch = b.widen(batch);
                let offset = b.arith(Arith::Mul, Type::U64, batch, stride);
                b.add(Type::U64, base, offset)
            };
            (params.a, params.b) = (advance(params.a, a), advance(params.b, bb));
            if params.slab.is_none() {
                params.c = advance(params.c, c);
            }
        }
        if let Some(slab) = params.slab {
            // Partial sums lie slice after slice, product after product.
            let z = b.widen(z);
            let offset = b.arith(Arith::Mul, Type::U64, z, slab);
            params.c = b.add(Type::U64, params.c, offset);
        }
        // There is one product.
        params.work = params.work.map(|work| work.of_slice(b, z));
        let slice = params.slice?;
        let index = if self.batched { b.rem(z, k_g).unwrap_or(z) } else { z };
        Some((index, b.arith(Arith::Mul, Type::U32, index, slice)))
    }

    /// Number of stages of the slice, and steps of the first one.
    fn stages(&self, b: &mut Builder, params: &Params, k0: Option<Reg>) -> (Reg, Option<Reg>) {
        let u = self.u;
        let len = match (k0, params.slice) {
            (Some(k0), Some(slice)) => {
                let rest = b.sub(Type::U32, params.k, k0);
                b.arith(Arith::Min, Type::U32, rest, slice)
            }
            _ => params.k,
        };
        if !self.checked() {
            return (b.div(len, u), None);
        }
        let more = b.add(Type::U32, len, u - 1);
        let trips = b.div(more, u);
        let full = b.scale(trips, u);
        let above = b.add(Type::U32, len, u);
        (trips, Some(b.sub(Type::U32, above, full)))
    }
}

impl Elements {
    /// The address of an element: `along` in the contiguous direction, `across` times the leading dimension.
    pub(crate) fn at(self, b: &mut Builder, base: Reg, (along, across): (Option<Reg>, Option<Reg>), ld: Reg) -> Reg {
        let bytes = self.bytes;
        let offset = match (along, across) {
            (None, None) => return base,
            (Some(along), None) => return b.mad_wide(along, bytes, base),
            (along, Some(across)) if self.wide => {
                let product = b.arith(Arith::MulWide, Type::U32, across, ld);
                let along = along.map(|along| b.widen(along));
                along.map_or(product, |along| b.add(Type::U64, product, along))
            }
            (along, Some(across)) => {
                let product = b.arith(Arith::Mul, Type::U32, across, ld);
                let offset = along.map_or(product, |along| b.add(Type::U32, product, along));
                return b.mad_wide(offset, bytes, base);
            }
        };
        let offset = b.arith(Arith::Shl, Type::U64, offset, bytes.trailing_zeros());
        b.add(Type::U64, base, offset)
    }

    /// Bytes of a number of columns of a stored matrix.
    pub(crate) fn columns(self, b: &mut Builder, ld: Reg, count: u32) -> Reg {
        let bytes = count * self.bytes;
        if self.wide {
            return b.arith(Arith::MulWide, Type::U32, ld, bytes);
        }
        let narrow = b.scale(ld, bytes);
        b.widen(narrow)
    }

    /// Bytes of as many columns as a register says.
    pub(crate) fn columns_of(self, b: &mut Builder, count: Reg, ld: Reg) -> Reg {
        if self.wide {
            let elements = b.arith(Arith::MulWide, Type::U32, count, ld);
            return b.arith(Arith::Shl, Type::U64, elements, self.bytes.trailing_zeros());
        }
        let elements = b.arith(Arith::Mul, Type::U32, count, ld);
        b.arith(Arith::MulWide, Type::U32, elements, self.bytes)
    }
}
