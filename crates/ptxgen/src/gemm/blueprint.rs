//! Everything that the code of a GEMM depends on, and what follows from it.
//!
//! Sizes are not among it: they are parameters of the code, so that one module serves every input of a class with as many
//! slices of the reduction.

use super::config::{Bounds, GemmConfig};
use super::emit;
use super::frame::{Frame, Template, is_wide};
use super::space::Names;
use crate::ir::Module;
use crate::simt::{Arithmetic, Arrangement, Load, Loader, Rows, chunk};
use crate::target::Target;
use tilewright_core::space::Values;
use tilewright_ops::gemm::{Epilogue, GemmInput, ScalarClass};

/// What code is specialised to.
#[derive(Clone, Debug)]
pub struct Blueprint {
    /// What it runs on.
    pub target: Target,
    /// Numbers.
    pub arithmetic: Arithmetic,
    /// Tuning parameters.
    pub config: GemmConfig,
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
    /// Slices of the reduction over the grid.
    pub(super) slices: u32,
    /// Which thread of a group computes what.
    pub(crate) arrangement: Arrangement,
    pub(crate) loader_a: Loader,
    pub(crate) loader_b: Loader,
    /// Bytes from the beginning of a stage to its tile of B.
    pub(crate) tile_a_bytes: u32,
    /// Bytes of one stage.
    pub(crate) stage_bytes: u32,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Registers that a thread needs.
    pub registers_needed: u32,
    /// Most registers of a thread of such a block, of which a multiprocessor holds so many.
    pub(crate) register_cap: u32,
    /// Whether numbers are computed so slowly that there is nothing to hide.
    pub(crate) scarce: bool,
}

/// What the space derives of the code, besides its loaders.
pub(super) const LAYOUT: [&str; 12] = [
    "slices",
    "t_m",
    "t_n",
    "threads",
    "tile_a_bytes",
    "stage_bytes",
    "shared_bytes",
    "registers_needed",
    "register_cap",
    "scarce",
    "deep_a",
    "deep_b",
];

impl Blueprint {
    /// What an input and a configuration need of the code; `None` for a point of another space.
    pub(crate) fn new(target: Target, input: &GemmInput, names: &Names, at: &Values<'_>) -> Option<Self> {
        let config = GemmConfig::of(names, at)?;
        let (layout, types) = (input.layout, input.types);
        let arithmetic = Arithmetic::of(types).conjugating([layout.a_conjugated(), layout.b_conjugated()]);
        // Addresses beyond the edges are computed, though not used: up to a tile, and the stage after the last.
        let wide = is_wide(input, config.m_l.max(config.n_l) + config.u);
        let (a_transposed, b_transposed) = (layout.a_transposed(), layout.b_transposed());
        let [
            slices,
            t_m,
            t_n,
            threads,
            tile_a_bytes,
            stage_bytes,
            shared_bytes,
            registers_needed,
            register_cap,
            scarce,
            deep_a,
            deep_b,
        ] = at.ints(names.layout)?;
        let [loads_a, loads_b] = names.loaders.map(|names| at.ints(names));
        let chunks = [config.m_s, config.n_s].map(|of| chunk(of, arithmetic.widest()));
        let [rows_a, rows_b] = [(deep_a, config.m_l, chunks[0]), (deep_b, config.n_l, chunks[1])]
            .map(|(deep, count, chunk)| (deep == 1).then_some(Rows { count, chunk }));
        Some(Self {
            target,
            arithmetic,
            a_transposed,
            b_transposed,
            alpha: input.alpha,
            beta: input.beta,
            epilogue: input.epilogue,
            wide,
            batched: input.batch.count > 1,
            slices,
            arrangement: Arrangement::new([t_m, t_n], chunks),
            loader_a: Loader::new(a_transposed, config.vec_a, loads_a?).keeping(rows_a),
            loader_b: Loader::new(!b_transposed, config.vec_b, loads_b?).keeping(rows_b),
            tile_a_bytes,
            stage_bytes,
            shared_bytes,
            threads,
            registers_needed,
            register_cap,
            scarce: scarce == 1,
            config,
        })
    }

    /// Whether shared memory is more than can be declared in the code.
    pub fn dynamic_shared(&self) -> bool {
        self.shared_bytes > 48 << 10
    }

    /// Registers of a column of a thread's sums.
    pub(crate) fn column(&self) -> usize {
        self.config.m_s as usize * self.arithmetic.parts()
    }

    pub(crate) fn is_async(&self) -> bool {
        self.config.load == Load::Async
    }

    pub(crate) fn checked(&self) -> bool {
        self.config.bounds == Bounds::Checked
    }
}

impl Template for Blueprint {
    fn frame(&self) -> Frame {
        let config = &self.config;
        Frame {
            target: self.target,
            arithmetic: self.arithmetic,
            a_transposed: self.a_transposed,
            b_transposed: self.b_transposed,
            alpha: self.alpha,
            beta: self.beta,
            epilogue: self.epilogue,
            wide: self.wide,
            batched: self.batched,
            tile: [config.m_l, config.n_l],
            u: config.u,
            k_g: self.slices,
            vec: [config.vec_a, config.vec_b, config.vec_c],
            split: config.split,
            raster: config.raster,
            bounds: config.bounds,
            shared_bytes: self.shared_bytes,
        }
    }

    fn module(&self) -> Module {
        emit::module(self)
    }
}
