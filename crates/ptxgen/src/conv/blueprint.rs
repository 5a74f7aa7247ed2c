//! Everything that the code of a convolution depends on, and what follows from it.
//!
//! Sizes and strides are not among it: they are parameters of the code, so that one module serves every input of a class, and all
//! the correlations of an input.

use super::config::ConvConfig;
use super::facts::Facts;
use super::space::Description;
use crate::simt::{Arithmetic, Arrangement, Loader, chunk};
use crate::target::Target;
use tilewright_core::space::Values;
use tilewright_ops::conv::{Activation, ConvInput, Direction, Epilogue};

/// What code is specialised to.
#[derive(Clone, Debug)]
pub struct Blueprint {
    /// What it runs on.
    pub target: Target,
    /// Numbers.
    pub arithmetic: Arithmetic,
    /// Tuning parameters.
    pub config: ConvConfig,
    /// Which tensor is written; for names only.
    pub direction: Direction,
    /// What is done to results.
    pub epilogue: Epilogue,
    /// Whether there is more than one group.
    pub grouped: bool,
    /// Whether images, and not columns, are the innermost of a tile's positions.
    pub images_first: bool,
    /// Whether outputs are neighbours in the result.
    pub outs_first: bool,
    /// Whether a tap may fall beyond the columns of an image.
    pub columns_checked: bool,
    pub(crate) loader_f: Loader,
    pub(crate) loader_g: Loader,
    /// Bytes from the beginning of a stage to what is gathered.
    pub(crate) tile_f_bytes: u32,
    /// Bytes of one stage.
    pub(crate) stage_bytes: u32,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Registers that a thread needs.
    pub registers_needed: u32,
    /// Most registers of a thread of such a block.
    pub(crate) register_limit: u32,
    /// Threads of a group along images, rows and columns, and along outputs.
    pub(crate) along: [u32; 3],
    pub(crate) along_k: u32,
}

/// What the space derives of the code, besides its loaders.
pub(super) const LAYOUT: [&str; 10] = [
    "t_k",
    "t_n",
    "t_p",
    "t_q",
    "threads",
    "tile_f_bytes",
    "stage_bytes",
    "shared_bytes",
    "registers_needed",
    "register_limit",
];

impl Blueprint {
    /// What an input and a configuration need of the code; `None` for a point of another space.
    pub(super) fn new(target: Target, input: &ConvInput, at: &Values<'_>) -> Option<Self> {
        let (names, config, facts) = (Description::get(), ConvConfig::of(at)?, Facts::of(input));
        let [t_k, t_n, t_p, t_q, threads, tile_f_bytes, stage_bytes, shared_bytes, registers_needed, register_limit] =
            at.ints(names.layout)?;
        let [loads_f, loads_g] = names.loaders.map(|names| at.ints(names));
        let along_steps = config.scan == super::Scan::Steps;
        Some(Self {
            target,
            arithmetic: Arithmetic::of(input.types),
            direction: input.direction,
            epilogue: input.epilogue,
            grouped: input.groups > 1,
            images_first: facts.images_first,
            outs_first: facts.outs_first,
            columns_checked: facts.columns_checked,
            loader_f: Loader::new(facts.filter_along, config.vec_f, loads_f?),
            loader_g: Loader::new(along_steps, config.vec_g, loads_g?),
            tile_f_bytes,
            stage_bytes,
            shared_bytes,
            threads,
            registers_needed,
            register_limit,
            along: [t_n, t_p, t_q],
            along_k: t_k,
            config,
        })
    }

    /// Images, rows and columns (0, 1, 2) from the innermost of a tile's positions to the outermost.
    pub(crate) fn order(&self) -> [usize; 3] {
        if self.images_first { [0, 2, 1] } else { [2, 1, 0] }
    }

    /// Threads of a group along positions.
    pub(crate) fn along_places(&self) -> u32 {
        self.along.iter().product()
    }

    /// Neighbouring outputs and positions of a thread: what one shared load fetches.
    pub(crate) fn chunks(&self) -> [u32; 2] {
        let widest = self.arithmetic.widest();
        [chunk(self.config.k_s, widest), chunk(self.config.thread()[self.order()[0]], widest)]
    }

    /// Threads side by side write neighbours of the result: outputs, or positions.
    pub(crate) fn arrangement(&self) -> Arrangement {
        let ([chunk_k, chunk_at], [t_k, t_at]) = (self.chunks(), [self.along_k, self.along_places()]);
        match self.outs_first {
            true => Arrangement::new([t_k, t_at], [chunk_k, chunk_at]),
            false => Arrangement::new([t_at, t_k], [chunk_at, chunk_k]),
        }
    }

    /// Whether shared memory is more than can be declared in the code.
    pub fn dynamic_shared(&self) -> bool {
        self.shared_bytes > 48 << 10
    }

    /// Whether blocks store partial sums.
    pub(crate) fn partial(&self) -> bool {
        self.config.c_g > 1
    }

    pub(crate) fn relu(&self) -> bool {
        self.epilogue.activation == Activation::Relu
    }
}
