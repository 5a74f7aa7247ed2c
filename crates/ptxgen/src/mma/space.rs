//! The parameter space of the GEMM by matrix instructions, and the rules that make a configuration legal, grouped as the SIMT
//! GEMM's.

use super::variants::{self, DEEP_F64};
use super::{blueprint, features, registers};
use crate::gemm::space::{SLICES, WORKSPACE, on_grid, slicing, tiles};
use crate::gemm::{BLOCK_TILE, GRID};
use crate::simt::loader;
use std::sync::OnceLock;
use tilewright_core::space::{Name, Param, ParamSpace, RuleGroup, SpaceBuilder, SpaceError};

/// Parameters whose values are sizes.
pub(super) const SIZES: [&str; 10] = ["m_w", "n_w", "m_l", "n_l", "u", "k_g", "vec_a", "vec_b", "vec_c", "stages"];
/// Parameters whose values are words.
const WORDS: [&str; 4] = ["load", "split", "raster", "bounds"];

/// The names that code reads at points of the space.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) sizes: [Name; SIZES.len()],
    pub(super) words: [Name; WORDS.len()],
    pub(super) layout: [Name; blueprint::LAYOUT.len()],
    pub(super) loaders: [[Name; loader::NAMES.len()]; 2],
    pub(super) grid: [Name; GRID.len()],
    pub(super) features: [Name; features::DERIVED.len()],
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
            let space = space().unwrap_or_else(|e| unreachable!("the space of gemm.mma: {e}"));
            let name = |n: &str| space.name(n).unwrap_or_else(|| unreachable!("the space of gemm.mma defines no {n}"));
            let of_side = |side: &str| loader::NAMES.map(|n| name(&format!("{n}_{side}")));
            let names = Names {
                sizes: SIZES.map(name),
                words: WORDS.map(name),
                layout: blueprint::LAYOUT.map(name),
                loaders: ["a", "b"].map(of_side),
                grid: GRID.map(name),
                features: features::DERIVED.map(name),
            };
            Self { space, names }
        })
    }
}

/// Rows or columns of a warp: whole loads of fragments.
const WARP_TILE: [i64; 6] = [16, 32, 48, 64, 96, 128];

fn space() -> Result<ParamSpace, SpaceError> {
    let block = || BLOCK_TILE.into_iter().filter(|size| size % 16 == 0);
    let space = ParamSpace::builder()
        .param(Param::ints("m_w", WARP_TILE))
        .param(Param::ints("n_w", WARP_TILE))
        .param(Param::ints("m_l", block()))
        .param(Param::ints("n_l", block()))
        .param(Param::ints("u", [8, 16, 32, 64, 128]))
        .param(Param::ints("vec_a", [1, 2, 4, 8, 16]))
        .param(Param::ints("vec_b", [1, 2, 4, 8, 16]))
        .param(Param::ints("stages", [1, 2, 3, 4, 5]))
        .param(Param::words("load", ["async", "global", "nc"]))
        .param(Param::ints("k_g", SLICES))
        .param(Param::words("split", ["ordered", "atomic"]))
        .param(Param::ints("vec_c", [1, 2]))
        .param(Param::words("raster", ["m", "n", "grouped"]))
        .param(Param::words("bounds", ["checked", "whole"]));
    let space = memory(loads(warps(space)));
    features::of_device(stores(registers::rules(reduction(space)))).build()
}

