//! The parameter space of the SIMT convolution, and the rules that make a configuration legal. Groups of rules are those of the
//! GEMM.
//!
//! Side `f` is the filters, side `g` what is gathered. `places` are the positions of a tile.

use super::{blueprint, features, plan, registers};
use crate::simt::loader;
use std::sync::OnceLock;
use tilewright_core::space::{Name, Param, ParamSpace, RuleGroup, SpaceBuilder, SpaceError};

/// Parameters whose values are sizes, in the order of [`Description::sizes`].
pub(super) const SIZES: [&str; 15] =
    ["k_s", "n_s", "p_s", "q_s", "k_l", "n_l", "p_l", "q_l", "u", "c_s", "c_l", "c_g", "vec_f", "vec_g", "stages"];
/// Parameters whose values are words, in the order of [`Description::words`].
const WORDS: [&str; 2] = ["load", "scan"];

/// The space with the names that code reads, found once.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) space: ParamSpace,
    pub(super) sizes: [Name; SIZES.len()],
    pub(super) words: [Name; WORDS.len()],
    /// What code is laid out by; see `blueprint`.
    pub(super) layout: [Name; blueprint::LAYOUT.len()],
    /// How filters are loaded, and what is gathered; see `loader`.
    pub(super) loaders: [[Name; loader::NAMES.len()]; 2],
    /// The workspace; see `plan`.
    pub(super) memory: [Name; plan::MEMORY.len()],
    /// What a model sees besides; see `features`.
    pub(super) features: [Name; features::DERIVED.len()],
}

impl Description {
    /// The one there is: the space is a constant of this crate, and a test builds it.
    pub(super) fn get() -> &'static Self {
        static DESCRIPTION: OnceLock<Description> = OnceLock::new();
        DESCRIPTION.get_or_init(|| {
            let space = space().unwrap_or_else(|e| unreachable!("the space of conv.simt: {e}"));
            let name = |n: &str| space.name(n).unwrap_or_else(|| unreachable!("conv.simt defines no {n}"));
            let of_side = |side: &str| loader::NAMES.map(|n| name(&format!("{n}_{side}")));
            let (sizes, words) = (SIZES.map(name), WORDS.map(name));
            let (layout, memory) = (blueprint::LAYOUT.map(name), plan::MEMORY.map(name));
            let (loaders, features) = (["f", "g"].map(of_side), features::DERIVED.map(name));
            Self { space, sizes, words, layout, loaders, memory, features }
        })
    }
}

const SLICES: [i64; 15] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256];

fn space() -> Result<ParamSpace, SpaceError> {
    let space = ParamSpace::builder()
        .param(Param::ints("k_s", [1, 2, 4, 8, 16]))
        .param(Param::ints("k_l", [1, 2, 4, 8, 16, 32, 64, 128, 256]))
        .param(Param::ints("q_s", [1, 2, 4, 8]))
        .param(Param::ints("q_l", [1, 2, 4, 8, 16, 32, 64, 128]))
        .param(Param::ints("p_s", [1, 2, 4]))
        .param(Param::ints("p_l", [1, 2, 4, 8, 16]))
        .param(Param::ints("n_s", [1, 2, 4, 8]))
        .param(Param::ints("n_l", [1, 2, 4, 8, 16, 32, 64, 128]))
        .param(Param::ints("c_l", [1, 2, 4, 8]))
        .param(Param::ints("u", [4, 8, 16, 32]))
        .param(Param::words("scan", ["places", "steps"]))
        .param(Param::ints("vec_f", [1, 2, 4, 8]))
        .param(Param::ints("vec_g", [1, 2, 4, 8]))
        .param(Param::ints("stages", [1, 2, 3, 4]))
        .param(Param::words("load", ["global", "nc", "async"]))
        .param(Param::ints("c_s", [1, 2, 4]))
        .param(Param::ints("c_g", SLICES));
    let space = extent(threads(space));
    let space = loads(space);
    let space = reduction(memory(space));
    features::of_device(grid(registers::rules(space))).build()
}

