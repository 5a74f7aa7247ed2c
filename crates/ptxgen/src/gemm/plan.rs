//! A legal (device, input, configuration), and the program that comes of it.

use super::blueprint::Blueprint;
use super::config::{Raster, Split};
use super::finish::{self, Finish};
use super::{arithmetic, emit};
use crate::print::print;
use crate::target::Target;
use tilewright_core::dtype::DType;
use tilewright_core::program::{Arg, Code, Program, Step};
use tilewright_ops::gemm::{A, ALPHA, B, BETA, C, GemmInput, ScalarClass};

use super::config::GemmConfig;
use crate::ir::Module;

/// Several products of one shape, their operands at constant distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Batch {
    /// How many, at least one.
    pub count: u32,
    /// Elements from one product's operand to the next, of A, B and C. Those of C must not overlap.
    pub strides: [u64; 3],
}

impl Batch {
    /// A single product.
    pub const ONE: Self = Self { count: 1, strides: [0; 3] };
}

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct GemmPlan {
    pub(crate) blueprint: Blueprint,
    input: GemmInput,
    batch: Batch,
}

/// Bytes that addresses within one operand stay below where 32 bits do.
const NARROW: u128 = 1 << 31;

impl GemmPlan {
    /// Legality has been checked by the caller.
    pub(super) fn new(target: Target, input: &GemmInput, config: &GemmConfig, batch: Batch) -> Self {
        let arithmetic = if input.dtype == DType::F64 { &arithmetic::F64 } else { &arithmetic::F32 };
        let config = config.clone();
        // Addresses beyond the edges are computed, though not used: up to a tile, and the stage after the last.
        let beyond = u128::from(config.m_l.max(config.n_l) + config.u);
        let (a, b) = (input.a_stored(), input.b_stored());
        let extent = |ld: usize, columns: usize| (ld as u128) * (columns as u128 + beyond) * input.dtype.size() as u128;
        let wide =
            [extent(input.lda, a.1), extent(input.ldb, b.1), extent(input.ldc.max(input.m), input.n)].into_iter().any(|e| e >= NARROW);
        let blueprint = Blueprint {
            target,
            arithmetic,
            config,
            a_transposed: input.layout.a_transposed(),
            b_transposed: input.layout.b_transposed(),
            alpha: input.alpha,
            beta: input.beta,
            wide,
            batched: batch.count > 1,
        };
        Self { blueprint, input: input.clone(), batch }
    }

    /// What the code is specialised to.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// The module of the product, as a tree.
    pub fn module(&self) -> Module {
        emit::module(&self.blueprint)
    }

    /// x
    pub fn finish_module(&self, sum: bool) -> Module {
        finish::module(&self.blueprint, if sum { Finish::Sum } else { Finish::Scale })
    }

    fn ordered(&self) -> bool {
        self.blueprint.config.k_g > 1 && self.blueprint.config.split == Split::Ordered
    }

    fn atomic(&self) -> bool {
        self.blueprint.config.k_g > 1 && self.blueprint.config.split == Split::Atomic
    }

    /// Steps of the reduction of one slice: whole stages.
    pub fn slice(&self) -> u32 {
        let c = &self.blueprint.config;
        (self.input.k as u32).div_ceil(c.k_g).next_multiple_of(c.u)
    }

    /// Blocks of the product.
    pub fn grid(&self) -> [u32; 3] {
        let c = &self.blueprint.config;
        let (m, n) = ((self.input.m as u32).div_ceil(c.m_l), (self.input.n as u32).div_ceil(c.n_l));
        let z = c.k_g * self.batch.count;
        if c.raster == Raster::M { [m, n, z] } else { [n, m, z] }
    }

    /// Bytes of the partial sums of one slice.
    fn slab(&self) -> u64 {
        self.input.m as u64 * self.input.n as u64 * self.input.dtype.size() as u64
    }

    fn strides(&self) -> [u64; 3] {
        self.batch.strides.map(|s| s * self.input.dtype.size() as u64)
    }

    /// The program on buffers that begin so many bytes before the operands. Offsets must keep the alignment of the input.
    pub fn program(&self, offsets: [u64; 3]) -> Program {
        let none = self.input.m == 0 || self.input.n == 0;
        let mut steps = Vec::new();
        if none {
            return Program { steps, workspace: 0 };
        }
        let scales = self.atomic() || !self.input.multiplies();
        if scales && self.input.beta != ScalarClass::One {
            steps.push(self.finish(Finish::Scale, offsets[C]));
        }
        if self.input.multiplies() {
            steps.push(self.product(offsets));
        }
        if self.ordered() {
            steps.push(self.finish(Finish::Sum, offsets[C]));
        }
        let slabs = u64::from(self.blueprint.config.k_g) * u64::from(self.batch.count);
        Program { steps, workspace: if self.ordered() { self.slab() * slabs } else { 0 } }
    }

    fn product(&self, offsets: [u64; 3]) -> Step {
        let (bp, input) = (&self.blueprint, &self.input);
        let module = self.module();
        let (c, ldc) = match self.ordered() {
            true => (Arg::Workspace(0), input.m),
            false => (Arg::Buffer(C, offsets[C]), input.ldc),
        };
        let mut args = vec![Arg::Buffer(A, offsets[A]), Arg::Buffer(B, offsets[B]), c];
        args.extend([input.m, input.n, input.k, input.lda, input.ldb, ldc].map(|x| Arg::U32(x as u32)));
        args.extend([Arg::Scalar(ALPHA), Arg::Scalar(BETA)]);
        if bp.config.k_g > 1 {
            args.push(Arg::U32(self.slice()));
        }
        if bp.batched {
            args.extend(self.strides().map(Arg::U64));
        }
        if self.ordered() {
            args.push(Arg::U64(self.slab()));
        }
        let shared_bytes = if bp.dynamic_shared() { bp.shared_bytes() } else { 0 };
        launch(&module, self.grid(), shared_bytes, args)
    }

    fn finish(&self, finish: Finish, offset: u64) -> Step {
        let input = &self.input;
        let module = finish::module(&self.blueprint, finish);
        let lines = (input.n as u32).div_ceil(finish::COLUMNS);
        let blocks = lines.min(65_535);
        let grid = [(input.m as u32).div_ceil(finish::ROWS), blocks, self.batch.count];
        let mut args = vec![Arg::Buffer(C, offset)];
        if finish == Finish::Sum {
            args.extend([Arg::Workspace(0), Arg::U64(self.slab())]);
        }
        args.extend([input.m, input.n, input.ldc].map(|x| Arg::U32(x as u32)));
        args.extend([Arg::Scalar(ALPHA), Arg::Scalar(BETA), Arg::U32(lines.div_ceil(blocks))]);
        if self.blueprint.batched {
            args.push(Arg::U64(self.strides()[C]));
        }
        launch(&module, grid, 0, args)
    }
}

fn launch(module: &Module, grid: [u32; 3], shared_bytes: u32, args: Vec<Arg>) -> Step {
    let code = Code::Ptx { text: print(module), entry: module.entry.name.clone() };
    Step::Launch { code, grid, block: [module.entry.threads, 1, 1], shared_bytes, args }
}