fn warps(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware, Implementation};
    let depth =
        format!("32 if element == 1 else 16 if element == 2 else 8 if element == 4 else 16 if sm >= {DEEP_F64} else 4");
    let mut space = space
        .rule("target", Hardware, "sm >= 80", "matrix instructions of these shapes came with sm_80")
        // Steps of an instruction.
        .define("depth", &depth)
        .define("warps_m", "m_l // m_w")
        .define("warps_n", "n_l // n_w")
        .define("threads", "warps_m * warps_n * warp")
        .rule("whole_rows", Implementation, "m_l % m_w == 0", "warps have equal tiles")
        .rule("whole_columns", Implementation, "n_l % n_w == 0", "warps have equal tiles")
        .rule("threads", Hardware, "threads <= threads_per_block", "a block has no more threads");
    // A is contiguous along the reduction if it is transposed, B if it is not.
    for (of, side, tile, size, along_k) in
        [("rows", "m_w", "m_l", "m", "transpose_a"), ("columns", "n_w", "n_l", "n", "not transpose_b")]
    {
        let least = format!("least_{of}");
        let text = format!("{tile} < 2 * max({size}, {least})");
        space = space
            .define(&least, &format!("32 if element == 1 and not ({along_k}) else 16"))
            .rule(
                &format!("whole_words_{of}"),
                Implementation,
                &format!("{side} % {least} == 0"),
                "bytes across the reduction are read and exchanged in pieces of 32",
            )
            .rule(&format!("tile_beyond_{of}"), Guideline, &text, "tiles far larger than the matrix waste warps");
    }
    space
        .rule("warp_tile", Guideline, "max(m_w, n_w) <= 4 * min(m_w, n_w)", "flat tiles reuse little of what they load")
        .rule("deep", Implementation, "u % depth == 0", "a stage is whole instructions")
        .rule(
            "one_step",
            Guideline,
            "products == 1 or u == depth",
            "the assembler spills where it may overlap steps whose operands are split; three products are work enough for a stage",
        )
        .rule(
            "depth",
            Guideline,
            "u <= max(depth, 8) or u < 2 * k",
            "deeper stages than the reduction are the same stage",
        )
}

fn loads(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Implementation};
    let mut space = space
        .rule(
            "stages",
            Implementation,
            "stages >= 2 if load == 'async' else stages <= 2",
            "through registers one stage waits in shared memory at most; copies need one to go to",
        )
        .rule("idle_stages", Guideline, "stages <= 2 or (stages - 1) * u < 2 * k", "stages that are never filled");
    // A is contiguous along the reduction if it is transposed, B if it is not.
    for (side, along_k, tile, size) in [("a", "transpose_a", "m_l", "m"), ("b", "not transpose_b", "n_l", "n")] {
        space = loads_of(space, side, along_k, tile, size);
    }
    space
}

/// How threads share the loads of one operand.
fn loads_of(space: SpaceBuilder, side: &str, along_k: &str, tile: &str, size: &str) -> SpaceBuilder {
    let name = |n: &str| format!("{n}_{side}");
    let [vec, contiguous, other, along, down, pieces] =
        ["vec", "contiguous", "other", "along", "down", "pieces"].map(name);
    // A power of two, so that pieces of rows can be exchanged by bits.
    let powers = [32, 16, 8, 4, 2].map(|p| format!("{p} if {pieces} % {p} == 0 else ")).concat();
    let space = space
        .define(&contiguous, &format!("(u if {along_k} else {tile})"))
        .define(&other, &format!("({tile} if {along_k} else u)"))
        .define(&pieces, &format!("{contiguous} // {vec}"))
        .define(&along, &format!("{powers}1"))
        .define(&down, &format!("min(threads // {along}, {other})"))
        .define(&name("grain"), &variants::grain(along_k));
    let aligned = |vec: &str| {
        let size = format!("(k if {along_k} else {size}) % ({vec}) == 0");
        format!("align % ({vec} * element) == 0 and ld{side} % ({vec}) == 0 and {size}")
    };
    passes(widths(space, side, &aligned), side, along_k)
}

/// How wide loads are. `aligned` says where loads of so many elements are.
fn widths(space: SpaceBuilder, side: &str, aligned: &dyn Fn(&str) -> String) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware};
    let (vec, name) = (format!("vec_{side}"), |rule: &str| format!("{rule}_{side}"));
    let narrow = format!("load != 'async' or {vec} * element >= 4");
    let widest = format!("{vec} * element == 16 or not ({})", aligned(&format!("2 * {vec}")));
    let unaligned = "vectors lie at multiples of their size, and none lies across the end";
    space
        .rule(&name("width"), Hardware, &format!("{vec} * element <= 16"), "no load is wider than 16 bytes")
        .rule(&name("narrow_copy"), Hardware, &narrow, "an asynchronous copy has 4 bytes at least")
        .rule(&name("aligned"), Hardware, &format!("{vec} == 1 or ({})", aligned(&vec)), unaligned)
        .rule(&name("widest_loads"), Guideline, &widest, "wider loads are never slower")
}

