//! The parameter space of the SIMT GEMM, and the rules that make a configuration legal.
//!
//! Grouped as BACUGen groups its constraints. *Hardware*: limits of the device; a configuration that keeps them launches.
//! *Implementation*: what the template has code for. *Guideline*: legal to run, not worth measuring. Parameters that
//! prune most come first.

use super::{blueprint, features, plan, registers, ticket};
use crate::simt::loader;
use std::sync::OnceLock;
use tilewright_core::space::{Name, Param, ParamSpace, RuleGroup, SpaceBuilder, SpaceError};

/// Parameters whose values are sizes, in the order of [`Description::sizes`].
pub(super) const SIZES: [&str; 13] =
    ["m_s", "n_s", "m_l", "n_l", "u", "k_s", "k_l", "k_g", "vec_a", "vec_b", "vec_c", "stages", "occupancy"];
/// Parameters whose values are words, in the order of [`Description::words`].
const WORDS: [&str; 4] = ["load", "split", "raster", "bounds"];

/// The names that code reads at points of a space with a product: the kernel's own, or another's that has products made by this
/// template.
#[derive(Debug)]
pub(crate) struct Names {
    pub(super) sizes: [Name; SIZES.len()],
    pub(super) words: [Name; WORDS.len()],
    /// What code is laid out by; see `blueprint`.
    pub(super) layout: [Name; blueprint::LAYOUT.len()],
    /// How one operand is loaded, and the other; see `loader`.
    pub(super) loaders: [[Name; loader::NAMES.len()]; 2],
    /// The launch; see `plan`.
    pub(crate) grid: [Name; plan::GRID.len()],
    /// Blocks that share all tiles.
    pub(super) stream: Name,
    /// What a model sees besides; see `features`.
    pub(super) features: [Name; features::DERIVED.len()],
}

impl Names {
    /// Of a space that [`product`] made.
    pub(crate) fn of(space: &ParamSpace) -> Self {
        let name = |n: &str| space.name(n).unwrap_or_else(|| unreachable!("a space of products defines no {n}"));
        let of_side = |side: &str| loader::NAMES.map(|n| name(&format!("{n}_{side}")));
        let (sizes, words) = (SIZES.map(name), WORDS.map(name));
        let (layout, grid) = (blueprint::LAYOUT.map(name), plan::GRID.map(name));
        let (loaders, features) = (["a", "b"].map(of_side), features::DERIVED.map(name));
        Self { sizes, words, layout, loaders, grid, stream: name("stream_blocks"), features }
    }
}

/// The space with the names that code reads, found once.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) space: ParamSpace,
    pub(super) names: Names,
}

impl Description {
    /// The one there is: the space is a constant of this crate, and a test builds it.
    pub(super) fn get() -> &'static Self {
        static DESCRIPTION: OnceLock<Description> = OnceLock::new();
        DESCRIPTION.get_or_init(|| {
            let space = space().unwrap_or_else(|e| unreachable!("the space of gemm.simt: {e}"));
            let names = Names::of(&space);
            Self { space, names }
        })
    }
}

/// Rows or columns of a thread.
pub(crate) const THREAD_TILE: [i64; 8] = [1, 2, 4, 6, 8, 10, 12, 16];
/// Rows or columns of a block.
pub(crate) const BLOCK_TILE: [i64; 16] = [1, 2, 4, 8, 16, 24, 32, 48, 64, 80, 96, 128, 160, 192, 256, 320];
/// Slices of a reduction.
pub(crate) const SLICES: [i64; 17] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128];

fn space() -> Result<ParamSpace, SpaceError> {
    let space = ParamSpace::builder()
        .param(Param::ints("m_s", THREAD_TILE))
        .param(Param::ints("n_s", THREAD_TILE))
        .param(Param::ints("m_l", BLOCK_TILE))
        .param(Param::ints("n_l", BLOCK_TILE))
        .param(Param::ints("k_l", [1, 2, 4, 8, 16]))
        .param(Param::ints("u", [4, 8, 16, 32, 64]))
        .param(Param::ints("vec_a", [1, 2, 4, 8]))
        .param(Param::ints("vec_b", [1, 2, 4, 8]))
        .param(Param::ints("stages", [1, 2, 3, 4, 5]))
        .param(Param::words("load", ["global", "nc", "async", "straight"]))
        .param(Param::ints("k_s", [1, 2, 4]))
        .param(Param::ints("k_g", SLICES))
        .param(Param::words("split", ["ordered", "atomic", "ticket", "stream"]))
        .param(Param::ints("vec_c", [1, 2, 4, 8]))
        .param(Param::words("raster", ["m", "n", "grouped"]))
        .param(Param::words("bounds", ["checked", "whole"]))
        .param(Param::ints("occupancy", registers::OCCUPANCY));
    product(space).build()
}

