//! Everything that the code of a product depends on, and what follows from it.

use super::config::MmaConfig;
use super::emit;
use super::space::Names;
use super::tile::Tile;
use super::variants::{self, Fetch, Multiplied};
use crate::gemm::frame::is_wide;
use crate::gemm::{Frame, Template};
use crate::ir::{MmaKind, Module};
use crate::simt::{Arithmetic, Load, Loader};
use crate::target::Target;
use tilewright_core::space::Values;
use tilewright_ops::gemm::GemmInput;

/// What code is specialised to.
#[derive(Clone, Debug)]
pub struct Blueprint {
    /// What it has in common with other products.
    pub frame: Frame,
    /// The instruction that multiplies.
    pub kind: MmaKind,
    /// What it multiplies of an element.
    pub multiplied: Multiplied,
    /// Tuning parameters.
    pub config: MmaConfig,
    /// How the threads share the loads of A and of B.
    pub(super) loaders: [Loader; 2],
    /// Bytes from the beginning of a stage to its tile of B.
    pub(super) tile_a_bytes: u32,
    /// Bytes of one stage.
    pub(super) stage_bytes: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Registers that a thread needs.
    pub registers_needed: u32,
    /// Most registers of a thread of such a block.
    pub(super) register_limit: u32,
}

/// What the space derives of the code, besides its loaders.
pub(super) const LAYOUT: [&str; 7] =
    ["slices", "threads", "tile_a_bytes", "stage_bytes", "shared_bytes", "registers_needed", "register_limit"];

impl Blueprint {
    /// What an input and a configuration need of the code; `None` for a point of another space.
    pub(super) fn new(target: Target, input: &GemmInput, names: &Names, at: &Values<'_>) -> Option<Self> {
        let config = MmaConfig::of(names, at)?;
        let (a_transposed, b_transposed) = (input.layout.a_transposed(), input.layout.b_transposed());
        let [slices, threads, tile_a_bytes, stage_bytes, shared_bytes, registers_needed, register_limit] =
            at.ints(names.layout)?;
        let [loads_a, loads_b] = names.loaders.map(|names| at.ints(names));
        let loaders =
            [Loader::new(a_transposed, config.vec_a, loads_a?), Loader::new(!b_transposed, config.vec_b, loads_b?)];
        let frame = Frame {
            target,
            arithmetic: Arithmetic::of(variants::worked_in(input.types)),
            a_transposed,
            b_transposed,
            alpha: input.alpha,
            beta: input.beta,
            epilogue: input.epilogue,
            // Addresses beyond the edges are computed, though not used: up to a tile, and the stage after the last.
            wide: is_wide(input, config.m_l.max(config.n_l) + config.u),
            batched: input.batch.count > 1,
            tile: [config.m_l, config.n_l],
            u: config.u,
            k_g: slices,
            vec: [config.vec_a, config.vec_b, config.vec_c],
            split: config.split,
            raster: config.raster,
            bounds: config.bounds,
            shared_bytes,
        };
        let kind = variants::kind(input.dtype(), target);
        Some(Self {
            frame,
            kind,
            multiplied: Multiplied::of(input),
            loaders,
            tile_a_bytes,
            stage_bytes,
            threads,
            registers_needed,
            register_limit,
            config,
        })
    }

    pub(super) fn is_async(&self) -> bool {
        self.config.load == Load::Async
    }

    /// Warps along m and n.
    pub(super) fn warps(&self) -> [u32; 2] {
        [self.config.m_l / self.config.m_w, self.config.n_l / self.config.n_w]
    }

    /// How fragments of A, or of B, are read.
    pub(super) fn fetch(&self, is_a: bool) -> Fetch {
        Fetch::of(self.frame.arithmetic.bytes(), self.loaders[usize::from(!is_a)].along_k)
    }

    /// Whether rows of A, or columns of B, are dealt to fragments in turns: see [`super::transpose`].
    pub(super) fn is_dealt(&self, is_a: bool) -> bool {
        self.fetch(is_a) == Fetch::Bytes
    }

    /// How a tile of A, or of B, lies in shared memory.
    pub(super) fn tile(&self, is_a: bool) -> Tile {
        let pitch = self.loaders[usize::from(!is_a)].pitch * self.frame.arithmetic.bytes();
        Tile { pitch, grain: self.fetch(is_a).grain() }
    }
}

impl Template for Blueprint {
    fn frame(&self) -> Frame {
        self.frame
    }

    fn module(&self) -> Module {
        emit::module(self)
    }
}