/// How often threads load.
fn passes(space: SpaceBuilder, side: &str, along_k: &str) -> SpaceBuilder {
    use RuleGroup::{Guideline, Implementation};
    let name = |n: &str| format!("{n}_{side}");
    let [vec, contiguous, other, down, loads] = ["vec", "contiguous", "other", "down", "loads"].map(name);
    let shared_out = format!("{contiguous} % {vec} == 0 and {other} % {down} == 0");
    let lines = format!("128 // grain_{side}");
    let exchange = format!("passes_down_{side} == 1 or {down} % ({lines}) == 0 or {lines} % {down} == 0");
    let many = "a thread that loads so much computes on too little";
    let least = if side == "a" { "least_rows" } else { "least_columns" };
    space
        .rule(&name("shared_out"), Implementation, &shared_out, "every thread makes as many loads")
        .define(&name("passes_along"), &format!("pieces_{side} // along_{side}"))
        .define(&name("passes_down"), &format!("{other} // {down}"))
        .define(&loads, &format!("passes_along_{side} * passes_down_{side}"))
        .define(&name("edges"), &format!("(passes_down_{side} if {along_k} else passes_along_{side})"))
        .define(&name("pitch"), &contiguous)
        .rule(&name("exchange"), Implementation, &exchange, "pieces of rows are exchanged alike in every pass")
        .rule(&name("many_loads"), Guideline, &format!("{loads} <= {least}"), many)
}

fn memory(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware};
    space
        .define("tile_a_bytes", "m_l * u * element")
        .define("stage_bytes", "tile_a_bytes + n_l * u * element")
        .define("shared_bytes", "stages * stage_bytes")
        .rule("shared_memory", Hardware, "shared_bytes <= shared_optin", "a block gets no more shared memory")
        .rule(
            "one_block",
            Guideline,
            "shared_bytes * 2 <= shared_per_sm or threads >= 128",
            "few threads with much memory leave a multiprocessor idle",
        )
}

fn reduction(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware};
    let space = tiles(space)
        .define("accumulators", "m_w * n_w // warp")
        // Instructions of a stage, where one of f32 may be three.
        .define("body", "m_w * n_w * u // (16 * 8 * depth) * products")
        .define("sum_bytes", "8 if element == 8 else 4")
        // Partial sums of one slice, and of all.
        .define("slab_bytes", "m * n * sum_bytes")
        .define("workspace_bytes", "slices * batch * slab_bytes")
        .rule("body", Guideline, "body <= 1024", "longer loop bodies do not stay in the instruction cache");
    slicing(space)
        .rule("workspace", Hardware, WORKSPACE, "partial sums are held in device memory")
        .rule(
            "atomics",
            RuleGroup::Hardware,
            "split == 'ordered' or result_bytes == sum_bytes",
            "sums are added to results of their own type",
        )
        .rule(
            "atomic_results",
            RuleGroup::Implementation,
            "split == 'ordered' or not epilogue",
            "sums in parts are not finished",
        )
        .rule(
            "exact_sums",
            Guideline,
            "k_g == 1 or element != 1 or epilogue or split == 'atomic'",
            "sums of integers are the same in any order",
        )
}

fn stores(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware};
    let aligned = "align % (2 * result_bytes) == 0 and ldc % 2 == 0 and m % 2 == 0";
    let space = space
        .rule(
            "aligned_c",
            Hardware,
            &format!("vec_c == 1 or ({aligned})"),
            "vectors lie at multiples of their size, and none lies across the end",
        )
        .rule("atomic_stores", Hardware, "vec_c == 1 or split == 'ordered'", "atomic additions are of single elements")
        .rule(
            "widest_stores",
            Guideline,
            &format!("split == 'atomic' or vec_c == 2 or not ({aligned})"),
            "wider stores are never slower",
        );
    on_grid(space)
}