/// Adds what a product is, and the rules that make it one, to a space that has the parameters of the GEMM, or definitions of their
/// names, and the names of `facts::symbols`.
pub(crate) fn product(space: SpaceBuilder) -> SpaceBuilder {
    let space = memory(loads(threads(space)));
    features::of_device(grid(registers::rules(reduction(space))))
}

fn threads(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware, Implementation};
    space
        .rule("target", Hardware, "sm >= 50", "there is no code for older devices")
        .rule(
            "bf16_results",
            Hardware,
            "sm >= 80 or not rounds_to_bf16",
            "rounding to bf16 came with sm_80; devices before can write f32",
        )
        .rule(
            "f16_arithmetic",
            Hardware,
            "sm >= 53 or lanes == 1",
            "arithmetic of f16 came with sm_53; devices before can sum in f32",
        )
        .rule("pairs", Implementation, "m_s % lanes == 0", "two neighbouring rows of a thread share a register of sums")
        // Bytes of a sum, or of one of its components.
        .define("component", "sum_bytes // 2 if complex else sum_bytes")
        .define("t_m", "m_l // m_s")
        .define("t_n", "n_l // n_s")
        .define("threads", "t_m * t_n * k_l")
        .rule("whole_rows", Implementation, "m_l % m_s == 0", "threads have equal tiles")
        .rule("whole_columns", Implementation, "n_l % n_s == 0", "threads have equal tiles")
        .rule("threads", Hardware, "threads <= threads_per_block", "a block has no more threads")
        .rule("whole_warps", Implementation, "threads % warp == 0", "blocks are whole warps")
        .rule(
            "tile_beyond_rows",
            Guideline,
            "m_l < 2 * max(m, 8) and (m_l >= 16 or m <= 16)",
            "tiles far larger or smaller than the matrix waste threads or bandwidth",
        )
        .rule(
            "tile_beyond_columns",
            Guideline,
            "n_l < 2 * max(n, 8) and (n_l >= 16 or n <= 16)",
            "tiles far larger or smaller than the matrix waste threads or bandwidth",
        )
        .rule(
            "thread_tile",
            Guideline,
            "max(m_s, n_s) <= 4 * min(m_s, n_s) or m_s * n_s <= 4 or min(m, n) < 16",
            "flat tiles reuse little of what they load",
        )
}

/// Where rows of A may go straight to registers.
fn straight(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Implementation};
    space
        .rule(
            "paired_rows",
            Implementation,
            "load != 'straight' or lanes == 1",
            "pairs of rows are multiplied as they lie in shared memory",
        )
        .rule(
            "whole_loads",
            Implementation,
            "load != 'straight' or transpose_a or m_s % vec_a == 0",
            "a thread loads its own rows, in whole vectors",
        )
        .rule(
            "whole_steps",
            Implementation,
            "load != 'straight' or not transpose_a or vec_a == 1 or (element >= 4 and u // k_l % vec_a == 0)",
            "a thread loads its own steps, in whole vectors of numbers that fill registers",
        )
        .rule(
            "few_columns",
            Guideline,
            "load != 'straight' or (n <= 64 and t_n <= 4)",
            "rows that many threads multiply are loaded once where they go through shared memory",
        )
}

fn loads(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware, Implementation};
    let mut space = straight(space)
        .rule("depth", Guideline, "u == 4 or u < 2 * k", "deeper stages than the reduction are the same stage")
        .rule("async", Hardware, "load != 'async' or sm >= 80", "asynchronous copies came with sm_80")
        .rule(
            "stages",
            Implementation,
            "stages >= 2 if load == 'async' else stages <= 2",
            "through registers one stage waits in shared memory at most; copies need one to go to",
        )
        .rule("idle_stages", Guideline, "stages <= 2 or (stages - 1) * u < 2 * k", "stages that are never filled");
    // A is contiguous along the reduction if it is transposed, B if it is not.
    let sides = [("a", "transpose_a", "m_l", "m"), ("b", "not transpose_b", "n_l", "n")];
    for (side, along_k, tile, size) in sides {
        let vec = format!("vec_{side}");
        let aligned = format!(
            "{vec} == 1 or (align % ({vec} * element) == 0 and ld{side} % {vec} == 0 \
             and (k if {along_k} else {size}) % {vec} == 0)"
        );
        // What one load from shared memory fetches of a thread's rows; see `simt::chunk`.
        let of = if side == "a" { "m_s" } else { "n_s" };
        let chunk = format!("(4 if {of} % 4 == 0 else 2 if {of} % 2 == 0 else 1)");
        let straight = (side == "a").then_some("load == 'straight'");
        space = loader::rules(space, (side, along_k, tile), &aligned, Some(&chunk), straight);
    }
    space
}