fn threads(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Hardware, Implementation};
    let mut space = space.rule("target", Hardware, "sm >= 50", "there is no code for older devices").rule(
        "bf16_results",
        Hardware,
        "sm >= 80 or not rounds_to_bf16",
        "rounding to bfloat16 came with sm_80",
    );
    for (side, what) in [("k", "outputs"), ("q", "columns"), ("p", "rows"), ("n", "images")] {
        space = space.define(&format!("t_{side}"), &format!("{side}_l // {side}_s")).rule(
            &format!("whole_{what}"),
            Implementation,
            &format!("{side}_l % {side}_s == 0"),
            "threads have equal tiles",
        );
    }
    space
        .define("places", "n_l * p_l * q_l")
        .define("places_s", "n_s * p_s * q_s")
        // The positions of a tile that are neighbours in shared memory.
        .define("first_l", "n_l if images_first else q_l")
        .define("threads", "t_k * t_n * t_p * t_q * c_l")
        .rule("threads", Hardware, "threads <= threads_per_block", "a block has no more threads")
        .rule("whole_warps", Implementation, "threads % warp == 0", "blocks are whole warps")
}

fn extent(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::Guideline;
    let wasted = "tiles far larger or smaller than the result waste threads or bandwidth";
    space
        .rule("tile_beyond_outputs", Guideline, "k_l < 2 * max(outs, 8) and (k_l >= 16 or outs <= 16)", wasted)
        .rule("tile_beyond_columns", Guideline, "q_l < 2 * max(grid_columns, 1 if images_first else 8)", wasted)
        .rule("tile_beyond_rows", Guideline, "p_l < 2 * max(grid_rows, 1)", wasted)
        .rule("tile_beyond_images", Guideline, "n_l < 2 * max(images, 8 if images_first else 1)", wasted)
        .rule("tile_of_positions", Guideline, "places <= 256", wasted)
        .rule("few_positions", Guideline, "places >= 16 or images * grid_rows * grid_columns <= 16", wasted)
        .rule(
            "neighbours_first",
            Guideline,
            "(2 * n_l > images or (q_l == 1 and p_l == 1)) if images_first else (n_l == 1 or 2 * p_l > grid_rows)",
            "other blocks take what is far away as well",
        )
        .rule("thread_places", Guideline, "places_s <= 16", "more accumulators than a thread has registers for")
        .rule("thread_shape", Guideline, "p_s == 1 or n_s == 1", "a thread's positions lie along two dimensions")
        .rule(
            "thread_tile",
            Guideline,
            "max(k_s, places_s) <= 4 * min(k_s, places_s) or k_s * places_s <= 4 or outs < 16",
            "flat tiles reuse little of what they load",
        )
}

fn loads(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware, Implementation};
    let space = space
        .rule("depth", Guideline, "u == 4 or u < 2 * sums", "deeper stages than the reduction are the same stage")
        .rule("async", Hardware, "load != 'async' or sm >= 80", "asynchronous copies came with sm_80")
        .rule(
            "stages",
            Implementation,
            "stages >= 2 if load == 'async' else stages <= 2",
            "through registers one stage waits in shared memory at most; copies need one to go to",
        )
        .rule("idle_stages", Guideline, "stages <= 2 or (stages - 1) * u < 2 * sums", "stages that are never filled");
    let aligned = |vec: &str, near: &str| format!("{vec} == 1 or ({vec} <= {near} and align % ({vec} * element) == 0)");
    let space = loader::rules(space, ("f", "filter_along", "k_l"), &aligned("vec_f", "near_filter"), None, None);
    // A vector of positions lies within one row of the tile.
    let near = "(near_steps if scan == 'steps' else min(near_places, first_l))";
    loader::rules(space, ("g", "scan == 'steps'", "places"), &aligned("vec_g", near), None, None)
}

