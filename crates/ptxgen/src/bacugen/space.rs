//! The parameter space: BACUGen's nine parameters with its constraints, and what our code needs besides.
//!
//! The paper's constraints stand in `tilewright_sampler::bacugen`, with how they are read. Of its guidelines those of Table 1 that are the
//! same for all types hold: 512 threads and two blocks a multiprocessor. The reuse of registers, which Table 1 has for large square
//! matrices, is asked to be 1: section 8 of the paper says that smaller tiles are faster where matrices are small or flat.

use crate::gemm::space::{on_grid, tiles};
use crate::gemm::{Names, features, registers};
use std::sync::OnceLock;
use tilewright_core::space::{Name, Param, ParamSpace, RuleGroup, SpaceBuilder, SpaceError};
use tilewright_sampler::bacugen;

/// The grids of threads, which a model sees beside what it sees of every product.
pub(super) const GRIDS: [&str; 6] = ["m_dim", "n_dim", "m_dim_a", "n_dim_a", "m_dim_b", "n_dim_b"];

/// The space with the names that code reads, found once.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) space: ParamSpace,
    pub(super) names: Names,
    pub(super) grids: [Name; GRIDS.len()],
}

impl Description {
    /// The one there is: the space is a constant of this crate, and a test builds it.
    pub(super) fn get() -> &'static Self {
        static DESCRIPTION: OnceLock<Description> = OnceLock::new();
        DESCRIPTION.get_or_init(|| {
            let space = space().unwrap_or_else(|e| unreachable!("the space of gemm.bacugen: {e}"));
            let name = |n: &str| space.name(n).unwrap_or_else(|| unreachable!("gemm.bacugen has no parameter {n}"));
            let (names, grids) = (Names::of(&space), GRIDS.map(name));
            Self { space, names, grids }
        })
    }
}

/// Of A and of B, the length of a tile in the direction that is contiguous in memory, and in the other.
const STORED: [[&str; 2]; 2] = [
    ["(k_blk if transpose_a else m_blk)", "(m_blk if transpose_a else k_blk)"],
    ["(n_blk if transpose_b else k_blk)", "(k_blk if transpose_b else n_blk)"],
];

/// Threads along a dimension of a grid, elements of a tile along rows or columns, and steps of the reduction, within the ranges of the
/// paper's loops. Those take every number; here are the powers of two and three times as much, and multiples of 16. A search goes over all
/// legal points for every input, and sizes that warps and lines of memory do not divide are many and slow.
const GRID: [i64; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
const TILE: [i64; 22] = [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 256];
const STEPS: [i64; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

fn parameters() -> SpaceBuilder {
    let space = ParamSpace::builder()
        .param(Param::ints("n_dim", GRID))
        .param(Param::ints("m_dim", GRID))
        .param(Param::ints("k_blk", STEPS))
        .param(Param::ints("n_blk", TILE))
        .param(Param::ints("m_blk", TILE));
    let loads = ["m_dim_a", "n_dim_a", "m_dim_b", "n_dim_b"];
    let space = loads.into_iter().fold(space, |space, name| space.param(Param::ints(name, GRID)));
    space.param(Param::words("load", ["nc", "global"]))
}

fn space() -> Result<ParamSpace, SpaceError> {
    let space = parameters();
    let space = space.rule("target", RuleGroup::Hardware, "sm >= 50", "there is no code for older devices");
    let space = loads(as_product(bacugen::constraints(known(space), STORED)));
    features::of_device(on_grid(code(space))).build()
}

/// The paper's names for facts of the device and the type, and its guidelines.
fn known(space: SpaceBuilder) -> SpaceBuilder {
    space
        .define("warp_size", "warp")
        .define("max_threads_per_block", "threads_per_block")
        .define("max_registers_per_block", "registers_per_block")
        .define("max_shared_per_block", "shared_optin")
        .define("max_warps_per_sm", "threads_per_sm // warp")
        .define("max_blocks_per_sm", "blocks_per_sm")
        .define("bytes", "element")
        .define("element_words", "element // 4")
        .define("prefetched_words", "1")
        .define("fma_per_product", "4 if complex else 1")
        .define("words_per_load", "2 if complex else 1")
        .define("min_threads", "512")
        .define("min_blocks", "2")
        .define("min_regs_reuse", "1")
}

/// The parameters by the names that products go by.
fn as_product(space: SpaceBuilder) -> SpaceBuilder {
    let names = [
        ("m_s", "m_thr"),
        ("n_s", "n_thr"),
        ("m_l", "m_blk"),
        ("n_l", "n_blk"),
        ("u", "k_blk"),
        ("k_s", "1"),
        ("k_l", "1"),
        ("k_g", "1"),
        ("vec_a", "1"),
        ("vec_b", "1"),
        ("vec_c", "1"),
        ("stages", "1"),
        ("split", "'ordered'"),
        ("stream_blocks", "0"),
        ("occupancy", "1"),
        // The second dimension of a grid is short.
        ("raster", "'n' if (n + n_blk - 1) // n_blk > grid_y else 'm'"),
        ("bounds", "'checked'"),
        ("t_m", "m_dim"),
        ("t_n", "n_dim"),
        ("component", "sum_bytes // 2 if complex else sum_bytes"),
        ("pitch_a", "m_blk + 1"),
        ("pitch_b", "k_blk + 1"),
        ("deep_a", "0"),
        ("deep_b", "0"),
        ("tile_a_bytes", "pitch_a * k_blk * element"),
        ("stage_bytes", "shared"),
        ("shared_bytes", "shared"),
    ];
    names.into_iter().fold(space, |space, (name, text)| space.define(name, text))
}

/// The grids that load, by the names of loaders.
fn loads(mut space: SpaceBuilder) -> SpaceBuilder {
    let sides = [("a", "transpose_a", STORED[0]), ("b", "not transpose_b", STORED[1])];
    for (side, along_k, [contiguous, other]) in sides {
        let name = |n: &str| format!("{n}_{side}");
        let (along, down) = (format!("m_dim_{side}"), format!("n_dim_{side}"));
        // Follows from the constraints on both dimensions of the grid, and is decided by the first.
        let fits =
            format!("{contiguous} % {along} == 0 and threads % {along} == 0 and {other} % (threads // {along}) == 0");
        space = space
            .rule(&name("load_fits"), RuleGroup::Implementation, &fits, "some second dimension makes it a load grid")
            .define(&name("along"), &along)
            .define(&name("down"), &down)
            .define(&name("passes_along"), &format!("{contiguous} // {along}"))
            .define(&name("passes_down"), &format!("{other} // {down}"))
            .define(&name("loads"), &format!("passes_along_{side} * passes_down_{side}"))
            .define(&name("edges"), &format!("(passes_down_{side} if {along_k} else passes_along_{side})"));
    }
    space
}

/// What the code is long and needs.
fn code(space: SpaceBuilder) -> SpaceBuilder {
    let space = tiles(space)
        .define("accumulators", "m_s * n_s")
        // Multiply-adds of a step of k_blk.
        .define("body", "u * m_s * n_s * fma_per_product")
        // Where all threads have the same columns, the assembler keeps what it knows of each.
        .define("shared_columns", "n_s if n_dim == 1 else 0")
        .define("slab_bytes", "0")
        .define("workspace_bytes", "0")
        .rule("body", RuleGroup::Guideline, "body <= 2048", "longer loop bodies do not stay in the instruction cache");
    registers::rules(space)
}