fn memory(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware};
    space
        // Elements from one step of the reduction to the next: rows that were transposed on their way end with padding. Or from row to row
        // of what stays contiguous along the reduction: an odd number of 16 bytes, so that eight rows lie in all banks.
        .define("deep_pitch", "u if u % 8 != 0 else u + 4")
        .define("pitch_a", "deep_pitch if deep_a == 1 else m_l + (16 // element if transpose_a else 0)")
        .define("pitch_b", "deep_pitch if deep_b == 1 else n_l + (0 if transpose_b else 16 // element)")
        .define(
            "tile_a_bytes",
            "0 if load == 'straight' else (pitch_a * (m_l if deep_a == 1 else u) * element + 15) // 16 * 16",
        )
        .define("stage_bytes", "tile_a_bytes + (pitch_b * (n_l if deep_b == 1 else u) * element + 15) // 16 * 16")
        // Half of the groups write their accumulators.
        .define("tree_bytes", "k_l // 2 * m_l * n_l * sum_bytes")
        .define("shared_bytes", "max(stages * stage_bytes, tree_bytes)")
        .rule("shared_memory", Hardware, "shared_bytes <= shared_optin", "a block gets no more shared memory")
        .rule(
            "one_block",
            Guideline,
            "shared_bytes * 2 <= shared_per_sm or threads >= 128",
            "few threads with much memory leave a multiprocessor idle",
        )
}

/// Tiles of C, and steps of the reduction of a slice: whole stages.
pub(crate) fn tiles(space: SpaceBuilder) -> SpaceBuilder {
    space
        .define("tiles_m", "(m + m_l - 1) // m_l")
        .define("tiles_n", "(n + n_l - 1) // n_l")
        .define("tiles", "tiles_m * tiles_n")
        .define("slice", "((k + k_g - 1) // k_g + u - 1) // u * u")
        // Slices are whole stages, so that there may be a few less than are asked for.
        .define("slices", "max(1, (k + slice - 1) // max(slice, 1))")
}

fn reduction(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware, Implementation};
    let space = streams(tiles(space))
        .define("accumulators", "m_s * n_s * k_s")
        // Multiply-adds of a stage.
        .define("body", "u // k_l * m_s * n_s * (4 if complex else 1) // lanes")
        // Registers for what is known of columns that all threads have: nothing, beside what fragments need.
        .define("shared_columns", "0")
        // Partial sums of one slice, and of all.
        .define("slab_bytes", "m * n * sum_bytes")
        .define("workspace_bytes", "(stream_slices if split == 'stream' else slices) * batch * slab_bytes")
        .rule(
            "unroll",
            Implementation,
            "u % (k_l * k_s) == 0",
            "groups and accumulator sets have equal shares of a stage",
        )
        .rule("body", Guideline, "body <= 2048", "longer loop bodies do not stay in the instruction cache")
        .rule(
            "accumulator_sets",
            Guideline,
            "k_s == 1 or accumulators * sum_bytes <= 128",
            "larger tiles have independent operations enough",
        )
        .rule(
            "groups",
            Guideline,
            "k_l == 1 or (k >= 2 * u and tiles * t_m * t_n <= multiprocessors * threads_per_sm)",
            "where the device is full without, groups only cost shared memory",
        );
    slicing(space)
        .rule(
            "atomics",
            Hardware,
            "split != 'atomic' or component == 4 or sm >= 60",
            "atomic addition of f64 came with sm_60",
        )
        .rule(
            "atomic_results",
            Implementation,
            "split != 'atomic' or (result_bytes == sum_bytes and not epilogue)",
            "sums in parts are neither rounded nor finished",
        )
        .rule(
            "tickets",
            Implementation,
            &format!("split != 'ticket' or (batch == 1 and tiles <= {})", ticket::TILES),
            "there are tickets for the tiles of one product",
        )
        .rule("workspace", Hardware, WORKSPACE, "partial sums are held in device memory")
}