fn memory(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware};
    space
        // Elements from one step of the reduction to the next: rows that were transposed on their way end with padding.
        .define("pitch_f", "k_l + (16 // element if filter_along else 0)")
        .define("pitch_g", "places + (16 // element if scan == 'steps' else 0)")
        .define("tile_f_bytes", "(pitch_f * u * element + 15) // 16 * 16")
        .define("stage_bytes", "tile_f_bytes + (pitch_g * u * element + 15) // 16 * 16")
        // Half of the groups write their accumulators.
        .define("tree_bytes", "c_l // 2 * k_l * places * sum_bytes")
        .define("shared_bytes", "max(stages * stage_bytes, tree_bytes)")
        .rule("shared_memory", Hardware, "shared_bytes <= shared_optin", "a block gets no more shared memory")
        .rule(
            "one_block",
            Guideline,
            "shared_bytes * 2 <= shared_per_sm or threads >= 128",
            "few threads with much memory leave a multiprocessor idle",
        )
}

fn reduction(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware, Implementation};
    space
        .define("tiles_k", "(outs + k_l - 1) // k_l")
        .define("tiles_n", "(images + n_l - 1) // n_l")
        .define("tiles_p", "(grid_rows + p_l - 1) // p_l")
        .define("tiles_q", "(grid_columns + q_l - 1) // q_l")
        .define("tiles_at", "tiles_n * tiles_p * tiles_q")
        // Blocks, were every tile full: what rules compare depends on the size of tiles and not on their shape.
        .define("blocks", "max(outs * images * grid_rows * grid_columns * groups // (k_l * places), 1)")
        // Steps of the reduction of a slice of the longest sums: whole stages.
        .define("slice", "((max(sums, 1) + c_g - 1) // c_g + u - 1) // u * u")
        .define("accumulators", "k_s * places_s * c_s")
        .define("body", "u // c_l * k_s * places_s")
        // The table has an entry for every step, and for those that are looked up though there are none.
        .define("table_bytes", "16 * (c_g * slice + stages * u)")
        .define("slab_bytes", "(result_elements * sum_bytes + 15) // 16 * 16")
        .define("workspace_bytes", "table_bytes + (c_g * slab_bytes if c_g > 1 else 0)")
        .rule(
            "unroll",
            Implementation,
            "u % (c_l * c_s) == 0",
            "groups and accumulator sets have equal shares of a stage",
        )
        .rule("body", Guideline, "body <= 2048", "longer loop bodies do not stay in the instruction cache")
        .rule(
            "accumulator_sets",
            Guideline,
            "c_s == 1 or accumulators * sum_bytes <= 128",
            "larger tiles have independent operations enough",
        )
        .rule(
            "groups",
            Guideline,
            "c_l == 1 or (sums >= 2 * u and blocks * (threads // c_l) <= multiprocessors * threads_per_sm)",
            "where the device is full without, groups only cost shared memory",
        )
        .rule(
            "slices",
            Implementation,
            "c_g == 1 or (c_g - 1) * slice < sums",
            "every slice has a part of the reduction",
        )
        .rule(
            "worth_slicing",
            Guideline,
            "c_g == 1 or (blocks * c_g <= 16 * multiprocessors and slice >= 2 * u)",
            "where the device is full without, slices only cost memory traffic",
        )
        .rule(
            "workspace",
            Hardware,
            "workspace_bytes <= memory_bytes // 4",
            "the table and partial sums are held in device memory",
        )
}

fn grid(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::Hardware;
    space
        .rule(
            "grid_first",
            Hardware,
            "images * grid_rows * grid_columns <= grid_x",
            "tiles of positions lie along the first dimension of a grid",
        )
        .rule("grid_second", Hardware, "tiles_k <= grid_y", "tiles of outputs lie along the second dimension of a grid")
        .rule("grid_groups", Hardware, "groups <= grid_z", "groups lie along the third dimension of a grid")
        .rule("grid_third", Hardware, "c_g * groups <= grid_z", "the third dimension of a grid is short")
}