/// Blocks that share the stages of all tiles: as many as are asked to run at a time. 0 where each tile has blocks of its own.
fn streams(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware, Implementation};
    space
        .define("stages_k", "slice // u")
        .define("stream_blocks", "min(multiprocessors * occupancy, tiles * stages_k) if split == 'stream' else 0")
        // Stages of a block, and blocks of a tile, at most.
        .define("stream_share", "max(tiles * stages_k // max(stream_blocks, 1), 1)")
        .define("stream_slices", "min(stages_k, (stages_k + stream_share - 2) // stream_share + 1)")
        .rule(
            "stream_raster",
            Implementation,
            "split != 'stream' or raster != 'grouped'",
            "blocks that share stages go through tiles line by line",
        )
        .rule(
            "stream",
            Implementation,
            &format!(
                "split != 'stream' or \
                 (k_g == 1 and multiplies and batch == 1 and tiles <= {} and tiles * stages_k < 2 ** 30)",
                ticket::TILES
            ),
            "blocks share the stages of one product, each tile of which has a ticket",
        )
        .rule(
            "worth_streaming",
            Guideline,
            "split != 'stream' or (tiles % multiprocessors != 0 and stages_k >= 4)",
            "where tiles fill the device evenly, or are done at once, nothing waits for the last of them",
        )
        .rule(
            "stream_workspace",
            Hardware,
            "split != 'stream' or m * n * sum_bytes <= memory_bytes // 64",
            "partial sums are held in device memory",
        )
}

/// How much the workspace may take.
pub(crate) const WORKSPACE: &str = "split == 'atomic' or k_g == 1 or workspace_bytes <= memory_bytes // 4";

/// What makes slices of the reduction.
pub(crate) fn slicing(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Implementation};
    space
        .rule(
            "slices",
            Implementation,
            "k_g == 1 or (multiplies and 4 * slices > 3 * k_g)",
            "most slices that are asked for have a part of the reduction",
        )
        .rule(
            "worth_slicing",
            Guideline,
            "k_g == 1 or (tiles * slices <= 16 * multiprocessors and slice >= 2 * u)",
            "where the device is full without, slices only cost memory traffic",
        )
        .rule("split", Implementation, "k_g > 1 or split == 'ordered' or split == 'stream'", "nothing is split")
}

fn grid(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware, Implementation};
    let space = space
        // Partial sums are stored as they are.
        .define("stored_bytes", "sum_bytes if split == 'stream' or k_g > 1 and split != 'atomic' else result_bytes")
        .rule("width_c", Hardware, "vec_c * stored_bytes <= 16", "no store is wider than 16 bytes")
        .rule("whole_stores", Implementation, "m_s % vec_c == 0", "a thread stores whole vectors")
        .rule(
            "aligned_c",
            Hardware,
            "vec_c == 1 or (align % (vec_c * stored_bytes) == 0 and ldc % vec_c == 0 and m % vec_c == 0)",
            "vectors lie at multiples of their size, and none lies across the end",
        )
        .rule("atomic_stores", Hardware, "vec_c == 1 or split != 'atomic'", "atomic additions are of single elements")
        .rule(
            "widest_stores",
            Guideline,
            "split == 'atomic' or vec_c * stored_bytes == 16 or m_s % (2 * vec_c) != 0 \
             or align % (2 * vec_c * stored_bytes) != 0 or ldc % (2 * vec_c) != 0 or m % (2 * vec_c) != 0",
            "wider stores are never slower",
        );
    on_grid(space)
}

/// What fits a grid, and tiles that are whole.
pub(crate) fn on_grid(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware, Implementation};
    space
        .rule(
            "grid_second",
            Hardware,
            "(tiles_n if raster == 'm' else tiles_m if raster == 'n' else tiles_n // 8) <= grid_y",
            "the second dimension of a grid is short",
        )
        .rule(
            "grid_first",
            Hardware,
            "max(tiles_m * (8 if raster == 'grouped' else 1), tiles_n) <= grid_x",
            "the first dimension of a grid",
        )
        .rule(
            "whole_groups",
            Implementation,
            "raster != 'grouped' or tiles_n % 8 == 0",
            "groups of columns of tiles are whole",
        )
        .rule("batch", Hardware, "batch <= grid_z", "the products of a batch lie along the third dimension of a grid")
        .rule("grid_third", Hardware, "slices * batch <= grid_z", "the third dimension of a grid is short")
        .rule(
            "raster",
            Guideline,
            "raster == 'm' or (tiles_m > 1 and tiles_n > 1) or tiles_n > grid_y",
            "both ways are the same",
        )
        .rule(
            "whole",
            Implementation,
            "bounds == 'checked' or (multiplies and m % m_l == 0 and n % n_l == 0 and k % u == 0)",
            "tiles divide the sizes",
        )
}
